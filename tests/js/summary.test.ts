/** R13: which figures come under which names, and what is refused. */
import { expect, test } from "@jest/globals";
import { caught, expectError, tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";
import { loose, type Refusal, testRefusals } from "./support/refusals.js";

const x = tensor([2, 6, 8]);
const h = { heads: 2 };

const REFUSALS: Refusal[] = [
  [
    "R13: true",
    "bad-option",
    ["summary", "{ topK: … }", "true"],
    (lb) => loose(lb).attention(x, x, x, { ...h, summary: true }),
  ],
  [
    "R13: no keys to show",
    "bad-option",
    ["topK", "≥ 1", "0"],
    (lb) => lb.attention(x, x, x, { ...h, summary: { topK: 0 } }),
  ],
  [
    "R13: another figure",
    "unknown-option",
    ["summary has no option 'topk'", "'topK'"],
    (lb) => loose(lb).attention(x, x, x, { ...h, summary: { topk: 3 } }),
  ],
  [
    "R13: more rows of cells than queries",
    "bad-option",
    ["summary.map", "R ≤ 6", "[7, 2]"],
    (lb) => lb.attention(x, x, x, { ...h, summary: { map: [7, 2] } }),
  ],
  [
    "R13: more columns of cells than keys",
    "bad-option",
    ["C ≤ 6", "[2, 64]"],
    (lb) => lb.attention(x, x, x, { ...h, summary: { map: [2, 64] } }),
  ],
  ["R13: no cells", "bad-option", ["[0, 2]"], (lb) => lb.attention(x, x, x, { ...h, summary: { map: [0, 2] } })],
  [
    "R13: one number for cells",
    "bad-option",
    ["summary.map", "64"],
    (lb) => loose(lb).attention(x, x, x, { ...h, summary: { map: 64 } }),
  ],
  [
    "R13: an entropy of 1",
    "bad-option",
    ["entropy", "true or false"],
    (lb) => loose(lb).attention(x, x, x, { ...h, summary: { entropy: 1 } }),
  ],
  [
    "R23: a list beyond the memory",
    "too-large",
    ["summary.topK of dims [2, 2, 6, 200000000]", "19200000000 bytes"],
    (lb) => lb.attention(x, x, x, { ...h, summary: { topK: 200_000_000 } }),
  ],
];

describeVariants((lb) => {
  test("R13: each figure is there when it is asked for, and only then", () => {
    const all = lb.attention(x, x, x, {
      ...h,
      causal: true,
      summary: { topK: 3, entropy: true, distance: true, map: [2, 3] },
    });
    expect(Object.keys(all)).toEqual(["output", "summary"]);
    expect(all.summary.topK.indices.dims).toEqual([2, 2, 6, 3]);
    expect(all.summary.topK.indices.data).toBeInstanceOf(Int32Array);
    expect(all.summary.topK.weights.dims).toEqual([2, 2, 6, 3]);
    expect(all.summary.entropy.dims).toEqual([2, 2, 6]);
    expect(all.summary.distance.dims).toEqual([2, 2, 6]);
    expect(all.summary.map.dims).toEqual([2, 2, 2, 3]);
    for (const [name, value] of Object.entries({
      topK: 3,
      entropy: true,
      distance: true,
      map: [2, 3] as [number, number],
    })) {
      const { summary } = lb.attention(x, x, x, { ...h, causal: true, summary: { [name]: value } });
      expect(summary).toEqual({ [name]: all.summary[name as "map"] });
    }
    expect(lb.attention(x, x, x, { ...h, summary: { entropy: false, distance: false } }).summary).toEqual({});
    expect("summary" in lb.attention(x, x, x, h)).toBe(false);
  });

  test("R13: the first row of a causal mask: itself, no entropy, no distance; empty places are −1 and 0", () => {
    const { summary } = lb.attention(x, x, x, {
      ...h,
      causal: true,
      summary: { topK: 2, entropy: true, distance: true },
    });
    expect(Array.from(summary.topK.indices.data.subarray(0, 2))).toEqual([0, -1]);
    expect(Array.from(summary.topK.weights.data.subarray(0, 2))).toEqual([1, 0]);
    expect([summary.entropy.data[0], summary.distance.data[0]]).toEqual([0, 0]);
  });

  test("R13: equal weights have the entropy ln(Lk), and a map of one cell their sum, 1", () => {
    const zero = { data: new Float32Array(96), dims: [2, 6, 8] };
    const { summary } = lb.attention(zero, zero, x, { ...h, summary: { entropy: true, map: [1, 1] } });
    for (const entropy of summary.entropy.data) expect(entropy).toBeCloseTo(Math.log(6), 6);
    for (const cell of summary.map.data) expect(cell).toBeCloseTo(1, 6);
  });

  test("R13: distance counts from the offset", () => {
    const { summary } = lb.attention(tensor([1, 1, 8]), tensor([1, 1, 8]), tensor([1, 1, 8]), {
      ...h,
      queryOffset: 5,
      summary: { distance: true },
    });
    expect(Array.from(summary.distance.data)).toEqual([5, 5]);
  });

  test("R13, B2: the figures are plain copies", () => {
    const { summary } = lb.attention(x, x, x, { ...h, summary: { topK: 1, entropy: true } });
    const kept = structuredClone(summary);
    lb.attention(x, x, x, { ...h, scale: 3, summary: { topK: 4, entropy: true, map: [3, 3] } });
    expect(summary).toEqual(kept);
  });

  test("R13, M2: a layer gives them, too", () => {
    const layer = lb.multiHeadAttention({ embedDim: 8, heads: 2 });
    const { summary } = layer.forward(x, { causal: true, summary: { topK: 2 } });
    expect(summary.topK.indices.dims).toEqual([2, 2, 6, 2]);
    expectError(
      caught(() => layer.forward(x, { summary: { map: [7, 1] } })),
      "bad-option",
      "R ≤ 6",
    );
    layer.dispose();
  });

  testRefusals(lb, REFUSALS);
});
