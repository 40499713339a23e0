/**
 * A float64 reference of attention, CONTRACT §2–3, in plain loops: no tiles, no online softmax, nothing shared with the package.
 * Operands are [B, H, L, width] in row-major order; other layouts are the caller's business (reference-data.ts).
 * Visibility is decided from masks, lengths and −∞ in the bias before a score is looked at (R10).
 */

import { dropoutOfRow } from "./reference-dropout.ts";

// Taken once: inside Jest's realm a look-up of a global costs more than a row of the sums below.
const { abs, exp, floor, log, log2, max, sqrt, tanh } = Math;
const NOTHING = -Infinity;

export interface Shape {
  batch: number;
  heads: number;
  kvHeads: number;
  queryLength: number;
  keyLength: number;
  headDim: number;
  valueDim: number;
}

/** Right-aligned against [B, H, Lq, Lk]; any dimension may be 1. */
export interface Broadcast<T = number> {
  data: ArrayLike<T>;
  dims: readonly number[];
}

/** The options of `lb.attention` that change its numbers, under the same names. */
export interface ReferenceOptions {
  scale?: number;
  softcap?: number;
  causal?: boolean;
  queryOffset?: "start" | "end" | number | ArrayLike<number | bigint>;
  window?: { left: number; right: number };
  mask?: Broadcast<number | boolean | bigint>;
  bias?: Broadcast;
  /** One per batch row: the valid prefix. */
  keyLengths?: ArrayLike<number | bigint>;
  /** [B, Lk], 1 = a real token. */
  keyMask?: Broadcast<number | boolean | bigint>;
  /** true = the usual slopes for this number of heads. */
  alibi?: boolean | ArrayLike<number>;
  /** One logit per head. */
  sinks?: ArrayLike<number>;
  dropout?: { p: number; seed: number };
}

export interface ReferenceResult {
  /** [B, H, Lq, Dv] */
  output: Float64Array;
  /** [B, H, Lq, Lk] each: the stages of the formula in its order. */
  scores: Float64Array;
  capped: Float64Array;
  masked: Float64Array;
  softmax: Float64Array;
  /** [B, H, Lq] */
  logSumExp: Float64Array;
  /** R22's terms per row, [B, H, Lq]: max|visible V|, and S, the largest |scale|·Σ|q·k| over visible keys. */
  largestValue: Float64Array;
  largestScore: Float64Array;
  /** The same S over every key, for 'scores' and 'capped', which cover masked keys too. */
  largestScoreOfAll: Float64Array;
}

/** Reads a broadcast operand at [b, h, i, j]. */
export function readBroadcast<T>(operand: Broadcast<T>, b: number, h: number, i: number, j: number): T {
  const { dims, data } = operand;
  const rank = dims.length;
  let flat = 0;
  for (let d = 0; d < rank; d++) {
    const size = dims[d]!;
    const fromRight = rank - d;
    const index = fromRight === 1 ? j : fromRight === 2 ? i : fromRight === 3 ? h : b;
    flat = flat * size + (size === 1 ? 0 : index);
  }
  return data[flat]!;
}

/** R6: the position of query row 0 in batch row b. */
export function offsetOfRow(options: ReferenceOptions, shape: Shape, b: number): number {
  const { queryOffset, keyLengths } = options;
  if (queryOffset === undefined || queryOffset === "start") return 0;
  if (queryOffset === "end") {
    const length = keyLengths === undefined ? shape.keyLength : Number(keyLengths[b]);
    return length - shape.queryLength;
  }
  return typeof queryOffset === "number" ? queryOffset : Number(queryOffset[b]);
}

/** R8: a key is visible iff every one of causal, window, mask, padding and −∞ in the bias allows it. */
export function isVisible(
  options: ReferenceOptions,
  shape: Shape,
  b: number,
  h: number,
  i: number,
  j: number,
): boolean {
  const position = i + offsetOfRow(options, shape, b);
  const { window, mask, bias, keyLengths, keyMask } = options;
  if (options.causal && j > position) return false;
  if (window && (j < position - window.left || j > position + window.right)) return false;
  if (mask && !readBroadcast(mask, b, h, i, j)) return false;
  if (bias && readBroadcast(bias, b, h, i, j) === NOTHING) return false;
  if (keyLengths && j >= Number(keyLengths[b])) return false;
  if (keyMask && !keyMask.data[b * shape.keyLength + j]) return false;
  return true;
}

/** Every row's visible keys as 0 and 1, [B, H, Lq, Lk]. */
export function visibility(options: ReferenceOptions, shape: Shape): Uint8Array {
  const { batch, heads, queryLength, keyLength } = shape;
  const seen = new Uint8Array(batch * heads * queryLength * keyLength);
  let at = 0;
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) {
      for (let i = 0; i < queryLength; i++) {
        for (let j = 0; j < keyLength; j++, at++) if (isVisible(options, shape, b, h, i, j)) seen[at] = 1;
      }
    }
  }
  return seen;
}

/** R17: ALiBi's slopes, of the largest power of two below `heads`, then every second one of twice that power. */
export function alibiSlopes(heads: number): number[] {
  const power = 2 ** floor(log2(heads));
  const slopes: number[] = [];
  for (let h = 1; h <= power; h++) slopes.push(2 ** ((-8 * h) / power));
  for (let h = 1; slopes.length < heads; h += 2) slopes.push(2 ** ((-8 * h) / (2 * power)));
  return slopes;
}

export function referenceAttention(
  q: ArrayLike<number>,
  k: ArrayLike<number>,
  v: ArrayLike<number>,
  shape: Shape,
  options: ReferenceOptions = {},
): ReferenceResult {
  const { batch, heads, kvHeads, queryLength, keyLength, headDim, valueDim } = shape;
  const scale = options.scale ?? 1 / sqrt(headDim);
  const { softcap, bias, sinks, dropout } = options;
  const slopes = options.alibi === true ? alibiSlopes(heads) : options.alibi || undefined;
  const rows = batch * heads * queryLength;
  const result: ReferenceResult = {
    output: new Float64Array(rows * valueDim),
    scores: new Float64Array(rows * keyLength),
    capped: new Float64Array(rows * keyLength),
    masked: new Float64Array(rows * keyLength).fill(NOTHING),
    softmax: new Float64Array(rows * keyLength),
    logSumExp: new Float64Array(rows),
    largestValue: new Float64Array(rows),
    largestScore: new Float64Array(rows),
    largestScoreOfAll: new Float64Array(rows),
  };
  let row = 0;
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) {
      const kvHead = floor((h * kvHeads) / heads);
      const firstKey = (b * kvHeads + kvHead) * keyLength;
      for (let i = 0; i < queryLength; i++, row++) {
        const visible: number[] = [];
        for (let j = 0; j < keyLength; j++) if (isVisible(options, shape, b, h, i, j)) visible.push(j);

        const sizes = scoreRow(q, k, row * headDim, firstKey, shape, scale, softcap, result, row);
        for (const size of sizes) result.largestScoreOfAll[row] = max(result.largestScoreOfAll[row]!, size);

        const position = i + offsetOfRow(options, shape, b);
        for (const j of visible) {
          let value = result.capped[row * keyLength + j]!;
          if (bias) value += readBroadcast(bias, b, h, i, j);
          if (slopes) value -= slopes[h]! * abs(position - j);
          result.masked[row * keyLength + j] = value;
          result.largestScore[row] = max(result.largestScore[row]!, sizes[j]!);
        }
        const factor = dropout ? dropoutOfRow(dropout, b, h, position) : undefined;
        finishRow(v, firstKey, visible, sinks?.[h], shape, result, row, factor);
      }
    }
  }
  return result;
}

/** Scores and capped scores of one row against every key; returns |scale|·Σ|q·k| of each. */
function scoreRow(
  q: ArrayLike<number>,
  k: ArrayLike<number>,
  queryStart: number,
  firstKey: number,
  shape: Shape,
  scale: number,
  softcap: number | undefined,
  result: ReferenceResult,
  row: number,
): Float64Array {
  const { keyLength, headDim } = shape;
  const sizes = new Float64Array(keyLength);
  for (let j = 0; j < keyLength; j++) {
    let dot = 0;
    let size = 0;
    for (let d = 0; d < headDim; d++) {
      const product = q[queryStart + d]! * k[(firstKey + j) * headDim + d]!;
      dot += product;
      size += abs(product);
    }
    const score = scale * dot;
    result.scores[row * keyLength + j] = score;
    result.capped[row * keyLength + j] = softcap ? softcap * tanh(score / softcap) : score;
    sizes[j] = abs(scale) * size;
  }
  return sizes;
}

/** Softmax over the visible keys and the weighted sum; a row that sees nothing keeps its zeros (R9). */
function finishRow(
  v: ArrayLike<number>,
  firstKey: number,
  visible: number[],
  sink: number | undefined,
  shape: Shape,
  result: ReferenceResult,
  row: number,
  factor: (j: number) => number = () => 1,
): void {
  const { keyLength, valueDim } = shape;
  if (visible.length === 0) {
    result.logSumExp[row] = sink ?? NOTHING;
    return;
  }
  const start = row * keyLength;
  let largest = sink ?? NOTHING;
  for (const j of visible) largest = max(largest, result.masked[start + j]!);
  let sum = sink === undefined ? 0 : exp(sink - largest);
  for (const j of visible) sum += exp(result.masked[start + j]! - largest);
  result.logSumExp[row] = largest + log(sum);
  for (const j of visible) {
    const weight = exp(result.masked[start + j]! - largest) / sum;
    result.softmax[start + j] = weight;
    for (let d = 0; d < valueDim; d++) {
      const value = factor(j) * v[(firstKey + j) * valueDim + d]!;
      const at = row * valueDim + d;
      result.output[at] = result.output[at]! + weight * value;
      result.largestValue[row] = max(result.largestValue[row]!, abs(value));
    }
  }
}
