import { fail, refuse, shape } from "../errors.js";
import { type Heap, heaps, Job } from "../heap.js";
import { finite, later, notNegative, oneOf, readOptions } from "../options.js";
import { product, readFloats, tensorOf } from "../tensors.js";
import type { FloatTensor, Lookback, Tensor } from "../types.js";

export interface NormOptions {
  /** The dims of x from `axis` on; default all 1. */
  weight?: FloatTensor;
  /** Default 1e-5. */
  epsilon?: number;
  /** The first of the dims that are normalised together; negative numbers count from the end. Default -1. */
  axis?: number;
}
export interface LayerNormOptions extends NormOptions {
  /** Like `weight`; default none. */
  bias?: FloatTensor;
}
export interface GeluOptions {
  /** 'tanh' is GPT-2's approximation. Default 'none': by erf. */
  approximate?: "none" | "tanh";
}

const NORM = { weight: later<unknown>(), epsilon: notNegative, axis: finite };
const LAYER_NORM = { ...NORM, bias: later<unknown>() };
const GELU = { approximate: oneOf("none", "tanh") };
const KINDS = ["layerNorm", "rmsNorm"];
const ACTIVATIONS = { tanh: 0, none: 1, silu: 2 };

export function heapOf(lb: unknown, where: string): Heap {
  const heap = typeof lb === "object" && lb !== null ? heaps.get(lb) : undefined;
  return heap ?? refuse("bad-option", `${where}: the first argument`, "an instance that createLookback() made", lb);
}

/** (x − mean) / √(variance + epsilon) · weight + bias, over the dims of x from `axis` on. */
export const layerNorm = (lb: Lookback, x: FloatTensor, options?: LayerNormOptions): Tensor =>
  norm("layerNorm", lb, x, readOptions(options, LAYER_NORM, "layerNorm"));

/** x / √(mean of x² + epsilon) · weight, over the dims of x from `axis` on. */
export const rmsNorm = (lb: Lookback, x: FloatTensor, options?: NormOptions): Tensor =>
  norm("rmsNorm", lb, x, readOptions(options, NORM, "rmsNorm"));

/** x · Φ(x). */
export function gelu(lb: Lookback, x: FloatTensor, options?: GeluOptions): Tensor {
  const { approximate } = readOptions(options, GELU, "gelu");
  return activation("gelu", ACTIVATIONS[approximate ?? "none"], lb, x);
}

/** x / (1 + e^−x). */
export const silu = (lb: Lookback, x: FloatTensor): Tensor => activation("silu", ACTIVATIONS.silu, lb, x);

function norm(
  where: string,
  lb: unknown,
  x: unknown,
  { weight, bias, epsilon = 1e-5, axis = -1 }: { weight?: unknown; bias?: unknown; epsilon?: number; axis?: number },
): Tensor {
  const heap = heapOf(lb, where);
  const { source, dims } = readFloats(x, "x", heap);
  const first = axis < 0 ? axis + dims.length : axis;
  if (!Number.isInteger(first) || first < 0 || first >= dims.length)
    refuse(
      "bad-option",
      `${where}: axis`,
      `an integer from ${-dims.length} to ${dims.length - 1} for dims ${shape(dims)}`,
      axis,
    );
  const own = dims.slice(first);
  const width = product(own);
  if (width < 1)
    fail("bad-dims", `${where}: there is nothing to normalise in dims ${shape(dims)} from axis ${axis} on.`);
  const job = new Job(heap, where);
  const input = job.input(source);
  const [weights, biases] = Object.entries({ weight, bias }).map(([name, value]) => {
    if (value === undefined) return undefined;
    const operand = readFloats(value, `${where}: ${name}`, heap);
    if (product(operand.dims) !== width)
      fail(
        "input-width",
        `${where}: ${name} must have dims ${shape(own)}, as x ${shape(dims)} from axis ${axis} on; received ${shape(operand.dims)}.`,
      );
    return job.input(operand.source);
  });
  const output = job.output(product(dims));
  job.run(undefined, (raw, at) =>
    raw.norm({
      kind: KINDS.indexOf(where),
      epsilon,
      rows: product(dims.slice(0, first)),
      width,
      input: at(input),
      weight: at(weights),
      bias: at(biases),
      output: at(output.place),
    }),
  );
  return tensorOf(output.values!, dims);
}

function activation(where: string, kind: number, lb: unknown, x: unknown): Tensor {
  const heap = heapOf(lb, where);
  const { source, dims } = readFloats(x, "x", heap);
  const job = new Job(heap, where);
  const input = job.input(source);
  const output = job.output(product(dims));
  job.run(undefined, (raw, at) => raw.activation(kind, at(input), product(dims), at(output.place)));
  return tensorOf(output.values!, dims);
}
