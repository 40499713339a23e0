/** Calls `lb.attention`, and holds its results against the reference and against each other. */
import type { AttentionOptions, AttentionResult, Lookback, Tensor, WeightsKind } from "lookback";
import type { ReferenceOptions, ReferenceResult, Shape } from "./reference.ts";
import { foldHeads, type Operands, refer, splitHeads } from "./reference-data.ts";

// Taken once: inside Jest's realm a look-up of a global is slow.
const { abs, floor } = Math;
const isFiniteNumber = Number.isFinite;
const isNotANumber = Number.isNaN;

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
  kind: WeightsKind,
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

/** Output, log-sum-exp and one kind of weights against the reference, which is returned. */
export function check(
  lb: Lookback,
  operands: Operands,
  options: ReferenceOptions = {},
  kind: WeightsKind = "softmax",
  layout?: Layout,
): ReferenceResult {
  const { shape } = operands;
  const note = `of ${JSON.stringify(shape)} ${JSON.stringify(options, (_, value) => (ArrayBuffer.isView(value) ? "…" : value))}`;
  const reference = refer(operands, options);
  // The same names, in types that are a little wider.
  const actual = run(lb, operands, { ...(options as object), weights: kind, logSumExp: true }, layout);
  expectOutput(actual.output, reference, shape, note);
  expectLogSumExp(actual.logSumExp, reference, note);
  expectWeights(actual.weights, kind, reference, shape, note);
  return reference;
}
