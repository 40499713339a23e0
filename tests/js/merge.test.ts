/** R14: attention over parts of the keys, merged, is attention over all of them. */
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { type AttentionPart, type ErrorCode, type Lookback, mergeAttention, type Tensor } from "lookback";
import { makeOperands, type Operands, refer } from "./reference-data.ts";
import { caught, expectError, product } from "./support/helpers.ts";
import { describeVariants } from "./support/instances.ts";

type Layout = "4-D" | "3-D" | "2-D";

/** Rows [from, to) of the length axis of [B, H, L, W], in a layout of R1. */
function arrange(data: Float32Array, [B, H, L, W]: number[], layout: Layout, from = 0, to = L!): Tensor {
  const rows = to - from;
  const result = new Float32Array(B! * H! * rows * W!);
  for (let b = 0; b < B!; b++) {
    for (let h = 0; h < H!; h++) {
      for (let i = 0; i < rows; i++) {
        const start = layout === "4-D" ? (b * H! + h) * rows + i : (b * rows + i) * H! + h;
        const source = ((b * H! + h) * L! + from + i) * W!;
        result.set(data.subarray(source, source + W!), start * W!);
      }
    }
  }
  const folded = [rows, H! * W!];
  return { data: result, dims: layout === "4-D" ? [B!, H!, rows, W!] : layout === "3-D" ? [B!, ...folded] : folded };
}

/** One call per range of keys, cut at `cuts`. */
function attendInParts(lb: Lookback, operands: Operands, cuts: number[], layout: Layout): AttentionPart[] {
  const { q, k, v, shape } = operands;
  const { batch, heads, kvHeads, queryLength, keyLength, headDim, valueDim } = shape;
  const options = layout === "4-D" ? {} : { heads, kvHeads };
  const queries = arrange(q, [batch, heads, queryLength, headDim], layout);
  const edges = [0, ...cuts, keyLength];
  return edges.slice(1).map((to, n) => {
    const from = edges[n]!;
    const keys = arrange(k, [batch, kvHeads, keyLength, headDim], layout, from, to);
    const values = arrange(v, [batch, kvHeads, keyLength, valueDim], layout, from, to);
    return lb.attention(queries, keys, values, { ...options, causal: true, queryOffset: 2 - from, logSumExp: true });
  });
}

const layouts: Layout[] = ["4-D", "3-D", "2-D"];
const cases = fc
  .record({
    layout: fc.constantFrom(...layouts),
    batch: fc.integer({ min: 1, max: 3 }),
    kvHeads: fc.integer({ min: 1, max: 2 }),
    group: fc.integer({ min: 1, max: 2 }),
    queryLength: fc.integer({ min: 1, max: 6 }),
    keyLength: fc.integer({ min: 0, max: 40 }),
    headDim: fc.integer({ min: 1, max: 9 }),
    valueDim: fc.integer({ min: 1, max: 9 }),
    cuts: fc.array(fc.nat(40), { maxLength: 4 }),
    sinks: fc.option(fc.array(fc.double({ min: -5, max: 5, noNaN: true }), { minLength: 4, maxLength: 4 }), {
      nil: undefined,
    }),
    size: fc.constantFrom(0.1, 1, 30),
    seed: fc.nat(1000),
  })
  .map(({ cuts, group, batch, ...rest }) => ({
    ...rest,
    batch: rest.layout === "2-D" ? 1 : batch,
    heads: rest.kvHeads * group,
    cuts: cuts.filter((cut) => cut <= rest.keyLength).sort((a, b) => a - b),
  }));

describeVariants((lb) => {
  test("R14, R18: any partition of the keys merges, in every layout, with and without sinks, empty parts included", () => {
    fc.assert(
      fc.property(cases, ({ layout, cuts, sinks: drawn, size, seed, ...partial }) => {
        const operands = makeOperands(partial, seed, size);
        const { batch, heads, queryLength, valueDim } = operands.shape;
        const sinks = drawn?.slice(0, heads);
        const parts = attendInParts(lb, operands, cuts, layout);
        const { output, logSumExp } = mergeAttention(parts, { sinks });
        const whole = refer(operands, { causal: true, queryOffset: 2, ...(sinks ? { sinks } : {}) });
        const expected = arrange(Float32Array.from(whole.output), [batch, heads, queryLength, valueDim], layout);
        expect(output.dims).toEqual(expected.dims);
        expect(logSumExp.dims).toEqual([batch, heads, queryLength]);

        const finite = [...whole.logSumExp, ...parts.flatMap((part) => [...(part.logSumExp as Tensor).data])];
        const largest = Math.max(0, ...finite.filter(Number.isFinite).map(Math.abs));
        const largestValue = Math.max(0, ...whole.largestValue);
        const score = 2 ** -23 * Math.max(0, ...whole.largestScore);
        const bound = largestValue * (1e-6 + 2 ** -23 * largest) + largestValue * (2e-6 + score);
        output.data.forEach((value, n) => {
          if (!(Math.abs(value - expected.data[n]!) <= bound))
            throw new Error(`output ${n}: ${value}, ${expected.data[n]}`);
        });
        logSumExp.data.forEach((value, n) => {
          const right = whole.logSumExp[n]!;
          const near = Math.abs(value - right) <= 2e-6 + score + 2 ** -22 * largest;
          if (value !== right && !near) throw new Error(`logSumExp ${n}: ${value}, ${right}`);
        });
      }),
      { numRuns: 200 },
    );
  });

  test("R14: tensors in wasm memory are parts, too", () => {
    const operands = makeOperands({ keyLength: 7, queryLength: 2 }, 3);
    const parts = attendInParts(lb, operands, [3], "4-D");
    const inWasm = parts.map((part) => {
      const [output, logSumExp] = [part.output as Tensor, part.logSumExp as Tensor];
      return { output: lb.tensor(output.data, output.dims), logSumExp: lb.tensor(logSumExp.data, logSumExp.dims) };
    });
    expect(mergeAttention(inWasm)).toEqual(mergeAttention(parts));
    for (const part of inWasm) for (const tensor of [part.output, part.logSumExp]) tensor.dispose();
  });
});

const floats = (dims: number[], ...data: number[]): Tensor => ({ data: Float32Array.from(data), dims });
/** One row per part, one head, value width 2. */
const part = (lse: number, ...output: number[]): AttentionPart => ({
  output: floats([1, 1, 1, 2], ...output),
  logSumExp: floats([1, 1, 1], lse),
});
const merged = (parts: AttentionPart[], sinks?: number[]) => {
  const { output, logSumExp } = mergeAttention(parts, { sinks });
  return [...output.data, ...logSumExp.data];
};

describe("mergeAttention", () => {
  test("R14: two parts of equal weight meet in the middle, and one alone stays what it was", () => {
    expect(merged([part(1, 2, 4), part(1, 4, 8)])).toEqual([3, 6, Math.fround(1 + Math.log(2))]);
    expect(merged([part(-1.5, 2, 4)])).toEqual([2, 4, -1.5]);
  });

  test("R9, R10: a part that saw nothing has no say, whatever it holds; rows that see nothing are 0 and −∞", () => {
    expect(merged([part(-Infinity, NaN, Infinity), part(3, 4, 8)])).toEqual([4, 8, 3]);
    expect(merged([part(-Infinity, NaN, 1), part(-Infinity, 0, 0)])).toEqual([0, 0, -Infinity]);
  });

  test("R10: a NaN that was visible stays, however little its part weighs", () => {
    expect(merged([part(900, 1, 2), part(-900, NaN, 2)])).toEqual([NaN, 2, 900]);
    expect(merged([part(1, 1, 2), part(NaN, NaN, NaN)])).toEqual([NaN, NaN, NaN]);
  });

  test("R9, R18: a sink takes its share once; alone it is the whole of logSumExp", () => {
    expect(merged([part(1, 2, 4), part(1, 4, 8)], [1])).toEqual([2, 4, Math.fround(1 + Math.log(3))]);
    expect(merged([part(-Infinity, 0, 0)], [0.5])).toEqual([0, 0, 0.5]);
    expect(merged([part(2, 1, 1)], [-Infinity])).toEqual([1, 1, 2]);
  });

  test("R22: scores of any size neither overflow nor vanish", () => {
    expect(merged([part(1e4, 2, 4), part(1e4, 4, 8), part(-1e4, 7, 7)])).toEqual([
      3,
      6,
      Math.fround(1e4 + Math.log(2)),
    ]);
  });

  test("R21: no queries, no rows", () => {
    const empty = { output: floats([2, 3, 0, 4]), logSumExp: floats([2, 3, 0]) };
    expect(mergeAttention([empty, empty])).toEqual(empty);
  });

  test("B2: inputs are left alone, and results are new", () => {
    const one = part(1, 2, 4);
    const { output, logSumExp } = mergeAttention([one]);
    output.data[0] = logSumExp.data[0] = 9;
    expect(merged([one])).toEqual([2, 4, 1]);
  });

  const tensor = (...dims: number[]) => floats(dims, ...new Array(product(dims)).fill(0));
  const bad = (value: unknown) => value as AttentionPart[];
  const refusals: [string, ErrorCode, string[], () => unknown][] = [
    ["no parts", "bad-parts", ["at least one", "[]"], () => mergeAttention([])],
    ["no list", "bad-parts", ["list", "null"], () => mergeAttention(bad(null))],
    [
      "a part that is none",
      "bad-parts",
      ["part 1", "undefined"],
      () => mergeAttention(bad([part(1, 1, 1), undefined])),
    ],
    [
      "logSumExp forgotten",
      "bad-parts",
      ["part 0 has no logSumExp", "logSumExp: true"],
      () => mergeAttention(bad([{ output: tensor(1, 1, 1, 2) }])),
    ],
    [
      "parts of different queries",
      "bad-parts",
      ["[1, 1, 1, 2]", "[1, 1, 2, 2]", "part 1"],
      () => mergeAttention([part(1, 1, 1), { output: tensor(1, 1, 2, 2), logSumExp: tensor(1, 1, 2) }]),
    ],
    [
      "logSumExp of other dims",
      "bad-parts",
      ["[B, H, Lq]", "[2, 3, 8]", "[2, 4, 5]"],
      () => mergeAttention([{ output: tensor(2, 3, 8), logSumExp: tensor(2, 4, 5) }]),
    ],
    [
      "a width that heads do not divide",
      "bad-parts",
      ["[3, 7]", "[1, 2, 3]"],
      () => mergeAttention([{ output: tensor(3, 7), logSumExp: tensor(1, 2, 3) }]),
    ],
    ["sinks for other heads", "bad-parts", ["[1]", "2"], () => mergeAttention([part(1, 1, 1)], { sinks: [0, 0] })],
    ["a sink of NaN", "bad-values", ["sink", "NaN"], () => mergeAttention([part(1, 1, 1)], { sinks: [NaN] })],
    [
      "an option that is none",
      "unknown-option",
      ["sink", "'sinks'"],
      () => mergeAttention([part(1, 1, 1)], { sink: [0] } as object),
    ],
  ];
  test.each(refusals)("B4: %s → %s", (_what, code, shown, action) => expectError(caught(action), code, ...shown));
});
