/** A float64 reference of the multi-head layer (CONTRACT §4): four projections around referenceAttention. */
import { type ReferenceOptions, type ReferenceResult, referenceAttention, type Shape } from "./reference.ts";
import { foldHeads, splitHeads } from "./reference-data.ts";
import { type ReferenceRotary, referenceRotary } from "./reference-rotary.ts";

export interface LayerShape {
  batch: number;
  queryLength: number;
  keyLength: number;
  embedDim: number;
  heads: number;
  kvHeads: number;
  keyDim: number;
  valueDim: number;
}

/** Weights are [outputs, inputs], as in PyTorch; absent biases are zero. */
export interface LayerParameters {
  queryWeight: ArrayLike<number>;
  queryBias?: ArrayLike<number>;
  keyWeight: ArrayLike<number>;
  keyBias?: ArrayLike<number>;
  valueWeight: ArrayLike<number>;
  valueBias?: ArrayLike<number>;
  outputWeight: ArrayLike<number>;
  outputBias?: ArrayLike<number>;
}

/** y[r, o] = Σ x[r, i]·w[o, i] + bias[o] */
export function referenceLinear(
  x: ArrayLike<number>,
  weight: ArrayLike<number>,
  bias: ArrayLike<number> | undefined,
  inputs: number,
  outputs: number,
): Float64Array {
  const rows = x.length / inputs;
  const y = new Float64Array(rows * outputs);
  for (let r = 0; r < rows; r++) {
    for (let o = 0; o < outputs; o++) {
      let sum = bias ? bias[o]! : 0;
      for (let i = 0; i < inputs; i++) sum += x[r * inputs + i]! * weight[o * inputs + i]!;
      y[r * outputs + o] = sum;
    }
  }
  return y;
}

/** Splits PyTorch's names into projections: `in_proj_weight` holds query, key and value rows one after the other. */
export function parametersOfTorch(state: Record<string, ArrayLike<number>>, shape: LayerShape): LayerParameters {
  const { embedDim, heads, kvHeads, keyDim, valueDim } = shape;
  const kvWidth = (embedDim / heads) * kvHeads;
  const widths = [embedDim, kvWidth, kvWidth];
  const cut = (name: string, part: number, width: number): Float64Array => {
    const all = Float64Array.from(state[name] as ArrayLike<number>);
    const start = widths.slice(0, part).reduce((sum, rows) => sum + rows, 0) * width;
    return all.subarray(start, start + widths[part]! * width);
  };
  const packed = "in_proj_weight" in state;
  const weight = (part: number, name: string, width: number) =>
    packed ? cut("in_proj_weight", part, width) : (state[name] as ArrayLike<number>);
  const bias = (part: number) => ("in_proj_bias" in state ? cut("in_proj_bias", part, 1) : undefined);
  return {
    queryWeight: weight(0, "q_proj_weight", embedDim),
    keyWeight: weight(1, "k_proj_weight", keyDim),
    valueWeight: weight(2, "v_proj_weight", valueDim),
    queryBias: bias(0),
    keyBias: bias(1),
    valueBias: bias(2),
    outputWeight: state["out_proj.weight"] as ArrayLike<number>,
    outputBias: state["out_proj.bias"],
  };
}

/** Queries and keys turned by their positions, slot by slot in every batch row: [B, Lq] and [B, Lk]. */
export interface LayerRotary {
  options: ReferenceRotary;
  queryPositions: ArrayLike<number>;
  keyPositions: ArrayLike<number>;
}

/** x [B, Lq, embedDim], keys [B, Lk, keyDim], values [B, Lk, valueDim]; `output` of the result is [B, Lq, embedDim]. */
export function referenceLayer(
  parameters: LayerParameters,
  shape: LayerShape,
  x: ArrayLike<number>,
  keys: ArrayLike<number>,
  values: ArrayLike<number>,
  options: ReferenceOptions = {},
  rotary?: LayerRotary,
): ReferenceResult {
  const { batch, queryLength, keyLength, embedDim, heads, kvHeads, keyDim, valueDim } = shape;
  const headDim = embedDim / heads;
  const kvWidth = headDim * kvHeads;
  const p = parameters;
  const q = referenceLinear(x, p.queryWeight, p.queryBias, embedDim, embedDim);
  const k = referenceLinear(keys, p.keyWeight, p.keyBias, keyDim, kvWidth);
  const v = referenceLinear(values, p.valueWeight, p.valueBias, valueDim, kvWidth);
  const inner: Shape = { batch, heads, kvHeads, queryLength, keyLength, headDim, valueDim: headDim };
  const turned = (data: Float64Array, length: number, count: number, positions?: ArrayLike<number>) => {
    const split = splitHeads(data, batch, length, count, headDim);
    if (!rotary || !positions) return split;
    const each = Array.from({ length: batch * count * length }, (_, row) => {
      return positions[Math.floor(row / (count * length)) * length + (row % length)]!;
    });
    return referenceRotary(split, headDim, each, rotary.options);
  };
  const attended = referenceAttention(
    turned(q, queryLength, heads, rotary?.queryPositions),
    turned(k, keyLength, kvHeads, rotary?.keyPositions),
    splitHeads(v, batch, keyLength, kvHeads, headDim),
    inner,
    options,
  );
  const context = foldHeads(attended.output, batch, heads, queryLength, headDim);
  return { ...attended, output: referenceLinear(context, p.outputWeight, p.outputBias, embedDim, embedDim) };
}
