/** R6, R7, R17: what depends on positions: windows, ALiBi and distances; and what is refused. */
import { expect, test } from "@jest/globals";
import { masks } from "lookback";
import { tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";
import { loose, type Refusal, testRefusals } from "./support/refusals.js";

const x = tensor([1, 6, 8]);
const [q, k] = [tensor([1, 2, 8], 4), tensor([1, 4, 8], 5)];
const h = { heads: 2 };

const REFUSALS: Refusal[] = [
  [
    "R7: a number as window",
    "bad-option",
    ["window", "{ left: … }", "received 4"],
    (lb) => loose(lb).attention(x, x, x, { ...h, window: 4 }),
  ],
  [
    "R7: a negative side",
    "bad-option",
    ["window: left", "≥ 0", "-1"],
    (lb) => lb.attention(x, x, x, { ...h, window: { left: -1 } }),
  ],
  [
    "R7: half a position",
    "bad-option",
    ["window: right", "0.5"],
    (lb) => lb.attention(x, x, x, { ...h, window: { right: 0.5 } }),
  ],
  [
    "R7: NaN",
    "bad-option",
    ["window: left", "NaN"],
    (lb) => lb.attention(x, x, x, { ...h, window: { left: Number.NaN } }),
  ],
  [
    "R7: another side",
    "unknown-option",
    ["window has no option 'lefts'", "'left'"],
    (lb) => loose(lb).attention(x, x, x, { ...h, window: { lefts: 1 } }),
  ],
  [
    "R7: Hugging Face's name",
    "unknown-option",
    ["'slidingWindow'", "'window'"],
    (lb) => loose(lb).attention(x, x, x, { ...h, slidingWindow: 4 }),
  ],
  [
    "R6: a window without an offset",
    "query-offset-missing",
    ["window with 2 queries and 4 keys", "· · ■ ·", "■ · · ·"],
    (lb) => lb.attention(q, k, k, { ...h, window: { left: 1 } }),
  ],
  [
    "R6: ALiBi without an offset",
    "query-offset-missing",
    ["alibi with 2 queries and 4 keys"],
    (lb) => lb.attention(q, k, k, { ...h, alibi: true }),
  ],
  [
    "R6: distances without an offset",
    "query-offset-missing",
    ["summary.distance with 2 queries and 4 keys"],
    (lb) => lb.attention(q, k, k, { ...h, summary: { distance: true } }),
  ],
  [
    "R17: a slope too few",
    "bad-option",
    ["alibi", "1 values", "2 heads"],
    (lb) => lb.attention(x, x, x, { ...h, alibi: [0.5] }),
  ],
  [
    "R17: a slope that is no number",
    "bad-values",
    ["alibi", "[1] is NaN"],
    (lb) => lb.attention(x, x, x, { ...h, alibi: [0.5, Number.NaN] }),
  ],
  [
    "R17: an infinite slope",
    "bad-values",
    ["alibi", "-Infinity"],
    (lb) => lb.attention(x, x, x, { ...h, alibi: [-Infinity, 0] }),
  ],
];

const seen = (weights: { data: Float32Array }, rows: number, columns: number) =>
  Array.from({ length: rows }, (_, i) =>
    Array.from(weights.data.subarray(i * columns, (i + 1) * columns), (w) => (w > 0 ? "■" : "·")).join(""),
  );

describeVariants((lb) => {
  test("R7: left and right of the position, which itself is not counted", () => {
    const { weights } = lb.attention(x, x, x, { ...h, window: { left: 2, right: 1 }, weights: "softmax" });
    expect(seen(weights, 6, 6)).toEqual(["■■····", "■■■···", "■■■■··", "·■■■■·", "··■■■■", "···■■■"]);
  });

  test("R7: a side left out, or Infinity, has no end", () => {
    const open = lb.attention(x, x, x, { ...h, logSumExp: true });
    for (const window of [{}, { left: Infinity }, { left: Infinity, right: Infinity }, { right: 2 ** 31 - 1 }]) {
      expect(lb.attention(x, x, x, { ...h, window, logSumExp: true })).toEqual(open);
    }
    expect(lb.attention(q, k, k, { ...h, window: {} }).output.dims).toEqual([1, 2, 8]);
  });

  test("R7, R8: a sliding_window of W with causal is left W − 1", () => {
    const mask = masks.from({
      data: Uint8Array.from({ length: 36 }, (_, at) => {
        const [i, j] = [Math.floor(at / 6), at % 6];
        return Number(j <= i && j > i - 3);
      }),
      dims: [6, 6],
    });
    expect(lb.attention(x, x, x, { ...h, causal: true, window: { left: 2 } })).toEqual(
      lb.attention(x, x, x, { ...h, mask }),
    );
  });

  test("R6: the offset moves the window", () => {
    const at = (queryOffset: "start" | "end" | number) =>
      seen(
        lb.attention(q, k, k, { ...h, window: { left: 0, right: 0 }, queryOffset, weights: "softmax" }).weights,
        2,
        4,
      );
    expect(at("start")).toEqual(["■···", "·■··"]);
    expect(at("end")).toEqual(["··■·", "···■"]);
    expect(at(-1)).toEqual(["····", "■···"]);
  });

  test("R17: true is the published slopes; false and null are none", () => {
    const eight = tensor([1, 5, 16]);
    const slopes = [2 ** -1, 2 ** -2, 2 ** -3, 2 ** -4, 2 ** -5, 2 ** -6, 2 ** -7, 2 ** -8];
    const run = (alibi: unknown) => loose(lb).attention(eight, eight, eight, { heads: 8, alibi, logSumExp: true });
    expect(run(true)).toEqual(run(slopes));
    expect(run(Float32Array.from(slopes))).toEqual(run(slopes));
    expect(run({ data: Float32Array.from(slopes), dims: [8] })).toEqual(run(slopes));
    expect(run(false)).toEqual(run(undefined));
    expect(run(null)).toEqual(run(undefined));
    expect(run(true)).not.toEqual(run(undefined));
  });

  test("R17: six heads take the slopes of four, then every second one of eight", () => {
    const six = tensor([1, 5, 12]);
    const run = (alibi: true | number[]) => lb.attention(six, six, six, { heads: 6, alibi, logSumExp: true });
    expect(run(true)).toEqual(run([2 ** -2, 2 ** -4, 2 ** -6, 2 ** -8, 2 ** -1, 2 ** -3]));
  });

  test("R17: ALiBi is a bias of −slope · |distance|", () => {
    const bias = {
      data: Float32Array.from({ length: 2 * 8 }, (_, at) => {
        const [head, i, j] = [Math.floor(at / 8), Math.floor(at / 4) % 2, at % 4];
        return -[0.5, 0.25][head]! * Math.abs(i + 2 - j);
      }),
      dims: [2, 2, 4],
    };
    const expected = lb.attention(q, k, k, { ...h, bias, weights: "masked" });
    const { weights } = lb.attention(q, k, k, { ...h, alibi: [0.5, 0.25], queryOffset: "end", weights: "masked" });
    for (const [at, weight] of weights.data.entries()) expect(weight).toBeCloseTo(expected.weights.data[at]!, 6);
  });

  testRefusals(lb, REFUSALS);
});
