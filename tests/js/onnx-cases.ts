/** Cases of ONNX's Attention (opset 23 and 24): read from a file or drawn at random, run by the package and by the reference. */
import { expect } from "@jest/globals";
import { type AttentionOptions, type Lookback, masks, type Tensor, type WeightsKind } from "lookback";
import { type Outcome, run } from "./accuracy-check.ts";
import type { ReferenceOptions, ReferenceResult, Shape } from "./reference.ts";
import { type Operands, refer, splitHeads } from "./reference-data.ts";

export interface OnnxTensor {
  dtype: "f32" | "bool" | "i64";
  dims: number[];
  data: ArrayLike<number | "NaN" | "Inf" | "-Inf">;
}

export interface OnnxCase {
  op: string;
  name: string;
  opset: number;
  attrs: Partial<
    Record<"is_causal" | "kv_num_heads" | "q_num_heads" | "qk_matmul_output_mode" | "scale" | "softcap", number>
  >;
  inputs: string[];
  outputs: string[];
  tensors: Record<string, OnnxTensor>;
}

/** ONNX's qk_matmul_output_mode 0–3. */
export const KINDS: readonly WeightsKind[] = ["scores", "capped", "masked", "softmax"];

const special: Record<string, number> = { NaN, Inf: Infinity, "-Inf": -Infinity };
export const numbers = ({ data }: OnnxTensor): number[] =>
  Array.from(data, (x) => (typeof x === "string" ? special[x]! : x));
export const floats = (tensor: OnnxTensor): Tensor => ({
  data: tensor.data instanceof Float32Array ? tensor.data : Float32Array.from(numbers(tensor)),
  dims: tensor.dims,
});

const has = (item: OnnxCase, name: string) => item.inputs.includes(name);
export const kindOf = ({ attrs, outputs }: OnnxCase): WeightsKind | undefined =>
  outputs.includes("qk_matmul_output") ? KINDS[attrs.qk_matmul_output_mode ?? 0] : undefined;

/** Keys of a past and of this call together. */
function totalLength(item: OnnxCase): number {
  const { K, past_key } = item.tensors;
  const own = K!.dims.length === 3 ? K!.dims[1]! : K!.dims[2]!;
  return own + (has(item, "past_key") ? past_key!.dims[2]! : 0);
}

/** The operator's `attn_mask`: true = may attend, floats are added; columns that it lacks are hidden. */
function maskOption(item: OnnxCase): Pick<AttentionOptions, "mask" | "bias"> {
  const given = has(item, "attn_mask") ? item.tensors.attn_mask! : undefined;
  if (!given) return {};
  const keyLength = totalLength(item);
  const { dims } = given;
  const columns = dims.at(-1)!;
  if (given.dtype === "bool") {
    const mask = { data: Uint8Array.from(numbers(given)), dims };
    return { mask: columns === keyLength ? mask : masks.fromONNX(mask, { keyLength }) };
  }
  if (columns === keyLength) return { bias: floats(given) };
  const rows = given.data.length / columns;
  const data = new Float32Array(rows * keyLength).fill(-Infinity);
  const own = floats(given).data;
  for (let row = 0; row < rows; row++) data.set(own.subarray(row * columns, (row + 1) * columns), row * keyLength);
  return { bias: { data, dims: [...dims.slice(0, -1), keyLength] } };
}

/** ONNX's attributes and inputs in the package's words. */
export function optionsOf(item: OnnxCase): AttentionOptions {
  const { attrs, tensors } = item;
  const options: AttentionOptions = maskOption(item);
  if (attrs.scale !== undefined) options.scale = attrs.scale;
  if (attrs.softcap) options.softcap = attrs.softcap;
  const padded = has(item, "nonpad_kv_seqlen");
  if (padded) options.keyLengths = BigInt64Array.from(numbers(tensors.nonpad_kv_seqlen!), BigInt);
  if (attrs.is_causal) {
    options.causal = true;
    // With a cache the offset is its length; with padding the last query stands at the last valid key; else ONNX starts at the top left.
    if (!has(item, "past_key")) options.queryOffset = padded ? "end" : "start";
  }
  const kind = kindOf(item);
  return kind ? { ...options, weights: kind } : options;
}

export interface CaseOutcome extends Outcome {
  present?: { keys: Tensor; values: Tensor };
}

/** The case by `lb`; past keys and values are what a cache already holds. */
export function runCase(lb: Lookback, item: OnnxCase): CaseOutcome {
  const { tensors } = item;
  const operands = operandsOf(item);
  const layout = tensors.Q!.dims.length === 3 ? "3-D" : "4-D";
  const options = optionsOf(item);
  if (!has(item, "past_key")) return run(lb, operands, options, layout);
  const [pastKey, pastValue] = [floats(tensors.past_key!), floats(tensors.past_value!)];
  const [batch, kvHeads, past, headDim] = pastKey.dims as [number, number, number, number];
  const capacity = past + operands.shape.keyLength;
  const cache = lb.kvCache({ batch, kvHeads, headDim, valueDim: pastValue.dims[3]!, capacity });
  try {
    cache.append(pastKey, pastValue);
    const outcome = run(lb, operands, { ...options, cache }, layout);
    expect(Array.from(cache.lengths)).toEqual(new Array(batch).fill(capacity));
    return { ...outcome, present: cache.read() };
  } finally {
    cache.dispose();
  }
}

/** [B, H, L, width] of an operand in either layout. */
function operandOf(tensor: OnnxTensor, heads: number | undefined) {
  const { data } = floats(tensor);
  const [batch, second, third, fourth] = tensor.dims as [number, number, number, number?];
  if (fourth !== undefined) return { batch, heads: second, length: third, width: fourth, data };
  const width = third / heads!;
  return { batch, heads: heads!, length: second, width, data: splitHeads(data, batch, second, heads!, width) };
}

function operandsOf({ tensors, attrs }: OnnxCase): Operands {
  const q = operandOf(tensors.Q!, attrs.q_num_heads);
  const k = operandOf(tensors.K!, attrs.kv_num_heads);
  const v = operandOf(tensors.V!, attrs.kv_num_heads);
  const shape: Shape = {
    batch: q.batch,
    heads: q.heads,
    kvHeads: k.heads,
    queryLength: q.length,
    keyLength: k.length,
    headDim: q.width,
    valueDim: v.width,
  };
  return { shape, q: q.data, k: k.data, v: v.data };
}

/** [B, H, past + L, width] */
export function joinLengths(past: Float32Array, own: Float32Array, heads: number, width: number): Float32Array {
  const [pastSize, ownSize] = [past.length / heads, own.length / heads];
  if (pastSize % width !== 0 || ownSize % width !== 0) throw new Error("rows are not whole");
  const joined = new Float32Array(past.length + own.length);
  for (let head = 0; head < heads; head++) {
    joined.set(past.subarray(head * pastSize, (head + 1) * pastSize), head * (pastSize + ownSize));
    joined.set(own.subarray(head * ownSize, (head + 1) * ownSize), head * (pastSize + ownSize) + pastSize);
  }
  return joined;
}

export interface CaseReference {
  result: ReferenceResult;
  shape: Shape;
  /** Past and own keys and values together. */
  keys: Float32Array;
  values: Float32Array;
}

export function referCase(item: OnnxCase): CaseReference {
  const { tensors } = item;
  const { shape: own, q, k, v } = operandsOf(item);
  const { weights: _, ...options } = optionsOf(item) as ReferenceOptions & { weights?: unknown };
  if (!has(item, "past_key"))
    return { result: refer({ shape: own, q, k, v }, options), shape: own, keys: k, values: v };
  const past = tensors.past_key!.dims[2]!;
  const heads = own.batch * own.kvHeads;
  const keys = joinLengths(floats(tensors.past_key!).data, k, heads, own.headDim);
  const values = joinLengths(floats(tensors.past_value!).data, v, heads, own.valueDim);
  const shape = { ...own, keyLength: past + own.keyLength };
  return { result: refer({ shape, q, k: keys, v: values }, { ...options, queryOffset: past }), shape, keys, values };
}
