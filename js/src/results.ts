import { fail } from "./errors.js";
import { type Block, checkBytes, type Heap, type Job, type Output } from "./heap.js";
import { later, type Reader, readOptions } from "./options.js";
import { product, readTarget, tensorOf } from "./tensors.js";
import type { Tensor, WasmTensor } from "./types.js";
import { isWasmTensor } from "./wasm-tensor.js";

const OUT = { output: later<unknown>(), weights: later<unknown>(), logSumExp: later<unknown>() };

/** A result under its name: where the core writes it, and how the caller gets it. */
export interface Result {
  readonly output: Output;
  /** How errors name its target. */
  readonly where: string;
  tensor(): Tensor | WasmTensor;
}

export type Results<Name extends string = keyof typeof OUT> = Partial<Record<Name, Result>>;

export const tensorsOf = (results: Results<string>): Record<string, Tensor | WasmTensor> =>
  Object.fromEntries(Object.entries(results).map(([name, result]) => [name, result!.tensor()]));

/**
 * Plans the results that have dims, of those in the table `named`. Call it after every job.input(). No target may share memory with another,
 * nor with those of `earlier` plans of the same job.
 */
export function planResults<Name extends string = keyof typeof OUT>(
  job: Job,
  heap: Heap,
  dims: Partial<Record<Name, readonly number[] | undefined>>,
  given?: unknown,
  named: Record<string, Reader<unknown>> = OUT,
  where = "out",
  earlier: Results<string> = {},
): Results<Name> {
  const out = readOptions(given, named, where);
  const results: Results<Name> = {};
  for (const name of Object.keys(named) as Name[]) {
    const own = dims[name];
    const wanted = out[name];
    if (own === undefined) {
      if (wanted !== undefined) fail("bad-out", `${where}.${name} is given, but option ${name} does not ask for it.`);
      continue;
    }
    checkBytes(product(own) * 4, `${name} of dims [${own.join(", ")}]`);
    const target = wanted === undefined ? undefined : readTarget(wanted, own, `${where}.${name}`, heap);
    const others = Object.values<Result | undefined>({ ...earlier, ...results });
    const other = target && others.find((one) => one?.output.target && overlap(one.output.target, target));
    if (other) fail("bad-out", `${where}.${name} and ${other.where} share memory; give each its own.`);
    const output = job.output(product(own), target);
    results[name] = {
      output,
      where: `${where}.${name}`,
      tensor: () =>
        isWasmTensor(wanted) ? wanted : tensorOf((target as Float32Array | undefined) ?? output.values!, own),
    };
  }
  return results;
}

function overlap(a: Float32Array | Block, b: Float32Array | Block): boolean {
  if (a === b) return true;
  if ("heap" in a || "heap" in b || a.buffer !== b.buffer) return false;
  return a.byteOffset < b.byteOffset + b.byteLength && b.byteOffset < a.byteOffset + a.byteLength;
}
