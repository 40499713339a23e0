/** R17: the forms of lb.rotary's and sinusoidal's arguments, where results go, and what is refused. */
import { expect, test } from "@jest/globals";
import { sinusoidal, type Tensor } from "lookback";
import { caught, expectError, tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";
import { loose, type Refusal, testRefusals } from "./support/refusals.js";

const x = tensor([2, 2, 3, 4]);
const table = (rows: number, half = 2, seed = 1) => tensor([rows, half], seed);

const REFUSALS: Refusal[] = [
  [
    "R17: another scaling",
    "bad-option",
    ["scaling.type", "'linear', 'ntk', 'llama3' or 'yarn'", '"longrope"'],
    (lb) => loose(lb).rotary(x, { scaling: { type: "longrope", factor: 2 } }),
  ],
  [
    "R17: a scaling without type",
    "bad-option",
    ["scaling.type", "'yarn'", "undefined"],
    (lb) => loose(lb).rotary(x, { scaling: { factor: 2 } }),
  ],
  ["R17: a number as scaling", "bad-option", ["{ type, factor, … }", "2"], (lb) => loose(lb).rotary(x, { scaling: 2 })],
  [
    "R17: no factor",
    "bad-option",
    ["type linear", "factor is missing"],
    (lb) => loose(lb).rotary(x, { scaling: { type: "linear" } }),
  ],
  [
    "R17: a factor of 0",
    "bad-option",
    ["scaling: factor", "> 0"],
    (lb) => lb.rotary(x, { scaling: { type: "ntk", factor: 0 } }),
  ],
  [
    "R17: Llama 3.1 without its length",
    "bad-option",
    ["type llama3", "originalLength is missing"],
    (lb) => loose(lb).rotary(x, { scaling: { type: "llama3", factor: 8 } }),
  ],
  [
    "R17: its factors exchanged",
    "bad-option",
    ["lowFrequencyFactor 4", "highFrequencyFactor 1"],
    (lb) =>
      lb.rotary(x, {
        scaling: { type: "llama3", factor: 8, originalLength: 8192, lowFrequencyFactor: 4, highFrequencyFactor: 1 },
      }),
  ],
  [
    "R17: an option of another scaling",
    "unknown-option",
    ["scaling has no option 'betaFast'"],
    (lb) => loose(lb).rotary(x, { scaling: { type: "linear", factor: 2, betaFast: 32 } }),
  ],
  ["R17: odd dims", "bad-option", ["dims", "even", "4 (headDim)", "3"], (lb) => lb.rotary(x, { dims: 3 })],
  ["R17: more dims than there are", "bad-option", ["at most 4", "6"], (lb) => lb.rotary(x, { dims: 6 })],
  ["R17: an odd headDim", "bad-option", ["dims", "even", "5"], (lb) => lb.rotary(tensor([1, 1, 2, 5]))],
  ["R17: a base of 1", "bad-option", ["base", "> 1"], (lb) => lb.rotary(x, { base: 1 })],
  ["R1: heads folded and not said", "heads-missing", ["x", "heads"], (lb) => lb.rotary(tensor([2, 3, 8]))],
  ["R1: 1-D", "bad-rank", ["x", "[8]"], (lb) => lb.rotary(tensor([8]), { heads: 2 })],
  [
    "R17: positions for other slots",
    "bad-option",
    ["positions: 4 values", "3 or 6"],
    (lb) => lb.rotary(x, { positions: [0, 1, 2, 3] }),
  ],
  ["R17: half a position", "bad-option", ["positions", "[1] is 0.5"], (lb) => lb.rotary(x, { positions: [0, 0.5, 1] })],
  [
    "R17: positions and an offset",
    "bad-option",
    ["positions say everything"],
    (lb) => lb.rotary(x, { positions: [0, 1, 2], offset: 4 }),
  ],
  [
    "R17: an offset for three rows of two",
    "bad-option",
    ["offset: 3 values", "1 or 2"],
    (lb) => lb.rotary(x, { offset: [0, 1, 2] }),
  ],
  ["R17: an offset in words", "bad-option", ["offset", '"end"'], (lb) => loose(lb).rotary(x, { offset: "end" })],
  ["R17: cos alone", "bad-option", ["both cos and sin"], (lb) => lb.rotary(x, { cos: table(8) })],
  [
    "R17: tables and a base",
    "bad-option",
    ["tables already"],
    (lb) => lb.rotary(x, { cos: table(8), sin: table(8), base: 500 }),
  ],
  [
    "R17: tables that differ",
    "bad-dims",
    ["cos [8, 2]", "sin [7, 2]"],
    (lb) => lb.rotary(x, { cos: table(8), sin: table(7) }),
  ],
  [
    "R17: tables per slot of other slots",
    "bad-dims",
    ["[2, 3, 2]", "[2, 4, 2]"],
    (lb) => lb.rotary(x, { cos: tensor([2, 4, 2]), sin: tensor([2, 4, 2]) }),
  ],
  [
    "R17: tables too short",
    "bad-option",
    ["positions 0 to 7", "position 8"],
    (lb) => lb.rotary(x, { cos: table(8), sin: table(8), offset: 6 }),
  ],
  [
    "R17: tables for more than headDim",
    "bad-option",
    ["at most 4", "6"],
    (lb) => lb.rotary(x, { cos: table(8, 3), sin: table(8, 3) }),
  ],
  [
    "R17: dims that are not the tables'",
    "bad-option",
    ["dims is 4", "dims 2"],
    (lb) => lb.rotary(x, { dims: 4, cos: table(8, 1), sin: table(8, 1) }),
  ],
  [
    "R17: positions besides tables per slot",
    "bad-option",
    ["[B, L, dims/2]", "positions"],
    (lb) => lb.rotary(x, { cos: tensor([2, 3, 2]), sin: tensor([2, 3, 2]), positions: [1, 2, 3] }),
  ],
  [
    "R17: ONNX's name",
    "unknown-option",
    ["'rotaryEmbeddingDim'", "There are: dims, base, interleaved, scaling, heads"],
    (lb) => loose(lb).rotary(x, { rotaryEmbeddingDim: 4 }),
  ],
  [
    "B2: a target too small",
    "bad-out",
    ["out.output", "48 values"],
    (lb) => lb.rotary(x, { out: { output: new Float32Array(4) } }),
  ],
  ["R17: no tensor", "not-a-tensor", ["x", "null"], (lb) => loose(lb).rotary(null)],
];

/** [B, heads, L, D] as [B, L, heads·D]. */
const folded = ({ data }: Tensor): Tensor => ({
  data: Float32Array.from(data, (_, at) => {
    const [d, h, l, b] = [at % 4, Math.floor(at / 4) % 2, Math.floor(at / 8) % 3, Math.floor(at / 24)];
    return data[((b * 2 + h) * 3 + l) * 4 + d]!;
  }),
  dims: [2, 3, 8],
});

describeVariants((lb) => {
  test("R17, R1: 4-D, 3-D and 2-D are turned alike", () => {
    const turned = lb.rotary(x, { offset: 3 });
    expect(turned.dims).toEqual(x.dims);
    expect(lb.rotary(folded(x), { heads: 2, offset: 3 })).toEqual(folded(turned));
    const row = { data: folded(x).data.slice(0, 24), dims: [3, 8] };
    expect(lb.rotary(row, { heads: 2, offset: 3 })).toEqual({ data: folded(turned).data.slice(0, 24), dims: [3, 8] });
  });

  test("R17: positions in every form, for all rows or row by row", () => {
    const turned = lb.rotary(x, { offset: 3 });
    const forms = [
      [3, 4, 5],
      [3, 4, 5, 3, 4, 5],
      Int32Array.of(3, 4, 5),
      BigInt64Array.of(3n, 4n, 5n),
      { data: BigInt64Array.of(3n, 4n, 5n, 3n, 4n, 5n), dims: [2, 3] },
    ];
    for (const positions of forms) expect(lb.rotary(x, { positions })).toEqual(turned);
    expect(lb.rotary(x, { offset: [3, 3] })).toEqual(turned);
    const apart = lb.rotary(x, { offset: [0, 3] });
    expect(apart.data.subarray(24)).toEqual(turned.data.subarray(24));
    expect(apart.data.subarray(0, 24)).toEqual(lb.rotary(x).data.subarray(0, 24));
    expect(lb.rotary(x, { positions: [-3, -4, -5] }).data[1]).toBe(lb.rotary(x, { offset: -3 }).data[1]);
  });

  test("R17, R21: no slots", () => {
    expect(lb.rotary(tensor([1, 2, 0, 4]))).toEqual({ data: new Float32Array(0), dims: [1, 2, 0, 4] });
  });

  test("B2: the result goes where `out` says, into x itself as well", () => {
    const turned = lb.rotary(x, { interleaved: true });
    const own = { data: x.data.slice(), dims: x.dims };
    const result = lb.rotary(own, { interleaved: true, out: { output: own.data } });
    expect(result.data).toBe(own.data);
    expect(own.data).toEqual(turned.data);
    const inside = lb.tensor(x.data, x.dims);
    expect(lb.rotary(inside, { interleaved: true, out: { output: inside } })).toBe(inside);
    expect(inside.read()).toEqual(turned.data);
    inside.dispose();
  });

  test("R17: tables may live in wasm memory", () => {
    const [cos, sin] = [table(8, 2, 1), table(8, 2, 2)];
    const inside = [cos, sin].map(({ data, dims }) => lb.tensor(data, dims)) as [never, never];
    expect(lb.rotary(x, { cos: inside[0], sin: inside[1] })).toEqual(lb.rotary(x, { cos, sin }));
    for (const each of inside as { dispose(): void }[]) each.dispose();
  });

  test("R17: sinusoidal positions: odd widths, halves, an offset", () => {
    expect(sinusoidal(0, 4)).toEqual({ data: new Float32Array(0), dims: [0, 4] });
    const all = sinusoidal(6, 5, { base: 100 });
    expect(sinusoidal(2, 5, { base: 100, offset: 4 }).data).toEqual(all.data.subarray(20));
    const halves = sinusoidal(6, 5, { base: 100, interleaved: false });
    for (let row = 0; row < 6; row++) {
      const [a, b] = [all, halves].map(({ data }) => Array.from(data.subarray(row * 5, row * 5 + 5)));
      expect(b).toEqual([a![0], a![2], a![4], a![1], a![3]]);
    }
  });

  test("R17: sinusoidal refuses what is no size", () => {
    expectError(
      caught(() => sinusoidal(-1, 4)),
      "bad-option",
      "length",
      "-1",
    );
    expectError(
      caught(() => sinusoidal(4, 0)),
      "bad-option",
      "dims",
      "0",
    );
    expectError(
      caught(() => sinusoidal(4, 4, { base: Number.NaN })),
      "bad-option",
      "base",
    );
    expectError(
      caught(() => sinusoidal(2 ** 30, 2 ** 10)),
      "too-large",
      "bytes",
    );
    expectError(
      caught(() => sinusoidal(4, 4, { bass: 3 } as never)),
      "unknown-option",
      "'base'",
    );
  });

  testRefusals(lb, REFUSALS);
});
