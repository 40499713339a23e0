/** M2, R16, R17: a layer that takes the next tokens of a cache is the layer on all of them; grouped queries and rotary positions too. */
import { expect, test } from "@jest/globals";
import fc from "fast-check";
import type { LayerStepOptions, MultiHeadAttentionConfig, RotaryScaling, Tensor } from "lookback";
import { expectSameBits, holds, worst } from "./accuracy-check.ts";
import { randomFloats, randomSource } from "./reference-data.ts";
import { type LayerShape, parametersOfTorch, referenceLayer } from "./reference-layer.ts";
import { describeVariants } from "./support/instances.ts";

const { floor, max, abs } = Math;

interface LayerProblem {
  batch: number;
  embedDim: number;
  heads: number;
  kvHeads: number;
  rotary: MultiHeadAttentionConfig["rotary"];
  chunks: number[];
  dtype: "f32" | "int8";
  seed: number;
}

const scalings: (RotaryScaling | undefined)[] = [
  undefined,
  { type: "linear", factor: 2 },
  { type: "yarn", factor: 4, originalLength: 32 },
];
const problems: fc.Arbitrary<LayerProblem> = fc
  .record({
    batch: fc.integer({ min: 1, max: 3 }),
    kvHeads: fc.integer({ min: 1, max: 2 }),
    group: fc.integer({ min: 1, max: 3 }),
    half: fc.constantFrom(1, 2, 4, 8),
    rotary: fc.option(
      fc.record({ interleaved: fc.boolean(), part: fc.boolean(), scaling: fc.constantFrom(...scalings) }),
      {
        nil: undefined,
      },
    ),
    chunks: fc.array(fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 20 })), { minLength: 1, maxLength: 5 }),
    seed: fc.nat(1e6),
  })
  .map(({ group, half, rotary, ...rest }) => {
    const heads = rest.kvHeads * group;
    const turned = rotary && {
      interleaved: rotary.interleaved,
      dims: rotary.part && half > 1 ? half - (half % 2) : 2 * half,
      ...(rotary.scaling ? { scaling: rotary.scaling } : {}),
    };
    return { ...rest, heads, embedDim: heads * 2 * half, dtype: "f32" as const, rotary: turned };
  });

function drawState({ embedDim, heads, kvHeads }: LayerProblem, random: () => number): Record<string, Tensor> {
  const kvWidth = (embedDim / heads) * kvHeads;
  const draw = (...dims: number[]) => ({
    data: randomFloats(
      random,
      dims.reduce((a, b) => a * b, 1),
      0.4,
    ),
    dims,
  });
  return {
    in_proj_weight: draw(embedDim + 2 * kvWidth, embedDim),
    in_proj_bias: draw(embedDim + 2 * kvWidth),
    "out_proj.weight": draw(embedDim, embedDim),
    "out_proj.bias": draw(embedDim),
  };
}

/** Rows [from, to) of x [B, L, width]. */
function rows({ data, dims }: Tensor, from: number, to: number): Tensor {
  const [batch, length, width] = dims as [number, number, number];
  const part = new Float32Array(batch * (to - from) * width);
  for (let b = 0; b < batch; b++) {
    part.set(data.subarray((b * length + from) * width, (b * length + to) * width), b * (to - from) * width);
  }
  return { data: part, dims: [batch, to - from, width] };
}

const largestOf = (data: ArrayLike<number>) => Array.from(data).reduce((most, x) => max(most, abs(x)), 0);

describeVariants((lb) => {
  test("M2, R16, R17: steps of any size are the reference on the whole sequence, with grouped queries and rotary positions", () => {
    fc.assert(
      fc.property(problems, fc.constantFrom(undefined, 3), (p, left) => {
        const { batch, embedDim, heads, kvHeads, rotary, chunks } = p;
        const random = randomSource(p.seed);
        const state = drawState(p, random);
        const length = chunks.reduce((a, b) => a + b, 0);
        const x = { data: randomFloats(random, batch * length * embedDim), dims: [batch, length, embedDim] };
        const layer = lb.multiHeadAttention({ embedDim, heads, kvHeads, ...(rotary ? { rotary } : {}) });
        layer.load(state);
        const cache = layer.kvCache({ batch, capacity: length });
        const more: LayerStepOptions = left === undefined ? {} : { window: { left, right: 0 } };

        const shape: LayerShape = {
          ...{ batch, embedDim, heads, kvHeads, queryLength: length, keyLength: length },
          ...{ keyDim: embedDim, valueDim: embedDim },
        };
        const parameters = parametersOfTorch(
          Object.fromEntries(Object.entries(state).map(([name, { data }]) => [name, data])),
          shape,
        );
        const positions = Array.from({ length: batch * length }, (_, n) => n % length);
        const turn = rotary && {
          options: rotary as never,
          queryPositions: positions,
          keyPositions: positions,
        };
        const options = { causal: true, ...(left === undefined ? {} : { window: { left, right: 0 } }) };
        const expected = referenceLayer(parameters, shape, x.data, x.data, x.data, options, turn);
        const allowed = 1e-5 * largestOf(expected.output);

        const whole = layer.forward(x, { causal: true, ...more });
        holds(
          worst(whole.output.data, expected.output, () => allowed),
          "forward",
        );
        let from = 0;
        for (const count of chunks) {
          const { output } = layer.step(rows(x, from, from + count), cache, more);
          const wanted = rows({ data: Float32Array.from(expected.output), dims: x.dims }, from, from + count);
          holds(
            worst(output.data, wanted.data, () => allowed),
            `step from ${from}`,
          );
          from += count;
          expect(cache.lengths).toEqual(new Array(batch).fill(from));
        }
        cache.dispose();
        layer.dispose();
      }),
      { numRuns: 120 },
    );
    expect(lb.memory().allocations).toBe(0);
  });

  test("M2, R16: step is forward with causal and the cache, bit for bit, weights and rows of different length included", () => {
    const p: LayerProblem = {
      batch: 2,
      embedDim: 24,
      heads: 4,
      kvHeads: 2,
      rotary: { dims: 4 },
      chunks: [],
      dtype: "f32",
      seed: 4,
    };
    const random = randomSource(4);
    const layer = lb.multiHeadAttention({ embedDim: 24, heads: 4, kvHeads: 2, rotary: { dims: 4 } });
    layer.load(drawState(p, random));
    const [one, other] = [0, 1].map(() => layer.kvCache({ batch: 2, capacity: 12 }));
    for (const [count, keyLengths] of [
      [5, [5, 2]],
      [1, [1, 1]],
      [3, [0, 3]],
    ] as const) {
      const x = { data: randomFloats(random, 2 * count * 24), dims: [2, count, 24] };
      const asked = { weights: "softmax", logSumExp: true, summary: { topK: 2 }, keyLengths } as const;
      const step = layer.step(x, one!, asked);
      const forward = layer.forward(x, { ...asked, causal: true, cache: other! });
      expectSameBits(step.output, forward.output, "output");
      expectSameBits(step.weights, forward.weights, "weights");
      expectSameBits(step.logSumExp, forward.logSumExp, "logSumExp");
      expect(step.summary).toEqual(forward.summary);
    }
    expect(one!.lengths).toEqual([6, 6]);
    for (const each of [one!, other!, layer]) each.dispose();
  });

  test("R17, R16: rotary positions in a cache follow each row's own length", () => {
    const p: LayerProblem = {
      batch: 2,
      embedDim: 16,
      heads: 2,
      kvHeads: 2,
      rotary: {},
      chunks: [],
      dtype: "f32",
      seed: 5,
    };
    const random = randomSource(5);
    const layer = lb.multiHeadAttention({ embedDim: 16, heads: 2, rotary: {} });
    layer.load(drawState(p, random));
    const tokens = { data: randomFloats(random, 2 * 7 * 16), dims: [2, 7, 16] };
    // Row 0 takes all of each chunk, row 1 a part of it; then the next token of each.
    const cache = layer.kvCache({ batch: 2, capacity: 10 });
    layer.step(rows(tokens, 0, 4), cache, { keyLengths: [4, 2] });
    layer.step(rows(tokens, 4, 6), cache, { keyLengths: [2, 1] });
    const { output } = layer.step(rows(tokens, 6, 7), cache);
    const token = (b: number, t: number) => tokens.data.subarray((b * 7 + t) * 16, (b * 7 + t + 1) * 16);
    [
      [0, 1, 2, 3, 4, 5, 6],
      [0, 1, 4, 6],
    ].forEach((kept, b) => {
      const own = { data: Float32Array.from(kept.flatMap((t) => [...token(b, t)])), dims: [1, kept.length, 16] };
      const alone = layer.forward(own, { causal: true }).output.data.subarray(-16);
      const found = output.data.subarray(b * 16, (b + 1) * 16);
      holds(
        worst(found, alone, () => 1e-5 * largestOf(alone)),
        `row ${b}`,
      );
    });
    cache.dispose();
    layer.dispose();
  });

  test("M2: a memory projected once is the memory itself, with masks, padding and any queries", () => {
    const random = randomSource(6);
    const layer = lb.multiHeadAttention({ embedDim: 12, heads: 3, keyDim: 7, valueDim: 7 });
    const memory = { data: randomFloats(random, 2 * 9 * 7), dims: [2, 9, 7] };
    const projected = layer.project(memory);
    for (const count of [1, 4]) {
      const x = { data: randomFloats(random, 2 * count * 12), dims: [2, count, 12] };
      const keyMask = { data: Uint8Array.from({ length: 18 }, () => floor(random() * 2)), dims: [2, 9] };
      for (const options of [{}, { keyLengths: [9, 4] }, { keyMask }, { causal: true, queryOffset: "end" as const }]) {
        const asked = { ...options, weights: "softmax", logSumExp: true } as const;
        const once = layer.forward(x, { ...asked, memory: projected });
        const again = layer.forward(x, { ...asked, memory });
        expectSameBits(once.output, again.output, "output");
        expectSameBits(once.weights, again.weights, "weights");
        expectSameBits(once.logSumExp, again.logSumExp, "logSumExp");
      }
    }
    projected.dispose();
    layer.dispose();
  });
});
