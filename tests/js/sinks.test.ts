/** R18: the forms in which sinks are given, and what is refused. */
import { expect, test } from "@jest/globals";
import { tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";
import { loose, type Refusal, testRefusals } from "./support/refusals.js";

const x = tensor([1, 4, 8]);
const h = { heads: 2, logSumExp: true, weights: "softmax" } as const;

const REFUSALS: Refusal[] = [
  [
    "R18: a sink too many",
    "bad-option",
    ["sinks", "3 values", "2 heads"],
    (lb) => lb.attention(x, x, x, { ...h, sinks: [0, 0, 0] }),
  ],
  ["R18: NaN", "bad-values", ["sinks", "[1] is NaN"], (lb) => lb.attention(x, x, x, { ...h, sinks: [0, Number.NaN] })],
  [
    "R18: +∞ leaves nothing for the keys",
    "bad-values",
    ["[0] is Infinity"],
    (lb) => lb.attention(x, x, x, { ...h, sinks: [Infinity, 0] }),
  ],
  ["R18: text", "bad-values", ['[0] is "0"'], (lb) => loose(lb).attention(x, x, x, { ...h, sinks: ["0", 0] })],
  ["R18: one number", "not-a-tensor", ["sinks", "1"], (lb) => loose(lb).attention(x, x, x, { ...h, sinks: 1 })],
];

describeVariants((lb) => {
  test("R18: a list, a typed array, a tensor and a wasm tensor are the same", () => {
    const expected = lb.attention(x, x, x, { ...h, sinks: [0.5, -1] });
    const inside = lb.tensor([0.5, -1], [2]);
    for (const sinks of [Float32Array.of(0.5, -1), { data: Float32Array.of(0.5, -1), dims: [2] }, inside]) {
      expect(lb.attention(x, x, x, { ...h, sinks })).toEqual(expected);
    }
    inside.dispose();
  });

  test("R18: weights sum to 1 less the sink's share, exp(sink − logSumExp)", () => {
    const sinks = [0.5, -1];
    const { weights, logSumExp } = lb.attention(x, x, x, { ...h, sinks });
    for (let row = 0; row < 8; row++) {
      const sum = weights.data.subarray(row * 4, row * 4 + 4).reduce((a, b) => a + b, 0);
      expect(sum).toBeCloseTo(1 - Math.exp(sinks[row >> 2]! - logSumExp.data[row]!), 6);
    }
  });

  test("R18, R9: −∞ is no sink, and a row that sees nothing has the sink as its logSumExp", () => {
    expect(lb.attention(x, x, x, { ...h, sinks: [-Infinity, -Infinity] })).toEqual(lb.attention(x, x, x, h));
    const { output, logSumExp } = lb.attention(x, x, x, { ...h, sinks: [2, 3], keyLengths: [0] });
    expect(output.data).toEqual(new Float32Array(32));
    expect(Array.from(logSumExp.data)).toEqual([2, 2, 2, 2, 3, 3, 3, 3]);
  });

  testRefusals(lb, REFUSALS);
});
