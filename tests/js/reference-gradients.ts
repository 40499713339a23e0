/** A float64 reference of the gradients of attention (R20): the chain rule from the output back, row by row. Shares no code with the package. */
import { isVisible, offsetOfRow, type ReferenceOptions, readBroadcast, type Shape } from "./reference.ts";
import { type Operands, refer } from "./reference-data.ts";
import { dropoutOfRow } from "./reference-dropout.ts";

const { exp, floor } = Math;

export interface ReferenceGradients {
  /** [B, H, Lq, D], [B, Hkv, Lk, D], [B, Hkv, Lk, Dv]. */
  gradQ: Float64Array;
  gradK: Float64Array;
  gradV: Float64Array;
  /** As the bias, and [H]; empty without. */
  gradBias: Float64Array;
  gradSinks: Float64Array;
}

/** Where a broadcast operand is read for [b, h, i, j]. */
function placeOf(dims: readonly number[], b: number, h: number, i: number, j: number): number {
  const places = Int32Array.from({ length: dims.reduce((a, c) => a * c, 1) }, (_, n) => n);
  return readBroadcast({ data: places, dims }, b, h, i, j);
}

/** `gradOutput` is [B, H, Lq, Dv]. */
export function referenceGradients(
  operands: Operands,
  options: ReferenceOptions,
  gradOutput: ArrayLike<number>,
): ReferenceGradients {
  const { shape, q, k, v } = operands;
  const { batch, heads, kvHeads, queryLength, keyLength, headDim, valueDim } = shape;
  const forward = refer(operands, options);
  const { softcap, bias, sinks, dropout } = options;
  const scale = options.scale ?? 1 / Math.sqrt(headDim);
  const result: ReferenceGradients = {
    gradQ: new Float64Array(q.length),
    gradK: new Float64Array(k.length),
    gradV: new Float64Array(v.length),
    gradBias: new Float64Array(bias?.data.length ?? 0),
    gradSinks: new Float64Array(sinks?.length ?? 0),
  };
  const add = (target: Float64Array, at: number, term: number) => {
    target[at] = target[at]! + term;
  };
  for (let row = 0; row < batch * heads * queryLength; row++) {
    const [b, h, i] = [floor(row / queryLength / heads), floor(row / queryLength) % heads, row % queryLength];
    const firstKey = (b * kvHeads + floor((h * kvHeads) / heads)) * keyLength;
    const factor = dropout ? dropoutOfRow(dropout, b, h, i + offsetOfRow(options, shape, b)) : () => 1;
    const seen = visibleKeys(options, shape, b, h, i);
    const gradWeight = new Float64Array(keyLength);
    let mean = 0;
    for (const j of seen) {
      const weight = forward.softmax[row * keyLength + j]!;
      for (let c = 0; c < valueDim; c++) {
        const gradient = gradOutput[row * valueDim + c]! * factor(j);
        add(gradWeight, j, gradient * v[(firstKey + j) * valueDim + c]!);
        add(result.gradV, (firstKey + j) * valueDim + c, gradient * weight);
      }
      mean += weight * gradWeight[j]!;
    }
    for (const j of seen) {
      let gradient = forward.softmax[row * keyLength + j]! * (gradWeight[j]! - mean);
      if (bias) add(result.gradBias, placeOf(bias.dims, b, h, i, j), gradient);
      if (softcap) gradient *= 1 - (forward.capped[row * keyLength + j]! / softcap) ** 2;
      for (let d = 0; d < headDim; d++) {
        add(result.gradQ, row * headDim + d, scale * gradient * k[(firstKey + j) * headDim + d]!);
        add(result.gradK, (firstKey + j) * headDim + d, scale * gradient * q[row * headDim + d]!);
      }
    }
    if (sinks && seen.length > 0) add(result.gradSinks, h, -exp(sinks[h]! - forward.logSumExp[row]!) * mean);
  }
  return result;
}

function visibleKeys(options: ReferenceOptions, shape: Shape, b: number, h: number, i: number): number[] {
  return Array.from({ length: shape.keyLength }, (_, j) => j).filter((j) => isVisible(options, shape, b, h, i, j));
}
