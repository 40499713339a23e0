/** R15: the number of threads changes no bit, whatever is computed. Problems are large enough for every thread to get work. */
import { afterAll, expect, test } from "@jest/globals";
import fc from "fast-check";
import { type AttentionOptions, createLookback, type Lookback, masks, type Tensor } from "lookback";
import { randomFloats, randomSource } from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

const THREADS = [2, 3, 4];

const lengths = fc.integer({ min: 100, max: 330 });
const problems = fc.record({
  batch: fc.integer({ min: 1, max: 2 }),
  kvHeads: fc.integer({ min: 1, max: 3 }),
  group: fc.integer({ min: 1, max: 3 }),
  queryLength: lengths,
  keyLength: lengths,
  width: fc.constantFrom(16, 24, 33, 64),
  seed: fc.integer({ min: 0, max: 1e9 }),
  causal: fc.boolean(),
  masked: fc.boolean(),
  kind: fc.constantFrom("softmax", "scores", "masked"),
  map: fc.tuple(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 20 })),
});

/** Every array of a result, under its place in it. */
function arraysOf(value: unknown, path = ""): Map<string, Float32Array> {
  if (ArrayBuffer.isView(value)) return new Map([[path, value as Float32Array]]);
  const found = new Map<string, Float32Array>();
  if (typeof value !== "object" || value === null) return found;
  for (const [name, part] of Object.entries(value))
    for (const [place, array] of arraysOf(part, `${path}.${name}`)) found.set(place, array);
  return found;
}

function expectSameArrays(one: unknown, other: unknown): void {
  const arrays = arraysOf(one);
  const others = arraysOf(other);
  expect([...others.keys()]).toEqual([...arrays.keys()]);
  for (const [place, values] of arrays) {
    const bytes = (array: Float32Array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength);
    if (!bytes(values).equals(bytes(others.get(place)!))) throw new Error(`${place} differs`);
  }
}

describeVariants((alone: Lookback, variant) => {
  const instances = new Map<number, Promise<Lookback>>(
    THREADS.map((threads) => [threads, createLookback({ variant, threads })]),
  );
  afterAll(async () => {
    for (const lb of instances.values()) (await lb).dispose();
  });

  /** What `compute` gives with every number of threads is what it gives with one. */
  async function same(compute: (lb: Lookback) => unknown): Promise<void> {
    const expected = compute(alone);
    for (const [threads, starting] of instances) {
      const lb = await starting;
      expect(lb.threads).toBe(threads);
      expectSameArrays(expected, compute(lb));
    }
  }

  test("R15: outputs, weights, log-sum-exps and summaries have the same bits with 1, 2, 3 and 4 threads", async () => {
    await fc.assert(
      fc.asyncProperty(problems, async (p) => {
        const { batch, kvHeads, group, queryLength, keyLength, width } = p;
        const heads = kvHeads * group;
        const random = randomSource(p.seed);
        const make = (...dims: number[]): Tensor => ({
          data: randomFloats(
            random,
            dims.reduce((a, b) => a * b, 1),
            1,
          ),
          dims,
        });
        const q = make(batch, heads, queryLength, width);
        const k = make(batch, kvHeads, keyLength, width);
        const v = make(batch, kvHeads, keyLength, width);
        const bits = Uint8Array.from({ length: queryLength * keyLength }, () => Number(random() < 0.7));
        const options = {
          causal: p.causal,
          queryOffset: "end",
          ...(p.masked && { mask: { data: bits, dims: [queryLength, keyLength] } }),
          weights: { kind: p.kind, heads: [heads - 1, 0], queries: [3, 80] },
          logSumExp: true,
          summary: { topK: 3, entropy: true, distance: true, map: p.map },
        } as AttentionOptions;
        await same((lb) => lb.attention(q, k, v, options));
      }),
      { numRuns: 12 },
    );
  });

  test("R15, R16: so have the steps of a cache, long ones and those of one query", async () => {
    const random = randomSource(3);
    const make = (heads: number, length: number): Tensor => ({
      data: randomFloats(random, heads * length * 64, 1),
      dims: [1, heads, length, 64],
    });
    const chunks = [300, 1, 5, 170].map((length) => [make(12, length), make(4, length), make(4, length)] as const);
    for (const dtype of ["f32", "int8"] as const) {
      await same((lb) => {
        const cache = lb.kvCache({ batch: 1, kvHeads: 4, headDim: 64, capacity: 600, dtype });
        const steps = chunks.map(([q, k, v]) => lb.attention(q, k, v, { causal: true, cache, logSumExp: true }));
        cache.dispose();
        return steps;
      });
    }
  });

  test("R15, M2: so have a layer with rotary positions, grouped heads and a padded batch, and its step", async () => {
    const random = randomSource(4);
    const x = { data: randomFloats(random, 2 * 150 * 192, 1), dims: [2, 150, 192] };
    const next = { data: randomFloats(random, 2 * 192, 1), dims: [2, 1, 192] };
    await same((lb) => {
      const layer = lb.multiHeadAttention({ embedDim: 192, heads: 6, kvHeads: 2, rotary: {}, seed: 5 });
      const cache = layer.kvCache({ batch: 2, capacity: 200 });
      const mask = masks.causal(150);
      const results = [
        layer.forward(x, { mask, keyLengths: [150, 90], weights: "softmax" }),
        layer.forward(x, { causal: true, cache }),
        layer.step(next, cache),
      ];
      for (const object of [layer, cache]) object.dispose();
      return results;
    });
  });

  test("R15: so has a linear layer of every type, for any number of rows and widths that fill no panel", async () => {
    const random = randomSource(6);
    const dtypes = ["f32", "f16", "bf16", "int8"] as const;
    for (const [rows, inputs, outputs] of [
      [1, 768, 2304],
      [5, 300, 517],
      [64, 768, 96],
      [333, 129, 131],
      [512, 256, 768],
    ] as const) {
      const x = { data: randomFloats(random, rows * inputs, 1), dims: [rows, inputs] };
      await same((lb) =>
        dtypes.map((dtype) => {
          const linear = lb.linear({ inputs, outputs, dtype, seed: 7 });
          const output = linear.forward(x);
          linear.dispose();
          return output;
        }),
      );
    }
  });
});
