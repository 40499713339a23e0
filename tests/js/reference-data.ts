/** Seeded numbers, the layouts of R1, and how results of `lb.attention` are held against the reference. */
import type { AttentionOptions, AttentionResult, Lookback, Tensor } from "lookback";
import { type ReferenceOptions, type ReferenceResult, referenceAttention, type Shape } from "./reference.ts";

// Taken once: inside Jest's realm a look-up of a global is slow.
const { abs, floor, imul } = Math;
const isFiniteNumber = Number.isFinite;
const isNotANumber = Number.isNaN;

/** Mulberry32: small, seeded, the same everywhere. Returns numbers in [0, 1). */
export function randomSource(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = imul(t ^ (t >>> 15), t | 1);
    t ^= t + imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** `count` float32 numbers spread evenly over [−size, size). */
export function randomFloats(random: () => number, count: number, size = 1): Float32Array {
  const data = new Float32Array(count);
  for (let n = 0; n < count; n++) data[n] = (2 * random() - 1) * size;
  return data;
}

/** [B, H, L, W] → [B, L, H·W] */
export function foldHeads<A extends Float32Array | Float64Array>(
  data: A,
  batch: number,
  heads: number,
  length: number,
  width: number,
): A {
  return permuteHeads(data, batch, heads, length, width);
}

/** [B, L, H·W] → [B, H, L, W] */
export function splitHeads<A extends Float32Array | Float64Array>(
  data: A,
  batch: number,
  length: number,
  heads: number,
  width: number,
): A {
  return permuteHeads(data, batch, length, heads, width);
}

function permuteHeads<A extends Float32Array | Float64Array>(
  data: A,
  batch: number,
  outer: number,
  inner: number,
  width: number,
): A {
  const result = data.slice() as A;
  for (let b = 0; b < batch; b++) {
    for (let o = 0; o < outer; o++) {
      for (let n = 0; n < inner; n++) {
        const from = ((b * outer + o) * inner + n) * width;
        result.set(data.subarray(from, from + width), ((b * inner + n) * outer + o) * width);
      }
    }
  }
  return result;
}

/** Operands in [B, H, L, W], whatever layout they are then given in. */
export interface Operands {
  shape: Shape;
  q: Float32Array;
  k: Float32Array;
  v: Float32Array;
}

export function makeShape(partial: Partial<Shape>): Shape {
  const heads = partial.heads ?? 1;
  const headDim = partial.headDim ?? 8;
  return {
    batch: 1,
    heads,
    kvHeads: heads,
    queryLength: 5,
    keyLength: partial.queryLength ?? 5,
    headDim,
    valueDim: headDim,
    ...partial,
  };
}

/** q and k up to `size`, so that scores are about ±size²·√headDim/3 at the default scale. */
export function makeOperands(partial: Partial<Shape>, seed: number, size = 1): Operands {
  const shape = makeShape(partial);
  const random = randomSource(seed);
  const { batch, heads, kvHeads, queryLength, keyLength, headDim, valueDim } = shape;
  return {
    shape,
    q: randomFloats(random, batch * heads * queryLength * headDim, size),
    k: randomFloats(random, batch * kvHeads * keyLength * headDim, size),
    v: randomFloats(random, batch * kvHeads * keyLength * valueDim),
  };
}

export type Layout = "4-D" | "3-D" | "2-D";

export interface Outcome {
  /** Always [B, H, Lq, Dv]. */
  output: Float32Array;
  weights: Float32Array | undefined;
  logSumExp: Float32Array | undefined;
  raw: AttentionResult;
}

/** Calls `lb.attention` on the operands laid out as asked, and checks the dims of what comes back. */
export function run(lb: Lookback, operands: Operands, options: AttentionOptions = {}, layout: Layout = "4-D"): Outcome {
  const { shape, q, k, v } = operands;
  const { batch, heads, kvHeads, queryLength, keyLength, headDim, valueDim } = shape;
  const dimsOf = (count: number, length: number, width: number) =>
    layout === "4-D" ? [batch, count, length, width] : [...(layout === "3-D" ? [batch] : []), length, count * width];
  const lay = (data: Float32Array, count: number, length: number, width: number) => ({
    data: layout === "4-D" ? data : foldHeads(data, batch, count, length, width),
    dims: dimsOf(count, length, width),
  });
  const folded = layout === "4-D" ? {} : { heads, kvHeads };
  const raw = lb.attention(
    lay(q, heads, queryLength, headDim),
    lay(k, kvHeads, keyLength, headDim),
    lay(v, kvHeads, keyLength, valueDim),
    { ...folded, ...options },
  );
  const expectedDims = dimsOf(heads, queryLength, valueDim);
  if (raw.output.dims.join() !== expectedDims.join()) {
    throw new Error(`output has dims [${raw.output.dims}], expected [${expectedDims}]`);
  }
  const output = raw.output.data;
  return {
    output: layout === "4-D" ? output : splitHeads(output, batch, queryLength, heads, valueDim),
    weights: raw.weights?.data,
    logSumExp: raw.logSumExp?.data,
    raw,
  };
}

/** The reference on the same operands. */
export function refer({ q, k, v, shape }: Operands, options: ReferenceOptions = {}): ReferenceResult {
  return referenceAttention(q, k, v, shape, options);
}

/** Where an error is largest against what is allowed there; `ratio` ≤ 1 holds the bound. */
export interface Worst {
  ratio: number;
  text: string;
}

export function worst(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  allowed: (index: number) => number,
): Worst {
  if (actual.length !== expected.length) {
    return { ratio: Infinity, text: `${actual.length} numbers, expected ${expected.length}` };
  }
  let ratio = 0;
  let at = 0;
  for (let n = 0; n < actual.length; n++) {
    const a = actual[n]!;
    const e = expected[n]!;
    if (a === e || (isNotANumber(a) && isNotANumber(e))) continue;
    const error = abs(a - e) / allowed(n);
    // An error against a bound of 0, and anything that is not finite on one side only, is as bad as can be.
    const here = isFiniteNumber(a) && isFiniteNumber(e) && !isNotANumber(error) ? error : Infinity;
    if (here > ratio) {
      ratio = here;
      at = n;
    }
  }
  const text = `${ratio.toPrecision(3)} of the bound at ${at}: ${actual[at]}, expected ${expected[at]} ± ${allowed(at)}`;
  return { ratio, text };
}

const ulp = 2 ** -23;

/** R22 for one row of a [B, H, Lq] grid. */
export function rowBound(reference: ReferenceResult, row: number): number {
  return reference.largestValue[row]! * (2e-6 + ulp * reference.largestScore[row]!);
}

/** Throws unless the output holds R22's bound; `slack` where two results of the package are compared. */
export function expectOutput(actual: Float32Array, reference: ReferenceResult, shape: Shape, note = ""): void {
  holds(
    worst(actual, reference.output, (n) => rowBound(reference, floor(n / shape.valueDim))),
    `output ${note}`,
  );
}

/** Log-sum-exp of float32 scores: their own error, then the sum's, then the rounding of the result. */
export function expectLogSumExp(actual: Float32Array | undefined, reference: ReferenceResult, note = ""): void {
  const allowed = (row: number) => {
    const size = reference.largestScore[row]! + abs(reference.logSumExp[row]!);
    return 2e-6 + ulp * size;
  };
  holds(worst(actual ?? [], reference.logSumExp, allowed), `logSumExp ${note}`);
}

/** 'softmax' is relative to 1; the stages before it are as exact as their sum of products. */
export function expectWeights(
  actual: Float32Array | undefined,
  kind: "softmax" | "scores" | "capped" | "masked",
  reference: ReferenceResult,
  shape: Shape,
  note = "",
): void {
  const sizes = kind === "scores" || kind === "capped" ? reference.largestScoreOfAll : reference.largestScore;
  const allowed = (n: number) => {
    const size = sizes[floor(n / shape.keyLength)]!;
    const own = kind === "softmax" ? 0 : abs(reference[kind][n]!);
    return 2e-6 + ulp * (size + (isFiniteNumber(own) ? own : 0));
  };
  holds(worst(actual ?? [], reference[kind], allowed), `weights '${kind}' ${note}`);
}

export function holds(found: Worst, what: string): void {
  if (!(found.ratio <= 1)) throw new Error(`${what}: ${found.text}`);
}

/** Throws unless both hold the same bits; names the first place where they do not. */
export function expectSameBits(
  actual: Float32Array | Tensor | undefined,
  expected: Float32Array | Tensor | undefined,
  what: string,
): void {
  const a = bitsOf(actual);
  const e = bitsOf(expected);
  if (a.length !== e.length) throw new Error(`${what}: ${a.length} numbers against ${e.length}`);
  for (let n = 0; n < a.length; n++) {
    if (a[n] !== e[n]) {
      const text = (bits: Uint32Array) => new Float32Array(bits.buffer)[n];
      throw new Error(`${what}: bits differ at ${n}: ${text(a)} against ${text(e)}`);
    }
  }
}

function bitsOf(values: Float32Array | Tensor | undefined): Uint32Array {
  if (values === undefined) throw new Error("a result that was asked for is missing");
  const data = "dims" in values ? values.data : values;
  return new Uint32Array(data.slice().buffer);
}
