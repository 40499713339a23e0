/** R16, B3: a cache as an object: what it says about itself, in which forms it takes tokens, whose memory it is. */
import { expect, test } from "@jest/globals";
import { createLookback, type KvCache, type Tensor } from "lookback";
import { caught, expectError, tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";

const SIZES = { batch: 2, kvHeads: 2, headDim: 4, capacity: 8 };

/** [B, heads, L, D] as [B, L, heads·D]. */
function folded({ data, dims }: Tensor): Tensor {
  const [batch, heads, length, width] = dims as [number, number, number, number];
  const out = new Float32Array(data.length);
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let l = 0; l < length; l++)
        out.set(
          data.subarray(((b * heads + h) * length + l) * width, ((b * heads + h) * length + l + 1) * width),
          ((b * length + l) * heads + h) * width,
        );
  return { data: out, dims: [batch, length, heads * width] };
}

describeVariants((lb, variant) => {
  const withCache = (config: Parameters<typeof lb.kvCache>[0], body: (cache: KvCache) => void) => {
    const cache = lb.kvCache(config);
    try {
      body(cache);
    } finally {
      cache.dispose();
    }
  };

  test("R16: a new cache is empty, and its config is complete", () => {
    withCache(SIZES, (cache) => {
      expect(cache.config).toEqual({ ...SIZES, valueDim: 4, dtype: "f32", rolling: false });
      expect(Object.isFrozen(cache.config)).toBe(true);
      expect([cache.capacity, cache.length, cache.firstPosition, cache.lengths]).toEqual([8, 0, 0, [0, 0]]);
      expect(cache.read()).toEqual({
        keys: { data: new Float32Array(0), dims: [2, 2, 0, 4] },
        values: { data: new Float32Array(0), dims: [2, 2, 0, 4] },
      });
    });
  });

  test("R16, R1: tokens come as 4-D, 3-D or (one row) 2-D, and out of read() as they went in", () => {
    const [k, v] = [tensor([2, 2, 3, 4], 1), tensor([2, 2, 3, 6], 2)];
    withCache({ ...SIZES, valueDim: 6 }, (cache) => {
      cache.append(k, v);
      expect(cache.read()).toEqual({ keys: k, values: v });
      cache.reset();
      expect(cache.length).toBe(0);
      cache.append(folded(k), folded(v));
      expect(cache.read()).toEqual({ keys: k, values: v });
    });
    withCache({ ...SIZES, batch: 1 }, (cache) => {
      const one = tensor([1, 2, 3, 4]);
      const flat = folded(one);
      cache.append({ data: flat.data, dims: [3, 8] }, flat);
      expect(cache.read().keys).toEqual(one);
    });
  });

  test("R16: no tokens at all are fine", () => {
    withCache(SIZES, (cache) => {
      cache.append(tensor([2, 2, 0, 4]), tensor([2, 2, 0, 4]));
      expect(cache.length).toBe(0);
      const { output } = lb.attention(tensor([2, 2, 1, 4]), null, null, { cache });
      expect(output).toEqual({ data: new Float32Array(16), dims: [2, 2, 1, 4] });
    });
  });

  test("R16: keyLengths says how many tokens of each row are stored; lengths are copies", () => {
    withCache(SIZES, (cache) => {
      const k = tensor([2, 2, 3, 4]);
      cache.append(k, k, { keyLengths: [1, 3] });
      const { lengths } = cache;
      expect([lengths, cache.length]).toEqual([[1, 3], 3]);
      const { keys } = cache.read();
      expect(keys.dims).toEqual([2, 2, 3, 4]);
      expect(keys.data.subarray(0, 4)).toEqual(k.data.subarray(0, 4));
      expect(keys.data.subarray(4, 12)).toEqual(new Float32Array(8));
      lengths[0] = 7;
      cache.append(k, k, { keyLengths: BigInt64Array.of(2n, 0n) });
      expect([lengths, cache.lengths]).toEqual([
        [7, 3],
        [3, 3],
      ]);
    });
  });

  test("R16: a wasm tensor is taken where it is, and may be the target as well", () => {
    const [q, k, v] = [tensor([2, 2, 3, 4], 1), tensor([2, 2, 3, 4], 2), tensor([2, 2, 3, 4], 3)];
    withCache(SIZES, (cache) => {
      const expected = lb.attention(q, k, v, { causal: true });
      const [wq, wk, wv] = [q, k, v].map(({ data, dims }) => lb.tensor(data, dims)) as [never, never, never];
      const { output } = lb.attention(wq, wk, wv, { causal: true, cache, out: { output: wq } });
      expect(output).toBe(wq);
      expect((output as unknown as { read(): Float32Array }).read()).toEqual(expected.output.data);
      cache.append(wk, wv);
      expect(cache.lengths).toEqual([6, 6]);
    });
  });

  test("R16, R11: in 3-D the cache's kvHeads are the default", () => {
    withCache({ ...SIZES, kvHeads: 1 }, (cache) => {
      const [q, k] = [tensor([2, 3, 16]), tensor([2, 3, 4])];
      const { output } = lb.attention(q, k, k, { heads: 4, causal: true, cache });
      expect(output).toEqual(lb.attention(q, k, k, { heads: 4, kvHeads: 1, causal: true }).output);
    });
  });

  test("R16: columns of weights are those stored, then the new ones", () => {
    withCache(SIZES, (cache) => {
      const x = (length: number) => tensor([2, 2, length, 4]);
      lb.attention(x(3), x(3), x(3), { causal: true, cache });
      const mask = { data: Uint8Array.from({ length: 10 }, (_, at) => Number(at % 5 !== 1)), dims: [2, 5] };
      const { weights } = lb.attention(x(2), x(2), x(2), { causal: true, cache, mask, weights: "softmax" });
      expect(weights.dims).toEqual([2, 2, 2, 5]);
      expect(Array.from(weights.data.subarray(0, 10), Math.sign)).toEqual([1, 0, 1, 1, 0, 1, 0, 1, 1, 1]);
    });
  });

  test("R16: rolling names the position of column 0", () => {
    withCache({ ...SIZES, capacity: 4, rolling: true }, (cache) => {
      const options = { causal: true, cache, window: { left: 3 }, weights: "softmax" } as const;
      const x = tensor([2, 2, 3, 4]);
      expect(lb.attention(x, x, x, options).weights.dims).toEqual([2, 2, 3, 3]);
      expect([cache.length, cache.firstPosition]).toEqual([3, 0]);
      expect(lb.attention(x, x, x, options).weights.dims).toEqual([2, 2, 3, 6]);
      expect([cache.length, cache.firstPosition]).toEqual([6, 2]);
      expect(lb.attention(x, x, x, options).weights.dims).toEqual([2, 2, 3, 7]);
      expect([cache.length, cache.firstPosition, cache.capacity]).toEqual([9, 5, 4]);
      expect(cache.read().keys.dims).toEqual([2, 2, 4, 4]);
    });
  });

  test("R16: a clone goes its own way", () => {
    withCache({ ...SIZES, dtype: "int8" }, (cache) => {
      const x = tensor([2, 2, 3, 4]);
      cache.append(x, x);
      const copy = cache.clone();
      expect(copy.config).toEqual(cache.config);
      copy.append(x, x);
      cache.truncate(1);
      expect([cache.length, copy.length]).toEqual([1, 6]);
      cache.dispose();
      const { data } = copy.read().keys; // [2, 2, 6, 4]: the same three tokens twice
      for (let head = 0; head < 4; head++)
        expect(data.subarray(head * 24, head * 24 + 12)).toEqual(data.subarray(head * 24 + 12, head * 24 + 24));
      for (const [at, value] of data.subarray(0, 12).entries()) expect(value).toBeCloseTo(x.data[at]!, 1);
      copy.dispose();
    });
  });

  test("R16: saved bytes hold what is stored, not the capacity; they load from any view, and into another instance", async () => {
    const x = tensor([2, 2, 3, 4]);
    const other = await createLookback({ variant });
    const target = other.kvCache({ ...SIZES, capacity: 1000 });
    withCache({ ...SIZES, capacity: 1000 }, (cache) => {
      cache.append(x, x, { keyMask: [0, 1, 1, 1, 1, 1] });
      const bytes = cache.save();
      expect(bytes.length).toBeLessThan(1000);
      const shifted = new Uint8Array(bytes.length + 3).subarray(3);
      shifted.set(bytes);
      for (const form of [bytes, bytes.slice().buffer, shifted, Buffer.from(bytes)]) {
        target.reset();
        target.load(form);
        expect(target.save()).toEqual(bytes);
      }
      expect(target.read()).toEqual(cache.read());
      const q = tensor([2, 2, 1, 4], 5);
      expect(other.attention(q, null, null, { cache: target })).toEqual(lb.attention(q, null, null, { cache }));
    });
    other.dispose();
  });

  test("B3: a cache's memory is taken at once, never grows, and comes back", () => {
    const before = lb.memory();
    const cache = lb.kvCache({ batch: 1, kvHeads: 12, headDim: 64, capacity: 1024 });
    const taken = lb.memory();
    expect(taken.allocations).toBe(before.allocations + 1);
    expect(taken.bytes - before.bytes).toBeGreaterThanOrEqual(2 * 12 * 64 * 1024 * 4);
    expect(taken.bytes - before.bytes).toBeLessThan(2 * 12 * 64 * 1024 * 4 * 1.01);
    const x = tensor([1, 12, 7, 64]);
    for (let n = 0; n < 20; n++) lb.attention(x, x, x, { causal: true, cache });
    expect(lb.memory()).toMatchObject({ bytes: taken.bytes, allocations: taken.allocations });
    cache.dispose();
    cache.dispose();
    expect(cache.disposed).toBe(true);
    expect(lb.memory()).toMatchObject({ bytes: before.bytes, allocations: before.allocations });
  });

  test("B3: int8 takes about a quarter of float32", () => {
    const bytes = (dtype: "f32" | "int8") => {
      const before = lb.memory().bytes;
      const cache = lb.kvCache({ batch: 1, kvHeads: 4, headDim: 64, capacity: 512, dtype });
      const taken = lb.memory().bytes - before;
      cache.dispose();
      return taken;
    };
    expect(bytes("int8") / bytes("f32")).toBeLessThan(0.27);
  });

  test("B3: after disposal everything but dispose() and config is refused", () => {
    const cache = lb.kvCache(SIZES);
    const x = tensor([2, 2, 1, 4]);
    const bytes = cache.save();
    cache[Symbol.dispose ?? (Symbol.for("Symbol.dispose") as never)]();
    const uses: (() => unknown)[] = [
      () => cache.length,
      () => cache.lengths,
      () => cache.firstPosition,
      () => cache.append(x, x),
      () => cache.read(),
      () => cache.truncate(0),
      () => cache.reset(),
      () => cache.clone(),
      () => cache.save(),
      () => cache.load(bytes),
      () => lb.attention(x, x, x, { cache }),
    ];
    for (const use of uses) expectError(caught(use), "disposed", "The cache was disposed");
    expect(cache.config.capacity).toBe(8);
    cache.dispose();
  });

  test("B3: a cache dies with its instance", async () => {
    const other = await createLookback({ variant });
    const cache = other.kvCache(SIZES);
    other.dispose();
    expect(cache.disposed).toBe(true);
    expectError(
      caught(() => cache.length),
      "disposed",
      "instance was disposed",
    );
    expectError(
      caught(() => other.kvCache(SIZES)),
      "disposed",
    );
    cache.dispose();
  });
});
