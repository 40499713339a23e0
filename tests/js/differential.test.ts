/** Held against onnxruntime-web's Attention (opset 23 and 24) on random cases: another implementation, with other rounding. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { holds, worst } from "./accuracy-check.ts";
import { OnnxPeer, type PeerTensors } from "./differential-onnx.ts";
import { type CaseReference, KINDS, kindOf, type OnnxCase, referCase, runCase } from "./onnx-cases.ts";
import { describeCase, randomCase } from "./onnx-random.ts";
import type { ReferenceResult } from "./reference.ts";
import { splitHeads } from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

const CASES = 360;
const cases = Array.from({ length: CASES }, (_, n) => randomCase(n, { partialMasks: false }));
const references: CaseReference[] = [];
const theirs: PeerTensors[] = [];
let peer: OnnxPeer;

beforeAll(async () => {
  peer = new OnnxPeer();
  for (const item of cases) {
    references.push(referCase(item));
    theirs.push(await peer.attention(item));
  }
}, 60_000);

afterAll(() => peer.close());

/** Both sides round: twice R22's bound, and a little for the peer's shorter exponential. */
const allowedError = (reference: ReferenceResult, row: number) => 1e-5 + 2 ** -21 * reference.largestScore[row]!;

/** The peer takes a single query for a decoding step: it forgets the causal part where that meets several new keys and a mask. */
const forgetsCausal = ({ attrs, tensors }: OnnxCase, { shape }: CaseReference) =>
  attrs.is_causal === 1 &&
  tensors.past_key !== undefined &&
  tensors.attn_mask !== undefined &&
  shape.queryLength === 1 &&
  shape.keyLength - tensors.past_key.dims[2]! > 1;

/** What the peer says of case n, or the reference where the peer is known to be wrong. */
const expectedOutput = (n: number) =>
  forgetsCausal(cases[n]!, references[n]!) ? references[n]!.result.output : outputOf(n);

/** [B, H, Lq, Dv] */
function outputOf(n: number): Float32Array {
  const { batch, queryLength, heads, valueDim } = references[n]!.shape;
  const data = Float32Array.from(theirs[n]!.Y!.data);
  return cases[n]!.tensors.Q!.dims.length === 4 ? data : splitHeads(data, batch, queryLength, heads, valueDim);
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

test("R22: the peer itself agrees with the reference, so that it is a measure", () => {
  expect(theirs.length).toBe(CASES);
  cases.forEach((item, n) => {
    const { result, shape } = references[n]!;
    holds(compareSeen(expectedOutput(n), result.output, shape.valueDim, result), describeCase(item));
  });
  expect(cases.filter((item, n) => forgetsCausal(item, references[n]!)).length).toBeLessThan(CASES / 25);
});

test("R1–R6, R11, R12, R16: the cases have everything that the operator has", () => {
  const count = (has: (item: OnnxCase) => unknown) => cases.filter(has).length;
  const mask = (rank: number, dtype: string) =>
    count(({ tensors }) => tensors.attn_mask?.dims.length === rank && tensors.attn_mask.dtype === dtype);
  for (const rank of [2, 3, 4]) for (const dtype of ["bool", "f32"]) expect(mask(rank, dtype)).toBeGreaterThan(10);
  const past = ({ tensors }: OnnxCase) => tensors.past_key !== undefined;
  const nonpad = ({ tensors }: OnnxCase) => tensors.nonpad_kv_seqlen !== undefined;
  const causal = ({ attrs }: OnnxCase) => attrs.is_causal === 1;
  expect(count(past)).toBeGreaterThan(90);
  expect(count((item) => past(item) && causal(item) && item.tensors.attn_mask)).toBeGreaterThan(20);
  expect(count((item) => past(item) && item.tensors.Q!.dims.length === 3)).toBeGreaterThan(35);
  expect(count((item) => nonpad(item) && causal(item))).toBeGreaterThan(20);
  expect(count(({ attrs }) => attrs.softcap)).toBeGreaterThan(70);
  expect(references.filter(({ shape }) => shape.heads !== shape.kvHeads).length).toBeGreaterThan(100);
  expect(references.filter(({ shape }) => shape.headDim !== shape.valueDim).length).toBeGreaterThan(100);
});

describeVariants((lb) => {
  test(`R22, R1–R6, R11, R16: outputs and presents equal onnxruntime-web's in ${CASES} random cases`, () => {
    cases.forEach((item, n) => {
      const { result, shape } = references[n]!;
      const { output, present } = runCase(lb, item);
      holds(compareSeen(output, expectedOutput(n), shape.valueDim, result), describeCase(item));
      output.forEach((x, at) => {
        const unseen = result.logSumExp[Math.floor(at / shape.valueDim)] === -Infinity;
        if (unseen && x !== 0) throw new Error(`${describeCase(item)}: a row that sees nothing has output ${x}`);
      });
      if (present) {
        expect(present.keys.dims).toEqual(theirs[n]!.present_key!.dims);
        const same = (ours: Float32Array, own: Float32Array) => ours.every((x, at) => Object.is(x, own[at]));
        if (!same(present.keys.data, theirs[n]!.present_key!.data)) throw new Error(`${describeCase(item)}: keys`);
        if (!same(present.values.data, theirs[n]!.present_value!.data))
          throw new Error(`${describeCase(item)}: values`);
      }
    });
  });

  test("R12: the four kinds of weights equal its qk_matmul_output_mode 0–3", () => {
    const compared = new Set<string>();
    cases.forEach((item, n) => {
      const kind = kindOf(item);
      if (kind === undefined) return;
      const { result, shape } = references[n]!;
      const ours = runCase(lb, item).weights!;
      // The peer forgets the causal part in mode 2, and has its own lowest number for −∞: those places go to the reference.
      const againstReference = (kind === "masked" && item.attrs.is_causal) || forgetsCausal(item, references[n]!);
      const expected = againstReference ? result[kind] : theirs[n]!.qk_matmul_output!.data;
      const hidden = (at: number) => kind === "masked" && result.masked[at] === -Infinity;
      holds(compareSeen(ours, expected, shape.keyLength, result, hidden), `'${kind}' of ${describeCase(item)}`);
      ours.forEach((x, at) => {
        if (hidden(at) && x !== -Infinity) throw new Error(`${describeCase(item)}: a masked place of 'masked' is ${x}`);
      });
      compared.add(`${kind} ${againstReference ? "reference" : "peer"}`);
    });
    for (const kind of KINDS) expect(compared).toContain(`${kind} peer`);
  });
});
