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
  tensor(): Tensor | WasmTensor;
}

export type Results<Name extends string = keyof typeof OUT> = Partial<Record<Name, Result>>;

/** Plans the results that have dims, of those in the table `named`. Call it after every job.input(). */
export function planResults<Name extends string = keyof typeof OUT>(
  job: Job,
  heap: Heap,
  dims: Partial<Record<Name, readonly number[] | undefined>>,
  given?: unknown,
  named: Record<string, Reader<unknown>> = OUT,
): Results<Name> {
  const out = readOptions(given, named, "out");
  const results: Results<Name> = {};
  const targets: { name: string; target: ReturnType<typeof readTarget> }[] = [];
  for (const name of Object.keys(named) as Name[]) {
    const own = dims[name];
    const wanted = out[name];
    if (own === undefined) {
      if (wanted !== undefined) fail("bad-out", `out.${name} is given, but option ${name} does not ask for it.`);
      continue;
    }
    checkBytes(product(own) * 4, `${name} of dims [${own.join(", ")}]`);
    const target = wanted === undefined ? undefined : readTarget(wanted, own, `out.${name}`, heap);
    if (target) {
      const other = targets.find((earlier) => overlap(earlier.target, target));
      if (other) fail("bad-out", `out.${name} and out.${other.name} share memory; give each its own.`);
      targets.push({ name, target });
    }
    const output = job.output(product(own), target);
    results[name] = {
      output,
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
