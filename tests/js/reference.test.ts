/** The reference itself, against numbers worked out by hand and against PyTorch's own. */
import { expect, test } from "@jest/globals";
import { alibiSlopes, offsetOfRow, referenceAttention } from "./reference.ts";
import { makeOperands, makeShape, refer } from "./reference-data.ts";
import { summarize, weightMap } from "./reference-summaries.ts";

const oneHot = Float32Array.from({ length: 16 }, (_, n) => (n % 5 === 0 ? 1 : 0));
const four = makeShape({ queryLength: 4, headDim: 4 });
const near = (values: ArrayLike<number>) => Array.from(values, (x) => Number(x.toFixed(9)));

test("R6: the reference gives the article's causal weights for four one-hot tokens", () => {
  const { softmax, masked, logSumExp } = referenceAttention(oneHot, oneHot, oneHot, four, { causal: true });
  const e = Math.exp(0.5);
  const row = (visible: number, self: number) =>
    [0, 1, 2, 3].map((j) => (j > self ? 0 : j === self ? e / (e + visible - 1) : 1 / (e + visible - 1)));
  expect(near(softmax)).toEqual(near([0, 1, 2, 3].flatMap((i) => row(i + 1, i))));
  expect(Array.from(masked.subarray(0, 4))).toEqual([0.5, -Infinity, -Infinity, -Infinity]);
  expect(logSumExp[0]).toBe(0.5);
});

test("R6: 'end' aligns the last query with the last valid key", () => {
  const shape = makeShape({ batch: 2, queryLength: 2, keyLength: 5 });
  expect([0, 1].map((b) => offsetOfRow({ queryOffset: "end" }, shape, b))).toEqual([3, 3]);
  expect([0, 1].map((b) => offsetOfRow({ queryOffset: "end", keyLengths: [5, 1] }, shape, b))).toEqual([3, -1]);
});

test("R7, R5: the reference intersects window, lengths and key mask", () => {
  const operands = makeOperands({ queryLength: 6 }, 1);
  const seen = (options: object) =>
    Array.from({ length: 6 }, (_, i) => {
      const row = refer(operands, options).softmax.subarray(i * 6, i * 6 + 6);
      return Array.from(row, (w) => (w > 0 ? "x" : ".")).join("");
    });
  expect(seen({ window: { left: 1, right: 1 } })).toEqual(["xx....", "xxx...", ".xxx..", "..xxx.", "...xxx", "....xx"]);
  expect(seen({ window: { left: 2, right: Infinity }, causal: true, keyLengths: [4] })).toEqual([
    ..."x.....,xx....,xxx...,.xxx..,..xx..,...x..".split(","),
  ]);
  const keyMask = { data: [0, 1, 1, 0, 1, 1], dims: [1, 6] };
  expect(seen({ keyMask, causal: true })[4]).toBe(".xx.x.");
});

test("R17: the reference's ALiBi slopes are those of the paper", () => {
  expect(alibiSlopes(8)).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((h) => 2 ** -h));
  expect(alibiSlopes(6)).toEqual([2 ** -2, 2 ** -4, 2 ** -6, 2 ** -8, 2 ** -1, 2 ** -3]);
  const shape = makeShape({ queryLength: 2, heads: 2, headDim: 1 });
  const zeros = new Float32Array(4);
  const { masked } = referenceAttention(zeros, zeros, zeros, shape, { alibi: true, queryOffset: 1 });
  expect(Array.from(masked)).toEqual([1 / 16, 1 / 256].flatMap((slope) => [-1, 0, -2, -1].map((x) => x * slope)));
});

test("R18, R9: a sink takes its share, and all of it where no key is visible", () => {
  const shape = makeShape({ queryLength: 1, keyLength: 2, headDim: 1 });
  const options = { sinks: [Math.log(2)] };
  const seen = referenceAttention([0], [0, 0], [1, 3], shape, options);
  expect(near(seen.softmax)).toEqual([0.25, 0.25]);
  expect(near(seen.output)).toEqual([1]);
  expect(near(seen.logSumExp)).toEqual(near([Math.log(4)]));
  const unseen = referenceAttention([0], [0, 0], [1, 3], shape, { ...options, keyLengths: [0] });
  expect([...unseen.output, ...unseen.softmax, ...unseen.logSumExp]).toEqual([0, 0, 0, Math.log(2)]);
  expect(referenceAttention([0], [0, 0], [1, 3], shape, { keyLengths: [0] }).logSumExp[0]).toBe(-Infinity);
});

test("R10, R4: masked places are never looked at, and a cap never leaks a masked key", () => {
  const operands = makeOperands({ queryLength: 4, headDim: 3 }, 2);
  const clean = refer(operands, { causal: true, softcap: 2 });
  const dirty = { ...operands, k: operands.k.slice().fill(NaN, 9), v: operands.v.slice().fill(Infinity, 9) };
  const rows = refer(dirty, { causal: true, softcap: 2 });
  expect(rows.output.subarray(0, 9)).toEqual(clean.output.subarray(0, 9));
  expect(rows.output.subarray(9).every(Number.isNaN)).toBe(true);
});

test("R13: the reference's summaries of two small rows", () => {
  const shape = makeShape({ queryLength: 2, keyLength: 4 });
  const weights = Float64Array.from([0.5, 0.25, 0.25, 0, 0, 0, 1, 0]);
  const { topK, entropy, distance } = summarize(weights, shape, { queryOffset: 2 }, 3);
  expect(Array.from(topK.indices)).toEqual([0, 1, 2, 2, -1, -1]);
  expect(Array.from(topK.weights)).toEqual([0.5, 0.25, 0.25, 1, 0, 0]);
  expect(near(entropy)).toEqual(near([1.5 * Math.LN2, 0]));
  expect(Array.from(distance)).toEqual([1.25, 1]);
  expect(Array.from(weightMap(weights, shape, 1, 2))).toEqual([0.375, 0.625]);
});
