/** What chosen tokens look at, or by what they are looked at. */
import type { Attention, HeadChoice } from "./data.js";

/** From queries to the keys that they look at, or to a key from the queries that look at it. */
export type Direction = "from" | "to";
export const DIRECTIONS: readonly Direction[] = ["from", "to"];

/** [Lq, Lk] of a head or the mean of several; each weight times the length of its value where that is asked for and known. */
export function matrixOf(attention: Attention, layer: number, head: HeadChoice, weighted: boolean): Float32Array {
  return (weighted && attention.valueWeighted(layer, head)) || attention.matrix(layer, head);
}

/** Sums of the chosen queries' rows, [Lk], or of the chosen keys' columns, [Lq]. */
export function sumsOf(
  attention: Attention,
  matrix: Float32Array,
  direction: Direction,
  chosen: readonly number[],
): Float32Array {
  const { queryLength, keyLength } = attention;
  const sums = new Float32Array(direction === "from" ? keyLength : queryLength);
  for (const token of chosen)
    for (let i = 0; i < sums.length; i++)
      sums[i]! += matrix[direction === "from" ? token * keyLength + i : i * keyLength + token]!;
  return sums;
}

/** −∞ of scores and 0 of weights are no looks. */
const isLook = (amount: number): boolean =>
  amount !== 0 && amount !== Number.NEGATIVE_INFINITY && !Number.isNaN(amount);

/** Places of the strongest looks, the strongest first: `count` of them, or all from `threshold` on. Of equal ones the earlier comes first. */
export function strongest(
  amounts: Float32Array,
  { count = Number.POSITIVE_INFINITY, threshold = Number.NEGATIVE_INFINITY },
): number[] {
  const places: number[] = [];
  amounts.forEach((amount, place) => {
    if (isLook(amount) && amount >= threshold) places.push(place);
  });
  return places.sort((a, b) => amounts[b]! - amounts[a]! || a - b).slice(0, count);
}

/** The largest of them that is finite, without its sign. */
export function largestOf(amounts: Float32Array): number {
  let most = 0;
  for (let i = 0; i < amounts.length; i++) {
    const size = Math.abs(amounts[i]!); // no comparison with NaN is true
    if (size > most && size < Number.POSITIVE_INFINITY) most = size;
  }
  return most;
}

/** Of two scores the one farthest from 0; −∞, which is masked, gives way to any other. NaN is never lost. */
export function stronger(a: number, b: number): number {
  if (a === Number.NEGATIVE_INFINITY || Number.isNaN(b)) return b;
  if (b === Number.NEGATIVE_INFINITY || Number.isNaN(a)) return a;
  return Math.abs(b) > Math.abs(a) ? b : a;
}
