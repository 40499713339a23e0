/** R19 and R20: gradients of attention, and dropout, against the float64 reference. */
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import type { AttentionBackwardOptions, AttentionOptions, Lookback, Tensor } from "lookback";
import { check, expectSameBits, type Layout, run } from "./accuracy-check.ts";
import { type Options, optionsFor, problems, someOptions } from "./property-problems.ts";
import type { ReferenceOptions } from "./reference.ts";
import {
  foldHeads,
  makeOperands,
  type Operands,
  randomFloats,
  randomSource,
  refer,
  splitHeads,
} from "./reference-data.ts";
import { type ReferenceGradients, referenceGradients } from "./reference-gradients.ts";
import { tensor } from "./support/helpers.ts";
import { describeVariants } from "./support/instances.ts";
import { loose, type Refusal, testRefusals } from "./support/refusals.ts";

const NAMES = ["gradQ", "gradK", "gradV", "gradBias", "gradSinks"] as const;
type Gradients = Record<(typeof NAMES)[number], Float32Array>;
// Taken once: inside Jest's realm a look-up of a global is slow.
const { abs, max } = Math;

const gradOutputOf = ({ shape }: Operands, seed = 9) =>
  randomFloats(randomSource(seed), shape.batch * shape.heads * shape.queryLength * shape.valueDim);

/** Forward and backward in a layout; gradients come back as [B, H, L, width]. */
function differentiate(
  lb: Lookback,
  operands: Operands,
  options: AttentionOptions,
  gradOutput: Float32Array,
  layout: Layout = "4-D",
): Gradients {
  const { shape, q, k, v } = operands;
  const { batch, heads, kvHeads, queryLength, keyLength, headDim, valueDim } = shape;
  const lay = (data: Float32Array, count: number, length: number, width: number): Tensor =>
    layout === "4-D"
      ? { data, dims: [batch, count, length, width] }
      : {
          data: foldHeads(data, batch, count, length, width),
          dims: [...(layout === "3-D" ? [batch] : []), length, count * width],
        };
  const { raw } = run(lb, operands, { ...options, logSumExp: true }, layout);
  const all = {
    ...(layout === "4-D" ? {} : { heads, kvHeads }),
    ...options,
    output: raw.output,
    logSumExp: raw.logSumExp!,
    gradOutput: lay(gradOutput, heads, queryLength, valueDim),
    gradBias: options.bias !== undefined,
    gradSinks: options.sinks !== undefined,
  };
  const [tq, tk, tv] = [
    lay(q, heads, queryLength, headDim),
    lay(k, kvHeads, keyLength, headDim),
    lay(v, kvHeads, keyLength, valueDim),
  ];
  const found = lb.attentionBackward(tq, tk, tv, all as AttentionBackwardOptions);
  for (const [name, like] of [
    ["gradQ", tq],
    ["gradK", tk],
    ["gradV", tv],
  ] as const) {
    expect(found[name].dims).toEqual(like.dims);
  }
  const split = ({ data }: Tensor, count: number, length: number, width: number) =>
    layout === "4-D" ? data : splitHeads(data, batch, length, count, width);
  if (options.bias) expect(found.gradBias!.dims).toEqual((options.bias as Tensor).dims);
  if (options.sinks) expect(found.gradSinks!.dims).toEqual([heads]);
  return {
    gradQ: split(found.gradQ, heads, queryLength, headDim),
    gradK: split(found.gradK, kvHeads, keyLength, headDim),
    gradV: split(found.gradV, kvHeads, keyLength, valueDim),
    gradBias: found.gradBias?.data ?? new Float32Array(0),
    gradSinks: found.gradSinks?.data ?? new Float32Array(0),
  };
}

const largest = (values: ArrayLike<number>) =>
  Array.prototype.reduce.call(values, (a, x) => max(a as number, abs(x)), 0) as number;

/** `rounding`: of sums whose terms cancel, relative to 1. */
function expectGradients(actual: Gradients, expected: ReferenceGradients, rounding: number): void {
  for (const name of NAMES) {
    const allowed = 1e-4 * largest(expected[name]) + rounding;
    expect(actual[name]).toHaveLength(expected[name].length);
    for (let n = 0; n < actual[name].length; n++) {
      const error = abs(actual[name][n]! - expected[name][n]!);
      if (!(error <= allowed))
        throw new Error(`${name}[${n}] is ${actual[name][n]}, not ${expected[name][n]} ± ${allowed}`);
    }
  }
}

const SMALL = { batch: 2, heads: 4, kvHeads: 2, queryLength: 5, keyLength: 7, headDim: 3, valueDim: 4 };
const OPTIONS: Record<string, Options> = {
  plain: {},
  causal: { causal: true, queryOffset: "end" },
  "causal from the start": { causal: true, queryOffset: "start" },
  window: { window: { left: 2, right: 1 }, queryOffset: [1, 2] },
  softcap: { softcap: 0.5, scale: 0.9 },
  mask: { mask: { data: Uint8Array.from({ length: 35 }, (_, n) => Number(n % 3 > 0)), dims: [5, 7] } },
  "a bias per head": { bias: tensor([4, 5, 7], 3) },
  "a bias per key": { bias: tensor([2, 1, 1, 7], 4), causal: true, queryOffset: "end" },
  padding: {
    keyLengths: [3, 7],
    keyMask: { data: Uint8Array.from({ length: 14 }, (_, n) => Number(n % 5 > 0)), dims: [2, 7] },
  },
  "alibi and sinks": { alibi: true, queryOffset: "end", sinks: [0.3, -1, 2, 0] },
  dropout: { dropout: { p: 0.4, seed: 5 } },
  "a row that sees nothing": { causal: true, queryOffset: -2 },
};

describe("the reference", () => {
  const loss = (operands: Operands, options: ReferenceOptions, gradOutput: Float32Array) =>
    refer(operands, options).output.reduce((sum, value, n) => sum + value * gradOutput[n]!, 0);

  test.each(Object.entries(OPTIONS))("R20: agrees with central differences: %s", (_, options) => {
    const operands = makeOperands(SMALL, 1);
    const exact64 = {
      ...operands,
      q: Float64Array.from(operands.q),
      k: Float64Array.from(operands.k),
      v: Float64Array.from(operands.v),
    } as never as Operands;
    const gradOutput = gradOutputOf(operands);
    const bias = options.bias && {
      dims: (options.bias as Tensor).dims,
      data: Float64Array.from((options.bias as Tensor).data),
    };
    const sinks = options.sinks && Float64Array.from(options.sinks as number[]);
    const own = { ...options, ...(bias && { bias }), ...(sinks && { sinks }) } as ReferenceOptions;
    const exact = referenceGradients(exact64, own, gradOutput);
    const numbers = {
      gradQ: exact64.q,
      gradK: exact64.k,
      gradV: exact64.v,
      gradBias: bias?.data ?? [],
      gradSinks: sinks ?? [],
    };
    for (const name of NAMES) {
      const values = numbers[name] as Float64Array;
      for (let n = 0; n < values.length; n++) {
        const middle = values[n]!;
        values[n] = middle + 1e-5;
        const above = loss(exact64, own, gradOutput);
        values[n] = middle - 1e-5;
        const below = loss(exact64, own, gradOutput);
        values[n] = middle;
        expect(abs((above - below) / 2e-5 - exact[name][n]!)).toBeLessThan(1e-8);
      }
    }
  });
});

describeVariants((lb) => {
  test.each(Object.entries(OPTIONS))("R20: gradients are the reference's: %s", (_, options) => {
    const operands = makeOperands(SMALL, 2);
    const gradOutput = gradOutputOf(operands);
    const expected = referenceGradients(operands, options, gradOutput);
    for (const layout of ["4-D", "3-D"] as const)
      expectGradients(differentiate(lb, operands, options, gradOutput, layout), expected, 1e-6);
  });

  test("R1, R20: 2-D is a batch of one", () => {
    const operands = makeOperands({ ...SMALL, batch: 1 }, 3);
    const gradOutput = gradOutputOf(operands);
    const found = differentiate(lb, operands, {}, gradOutput, "2-D");
    expectGradients(found, referenceGradients(operands, {}, gradOutput), 1e-6);
  });

  test("R20: any shape and company of options", () => {
    fc.assert(
      fc.property(problems, someOptions, (problem, names) => {
        const options = optionsFor(problem, names);
        const gradOutput = gradOutputOf(problem.operands);
        const expected = referenceGradients(problem.operands, options, gradOutput);
        const found = differentiate(lb, problem.operands, options, gradOutput);
        expectGradients(found, expected, 1e-4);
      }),
      { numRuns: 40 },
    );
  });

  test("R10: what masked keys hold reaches no gradient", () => {
    const operands = makeOperands({ heads: 2, queryLength: 40, keyLength: 300, headDim: 8 }, 4);
    const options = { keyLengths: [250], causal: true, queryOffset: "end" } as const;
    const gradOutput = gradOutputOf(operands);
    const clean = differentiate(lb, operands, options, gradOutput);
    const poisoned = { ...operands, k: operands.k.slice(), v: operands.v.slice() };
    for (const [n, poison] of [NaN, Infinity, -Infinity].entries()) {
      poisoned.k[(250 + n) * 8 + n] = poison;
      poisoned.v[(300 + 250 + n) * 8 + n] = poison;
    }
    const found = differentiate(lb, poisoned, options, gradOutput);
    for (const name of NAMES) expectSameBits(found[name], clean[name], name);
  });

  test("R19: the forward pass drops the weights that the definition names", () => {
    for (const p of [0, 0.1, 0.75]) {
      for (const seed of [0, -1, 2 ** 53 - 1]) {
        check(lb, makeOperands({ heads: 2, queryLength: 30, keyLength: 41, headDim: 6 }, 5), { dropout: { p, seed } });
        check(lb, makeOperands({ heads: 2, queryLength: 3, keyLength: 41, headDim: 6 }, 6), { dropout: { p, seed } });
      }
    }
  });

  test("R20, B2: gradients go where out says, inputs included, and wasm tensors are read in place", () => {
    const operands = makeOperands({ ...SMALL, kvHeads: 4 }, 7);
    const gradOutput = gradOutputOf(operands);
    const plain = differentiate(lb, operands, {}, gradOutput);
    const inside = (data: Float32Array, length: number, width: number) => lb.tensor(data, [2, 4, length, width]);
    const tensors = [
      inside(operands.q, 5, 3),
      inside(operands.k, 7, 3),
      inside(operands.v, 7, 4),
      inside(gradOutput, 5, 4),
    ] as const;
    const [q, k, v, g] = tensors;
    const { output, logSumExp } = lb.attention(q, k, v, { logSumExp: true });
    const gradV = new Float32Array(operands.v.length);
    const found = lb.attentionBackward(q, k, v, {
      output,
      logSumExp,
      gradOutput: g,
      out: { gradQ: q, gradK: k, gradV },
    });
    expect(found.gradQ).toBe(q);
    expectSameBits(q.read(), plain.gradQ, "gradQ");
    expectSameBits(k.read(), plain.gradK, "gradK");
    expectSameBits(gradV, plain.gradV, "gradV");
    expect((found.gradV as Tensor).data).toBe(gradV);
    for (const each of tensors) each.dispose();
  });

  test("R20: options of the forward call that only choose its results may stand there", () => {
    const x = tensor([1, 4, 8]);
    const options = { heads: 2, weights: "softmax", summary: { entropy: true } } as const;
    const { output, logSumExp } = lb.attention(x, x, x, { ...options, logSumExp: true });
    const given = { output, logSumExp, gradOutput: x };
    expect(lb.attentionBackward(x, x, x, { ...options, ...given })).toEqual(
      lb.attentionBackward(x, x, x, { heads: 2, ...given }),
    );
  });

  const x = tensor([1, 4, 8]);
  const results = { output: x, logSumExp: tensor([1, 2, 4]), gradOutput: x };
  const h = { heads: 2, ...results };
  const REFUSALS: Refusal[] = [
    ...(["output", "logSumExp", "gradOutput"] as const).map(
      (name): Refusal => [
        `B4: no ${name}`,
        "bad-option",
        ["attentionBackward", `${name} is missing`],
        (own) => loose(own).attentionBackward(x, x, x, { ...h, [name]: undefined }),
      ],
    ),
    ["B4: no options", "bad-option", ["output is missing"], (own) => loose(own).attentionBackward(x, x, x)],
    [
      "B4: an output of another shape",
      "gradient-shape",
      ["output", "[1, 4, 6]", "[1, 4, 8]"],
      (own) => own.attentionBackward(x, x, x, { ...h, output: tensor([1, 4, 6]) }),
    ],
    [
      "B4: logSumExp as [B, Lq, H]",
      "gradient-shape",
      ["logSumExp", "[1, 4, 2]", "[1, 2, 4]"],
      (own) => own.attentionBackward(x, x, x, { ...h, logSumExp: tensor([1, 4, 2]) }),
    ],
    [
      "B4: logSumExp: true, the forward call's option",
      "not-a-tensor",
      ["logSumExp", "true"],
      (own) => loose(own).attentionBackward(x, x, x, { ...h, logSumExp: true }),
    ],
    [
      "B4: a gradient in another layout",
      "gradient-shape",
      ["gradOutput", "[4, 8]", "[1, 4, 8]"],
      (own) => own.attentionBackward(x, x, x, { ...h, gradOutput: tensor([4, 8]) }),
    ],
    [
      "B4: the gradient of a bias that is not there",
      "bad-option",
      ["gradBias", "no option bias"],
      (own) => own.attentionBackward(x, x, x, { ...h, gradBias: true }),
    ],
    [
      "B4: the gradient of sinks that are not there",
      "bad-option",
      ["gradSinks", "no option sinks"],
      (own) => own.attentionBackward(x, x, x, { ...h, gradSinks: true }),
    ],
    [
      "B4: a target that is no gradient",
      "unknown-option",
      ["out", "output"],
      (own) => loose(own).attentionBackward(x, x, x, { ...h, out: { output: new Float32Array(32) } }),
    ],
    [
      "R19: a certain dropout",
      "bad-option",
      ["dropout: p", "0 to below 1", "1"],
      (own) => own.attention(x, x, x, { heads: 2, dropout: { p: 1, seed: 1 } }),
    ],
    [
      "R19: dropout without a seed",
      "bad-option",
      ["dropout", "seed is missing"],
      (own) => loose(own).attention(x, x, x, { heads: 2, dropout: { p: 0.5 } }),
    ],
    [
      "R19: dropout as a number",
      "bad-option",
      ["0.1"],
      (own) => loose(own).attention(x, x, x, { heads: 2, dropout: 0.1 }),
    ],
    [
      "R19: dropout with a cache",
      "bad-option",
      ["dropout", "cache"],
      (own) => {
        const cache = own.kvCache({ batch: 1, kvHeads: 2, headDim: 4, capacity: 8 });
        try {
          own.attention(x, x, x, { heads: 2, cache, dropout: { p: 0.5, seed: 1 } });
        } finally {
          cache.dispose();
        }
      },
    ],
    [
      "R20: a cache",
      "bad-option",
      ["attentionBackward", "cache"],
      (own) => {
        const cache = own.kvCache({ batch: 1, kvHeads: 2, headDim: 4, capacity: 8 });
        try {
          loose(own).attentionBackward(x, x, x, { ...h, cache });
        } finally {
          cache.dispose();
        }
      },
    ],
  ];
  testRefusals(lb, REFUSALS);
});
