import { type ErrorCode, fail, kindOf, refuse, show } from "./errors.js";
import { readValues } from "./tensors.js";

/** The numbers of an array, a typed array, or a tensor that holds either. */
function listOf(value: unknown): ArrayLike<unknown> | undefined {
  const isList = (data: unknown) => Array.isArray(data) || (ArrayBuffer.isView(data) && kindOf(data) !== "DataView");
  const data = isList(value) ? value : (value as { data?: unknown } | null | undefined)?.data;
  return isList(data) ? (data as ArrayLike<unknown>) : undefined;
}

/** Integers from `smallest` to `largest`, as many as `counts` allows; `each` says what one is for. BigInts are numbers, too. */
export function readIntegers(
  value: unknown,
  where: string,
  each: string,
  counts: readonly number[],
  [smallest, largest]: readonly [number, number],
  code: ErrorCode = "bad-option",
): Int32Array {
  const list = listOf(value);
  if (list === undefined) {
    return refuse(code, where, `integers, ${each} (number[], Int32Array or BigInt64Array)`, value);
  }
  if (!counts.includes(list.length)) {
    fail(code, `${where}: ${list.length} values; give ${each}: ${[...new Set(counts)].join(" or ")} of them.`);
  }
  return Int32Array.from(list, (given, at) => {
    const n = typeof given === "bigint" ? Number(given) : given;
    if (Number.isInteger(n) && (n as number) >= smallest && (n as number) <= largest) return n as number;
    return fail(code, `${where}: values are integers from ${smallest} to ${largest}; [${at}] is ${show(given)}.`);
  });
}

/** One number per head. */
export function readPerHead(
  value: unknown,
  where: string,
  heads: number,
  smallest: number,
  code: ErrorCode = "bad-option",
): Float32Array {
  const list = Array.isArray(value) || ArrayBuffer.isView(value) ? listOf(value)! : readValues(value, where).source;
  if (list.length !== heads)
    fail(code, `${where}: ${list.length} values for ${heads} heads; give one per head, [${heads}].`);
  return Float32Array.from(list, (n, at) => {
    if (typeof n === "number" && n >= smallest && n < Infinity) return n;
    return fail("bad-values", `${where}: [${at}] is ${show(n)}; accepted are numbers below Infinity, not NaN.`);
  });
}
