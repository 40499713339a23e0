import type { Finding } from "./diagnose-types.js";

/** Longer lists of numbers end in '…'. */
const MAX_RANGES = 6;

/** [0, 1, 2, 5] as "0–2, 5". */
function ranges(numbers: readonly number[]): string {
  const parts: string[] = [];
  for (let at = 0; at < numbers.length; at++) {
    const first = numbers[at]!;
    while (numbers[at + 1] === numbers[at]! + 1) at++;
    parts.push(first === numbers[at] ? `${first}` : `${first}–${numbers[at]}`);
  }
  return parts.slice(0, MAX_RANGES).join(", ") + (parts.length > MAX_RANGES ? ", …" : "");
}

/** The indices where `flags` is set. */
export const listed = (flags: ArrayLike<unknown>): number[] => [...Array(flags.length).keys()].filter((i) => flags[i]);

/** A number as messages show it. */
export const brief = (value: number): string => String(Number(value.toPrecision(3)));

export const percent = (share: number): string => `${brief(100 * share)} %`;

/** "1 row", "2 rows" */
export const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`;

export type Places = Pick<Finding, "batches" | "heads" | "rows" | "keys">;

const NAMES = { batches: "batch row", heads: "head", rows: "row", keys: "key" };

/** " (heads 0–1, row 3)" */
export function places(at: Places): string {
  const parts = Object.entries(NAMES).flatMap(([name, noun]) => {
    const numbers = at[name as keyof Places];
    return numbers ? [`${noun}${numbers.length > 1 ? "s" : ""} ${ranges(numbers)}`] : [];
  });
  return parts.length > 0 ? ` (${parts.join(", ")})` : "";
}

/** How many of [batch, heads, length] `is` holds for, and where; batch rows and heads are listed where they are not all. */
export function where(
  [batch, heads, length]: readonly [number, number, number],
  axis: "rows" | "keys",
  is: (at: number, b: number, h: number, i: number) => unknown,
): { n: number; at: Places } {
  const [inBatches, inHeads, along] = [new Uint8Array(batch), new Uint8Array(heads), new Uint8Array(length)];
  let n = 0;
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) {
      for (let i = 0; i < length; i++) {
        if (!is((b * heads + h) * length + i, b, h, i)) continue;
        n++;
        inBatches[b] = inHeads[h] = along[i] = 1;
      }
    }
  }
  const batches = inBatches.includes(0) && { batches: listed(inBatches) };
  return { n, at: { ...batches, ...(inHeads.includes(0) && { heads: listed(inHeads) }), [axis]: listed(along) } };
}
