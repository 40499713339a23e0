/** Weights that are faded because others are stronger, and sums along the axes. */

export interface Filter {
  /** Weights below it are faded. */
  readonly threshold: number;
  /** Of each query the k strongest stay; 0 = all. Of equal ones the earlier keys do (R13). */
  readonly topK: number;
}

export const isFiltering = ({ threshold, topK }: Filter): boolean => threshold > 0 || topK > 0;

/** A copy in which every weight that does not stay is negative. */
export function faded(weights: Float32Array, rows: number, columns: number, filter: Filter): Float32Array {
  const result = weights.slice();
  const cut = new Float32Array(Math.min(filter.topK, columns));
  for (let row = 0; row < rows; row++) {
    const values = result.subarray(row * columns, (row + 1) * columns);
    const few = cut.length > 0 && cut.length < columns;
    const least = few ? kthLargest(values, cut) : 0;
    // So many of those that equal the last one still have a place.
    let places = few ? cut.length : columns;
    if (few) for (const value of values) if (value > least) places--;
    for (let key = 0; key < columns; key++) {
      const value = values[key]!;
      const stays = value > least || (value === least && places-- > 0) || !few;
      if (!stays || value < filter.threshold) values[key] = -value;
    }
  }
  return result;
}

/** The smallest of the k largest; `list` holds k numbers and is written to. */
function kthLargest(values: Float32Array, list: Float32Array): number {
  let count = 0;
  for (const value of values) {
    if (count === list.length && value <= list[count - 1]!) continue;
    let at = count < list.length ? count++ : count - 1;
    for (; at > 0 && list[at - 1]! < value; at--) list[at] = list[at - 1]!;
    list[at] = value;
  }
  return list[count - 1] ?? 0;
}

export type MarginalKind = "mean" | "sum" | "none";
export const MARGINALS: readonly MarginalKind[] = ["mean", "sum", "none"];

export interface Marginals {
  /** Of each query, over its keys. */
  readonly queries: Float64Array;
  /** Of each key, over the queries. */
  readonly keys: Float64Array;
}

/** Sums or means along both axes; NaN and masked scores are left out. */
export function marginalsOf(matrix: Float32Array, rows: number, columns: number, kind: "mean" | "sum"): Marginals {
  const queries = new Float64Array(rows);
  const keys = new Float64Array(columns);
  for (let row = 0; row < rows; row++) queries[row] = addRow(matrix, row * columns, keys);
  if (kind === "mean") {
    for (let row = 0; row < rows; row++) queries[row]! /= columns;
    for (let key = 0; key < columns; key++) keys[key]! /= rows;
  }
  return { queries, keys };
}

/** Adds a row to the columns' sums, and returns its own. */
function addRow(matrix: Float32Array, from: number, keys: Float64Array): number {
  let sum = 0;
  for (let key = 0; key < keys.length; key++) {
    const value = matrix[from + key]!;
    if (value === 0 || value - value !== 0) continue;
    sum += value;
    keys[key]! += value;
  }
  return sum;
}

/** Lengths of bars closer together than this say nothing: a strip has no room for the difference. */
const SAME = 0.05;

/** What is drawn of a marginal: each as a share of the largest; null where all are alike, as the sums of softmax's rows are. */
export function sharesOf(values: Float64Array): Float64Array | null {
  const sizes = values.map(Math.abs);
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  for (const size of sizes) [least, most] = [Math.min(least, size), Math.max(most, size)];
  return most === 0 || (sizes.length > 1 && least >= (1 - SAME) * most) ? null : sizes.map((size) => size / most);
}

/** What is drawn beside a matrix; null where an axis says nothing. */
export interface Bars {
  readonly queries: Float64Array | null;
  readonly keys: Float64Array | null;
}

/** null: neither axis says anything. */
export function barsOf(marginals: Marginals): Bars | null {
  const [queries, keys] = [sharesOf(marginals.queries), sharesOf(marginals.keys)];
  return queries || keys ? { queries, keys } : null;
}

/** The number with the strongest colour: the largest weight, or the score farthest from 0. */
export function extentOf(matrix: Float32Array): number {
  let extent = 0;
  for (let i = 0; i < matrix.length; i++) {
    const size = Math.abs(matrix[i]!);
    if (size > extent && size !== Number.POSITIVE_INFINITY) extent = size;
  }
  return extent;
}
