import type { Finding } from "./diagnose-types.js";

/** Longer lists of numbers end in '…'. */
const MAX_RANGES = 6;

/** [0, 1, 2, 5] as "0–2, 5". */
export function ranges(numbers: readonly number[]): string {
  const parts: string[] = [];
  for (let at = 0; at < numbers.length; at++) {
    const first = numbers[at]!;
    while (numbers[at + 1] === numbers[at]! + 1) at++;
    if (parts.length === MAX_RANGES) return `${parts.join(", ")}, …`;
    parts.push(first === numbers[at] ? `${first}` : `${first}–${numbers[at]}`);
  }
  return parts.join(", ");
}

/** The indices where `flags` is set. */
export const listed = (flags: ArrayLike<unknown>): number[] =>
  Array.from(flags, (flag, i) => (flag ? i : -1)).filter((i) => i >= 0);

export const percent = (share: number): string => `${Number((share * 100).toPrecision(share < 0.01 ? 1 : 2))} %`;

/** A number as messages show it. */
export const brief = (value: number): string => String(Number(value.toPrecision(3)));

export const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`;

type Places = Pick<Finding, "batches" | "heads" | "rows" | "keys">;

/** " (heads 0–1, row 3)" */
export function places(at: Places): string {
  const names = { batches: "batch row", heads: "head", rows: "row", keys: "key" };
  const parts = (Object.keys(names) as (keyof Places)[])
    .filter((name) => at[name]?.length)
    .map((name) => `${names[name]}${at[name]!.length > 1 ? "s" : ""} ${ranges(at[name]!)}`);
  return parts.length > 0 ? ` (${parts.join(", ")})` : "";
}

const GRAVITY = { error: 0, warning: 1, info: 2 };

export const byGravity = (a: Finding, b: Finding): number => GRAVITY[a.severity] - GRAVITY[b.severity];
