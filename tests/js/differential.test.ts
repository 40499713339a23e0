/** Held against onnxruntime-web's Attention (opset 23) on random shapes: another implementation, with other rounding. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { AttentionOptions, WeightsKind } from "lookback";
import { holds, run, worst } from "./accuracy-check.ts";
import { type Feed, OnnxPeer, type PeerTensors } from "./differential-onnx.ts";
import type { ReferenceResult } from "./reference.ts";
import {
  foldHeads,
  makeOperands,
  type Operands,
  randomFloats,
  randomSource,
  refer,
  splitHeads,
} from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

const CASES = 400;
/** ONNX's qk_matmul_output_mode 0–3. */
const KINDS: readonly WeightsKind[] = ["scores", "capped", "masked", "softmax"];

interface Case {
  operands: Operands;
  options: AttentionOptions;
  layout: "4-D" | "3-D";
  mode: number | undefined;
  attributes: Record<string, number>;
  feeds: Record<string, Feed>;
}

/** Case n of a fixed series; what it varies is drawn from few values, so that the peer compiles few graphs. */
function makeCase(n: number): Case {
  const random = randomSource(1000 + n);
  const upTo = (largest: number) => 1 + Math.floor(random() * largest);
  const pick = <T>(...choices: T[]): T => choices[Math.floor(random() * choices.length)]!;
  const kvHeads = upTo(3);
  const headDim = pick(upTo(33), 8, 16, 64);
  const shape = {
    batch: upTo(3),
    kvHeads,
    heads: kvHeads * pick(1, 1, 2, 3),
    queryLength: pick(upTo(12), upTo(70)),
    keyLength: pick(upTo(12), upTo(150)),
    headDim,
    valueDim: pick(headDim, upTo(40)),
  };
  const operands = makeOperands(shape, n, pick(1, 2));
  const { batch, heads, queryLength, keyLength } = shape;
  const layout = pick("4-D", "3-D" as const);
  const attributes: Record<string, number> = {};
  const options: AttentionOptions = {};

  const lay = (data: Float32Array, count: number, length: number, size: number): Feed =>
    layout === "4-D"
      ? { type: "float32", data, dims: [batch, count, length, size] }
      : { type: "float32", data: foldHeads(data, batch, count, length, size), dims: [batch, length, count * size] };
  const feeds: Record<string, Feed> = {
    Q: lay(operands.q, heads, queryLength, headDim),
    K: lay(operands.k, kvHeads, keyLength, headDim),
    V: lay(operands.v, kvHeads, keyLength, shape.valueDim),
  };
  if (layout === "3-D") Object.assign(attributes, { q_num_heads: heads, kv_num_heads: kvHeads });
  if (random() < 0.4) attributes.scale = options.scale = pick(0.25, 1);
  if (random() < 0.3) attributes.softcap = options.softcap = pick(1.5, 30);
  if (random() < 0.5) {
    // ONNX's causal mask without a cache starts at the top left.
    attributes.is_causal = 1;
    Object.assign(options, { causal: true, queryOffset: "start" });
  }
  const dims = pick(
    undefined,
    [queryLength, keyLength],
    [heads, queryLength, keyLength],
    [batch, heads, queryLength, keyLength],
    [batch, 1, queryLength, keyLength],
    [1, heads, queryLength, keyLength],
  );
  if (dims) {
    const count = dims.reduce((a, b) => a * b, 1);
    if (random() < 0.5) {
      const data = Uint8Array.from({ length: count }, () => Number(random() < 0.7));
      options.mask = { data, dims };
      feeds.attn_mask = { type: "bool", data, dims };
    } else {
      const data = randomFloats(random, count, 3).map((x) => (random() < 0.8 ? x : -Infinity));
      options.bias = { data, dims };
      feeds.attn_mask = { type: "float32", data, dims };
    }
  }
  const mode = pick(undefined, 0, 1, 2, 3);
  if (mode !== undefined) attributes.qk_matmul_output_mode = mode;
  return { operands, options, layout, mode, attributes, feeds };
}

const cases = Array.from({ length: CASES }, (_, n) => makeCase(n));
const references: ReferenceResult[] = [];
const theirs: PeerTensors[] = [];
const peer = new OnnxPeer();

beforeAll(async () => {
  for (const { operands, options, attributes, feeds, mode } of cases) {
    references.push(refer(operands, options as Parameters<typeof refer>[1]));
    theirs.push(await peer.attention(attributes, feeds, mode !== undefined));
  }
}, 60_000);

afterAll(() => peer.close());

/** Both sides round: twice R22's bound, and a little for the peer's shorter exponential. */
const allowedError = (reference: ReferenceResult, row: number) => 1e-5 + 2 ** -21 * reference.largestScore[row]!;

test("R22: the peer itself agrees with the reference, so that it is a measure", () => {
  expect(theirs.length).toBe(CASES);
  cases.forEach(({ operands, layout }, n) => {
    const { shape } = operands;
    const [reference, output] = [references[n]!, outputOf(theirs[n]!, operands, layout)];
    holds(compareSeen(output, reference.output, shape.valueDim, reference), `case ${n}`);
  });
});

function outputOf(tensors: PeerTensors, { shape }: Operands, layout: "4-D" | "3-D"): Float32Array {
  const data = Float32Array.from(tensors.Y!.data);
  return layout === "4-D" ? data : splitHeads(data, shape.batch, shape.queryLength, shape.heads, shape.valueDim);
}

/** Compares rows that see a key; of the others the operator says nothing, and here they are zero (R9). */
function compareSeen(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  width: number,
  reference: ReferenceResult,
  skip: (index: number) => boolean = () => false,
) {
  const kept: number[] = [];
  for (let n = 0; n < expected.length; n++) {
    if (reference.logSumExp[Math.floor(n / width)] !== -Infinity && !skip(n)) kept.push(n);
  }
  return worst(
    kept.map((n) => actual[n]!),
    kept.map((n) => expected[n]!),
    (at) => allowedError(reference, Math.floor(kept[at]! / width)),
  );
}

describeVariants((lb) => {
  test(`R22, R1–R4, R6, R11: outputs equal onnxruntime-web's on ${CASES} random shapes`, () => {
    cases.forEach(({ operands, options, layout, attributes }, n) => {
      const { shape } = operands;
      const ours = run(lb, operands, options, layout).output;
      const found = compareSeen(ours, outputOf(theirs[n]!, operands, layout), shape.valueDim, references[n]!);
      holds(found, `case ${n}, ${JSON.stringify({ shape, attributes })}`);
      ours.forEach((x, at) => {
        const unseen = references[n]!.logSumExp[Math.floor(at / shape.valueDim)] === -Infinity;
        if (unseen && x !== 0) throw new Error(`case ${n}: a row that sees nothing has output ${x}`);
      });
    });
  });

  test("R12: the four kinds of weights equal its qk_matmul_output_mode 0–3", () => {
    const compared = new Set<string>();
    cases.forEach(({ operands, options, layout, mode, attributes }, n) => {
      if (mode === undefined) return;
      const kind = KINDS[mode]!;
      const reference = references[n]!;
      const { keyLength } = operands.shape;
      const ours = run(lb, operands, { ...options, weights: kind }, layout).weights!;
      // The peer forgets the causal part in mode 2, and has its own lowest number for −∞: those places go to the reference.
      const againstReference = mode === 2 && options.causal;
      const expected = againstReference ? reference.masked : theirs[n]!.qk_matmul_output!.data;
      const hidden = (at: number) => kind === "masked" && reference.masked[at] === -Infinity;
      const found = compareSeen(ours, expected, keyLength, reference, hidden);
      holds(found, `case ${n}, '${kind}', ${JSON.stringify({ shape: operands.shape, attributes })}`);
      ours.forEach((x, at) => {
        if (hidden(at) && x !== -Infinity) throw new Error(`case ${n}: a masked place of 'masked' is ${x}`);
      });
      compared.add(`${kind} ${againstReference ? "reference" : "peer"}`);
    });
    expect([...compared].sort()).toEqual([
      ...["capped peer", "masked peer", "masked reference", "scores peer", "softmax peer"],
    ]);
  });
});
