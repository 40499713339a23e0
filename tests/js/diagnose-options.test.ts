/** lb.diagnose with every other option of lb.attention: each keeps its meaning, slices of rows and caches included. */
import { describe, expect, test } from "@jest/globals";
import { type AttentionOptions, masks } from "lookback";
import { bits, codes, expectHealthy, find, lowBias, normal, only, operands } from "./support/diagnosis.js";
import { caught, expectError } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";

describeVariants((lb) => {
  const length = 24;
  const [q, k, v] = operands([2, 4, length, 16]);

  describe("healthy attention with", () => {
    test.each<[string, AttentionOptions]>([
      ["a causal window", { causal: true, window: { left: 6 } }],
      ["a window to both sides", { window: { left: 3, right: 3 } }],
      ["ALiBi", { causal: true, alibi: true }],
      ["sinks", { causal: true, sinks: [0, 1, 2, 3] }],
      ["a softcap", { softcap: 20 }],
      ["padding on the right", { keyLengths: [24, 9] }],
      ["padding on the right and causal", { keyLengths: [24, 9], causal: true }],
      ["padding on the left and causal", { keyMask: bits(2, length, (b, j) => b === 0 || j >= 15), causal: true }],
      ["summaries asked for", { causal: true, summary: { entropy: true, topK: 2 } }],
    ])("%s", (_name, options) => expectHealthy(lb.diagnose(q, k, v, options)));
  });

  test("R5: rows that padding and positions leave without keys are named", () => {
    const short = operands([2, 4, 4, 16], 10);
    const options = { causal: true, keyLengths: [10, 2], queryOffset: "end" } as const; // offsets 6 and −2
    expect(only(lb.diagnose(...short, options), "rows-see-nothing")).toMatchObject({ batches: [1], rows: [0, 1] });
    const none = only(lb.diagnose(q, k, v, { keyLengths: [24, 0] }), "rows-see-nothing");
    expect(none.batches).toEqual([1]);
    expect(none.numbers.rows).toBe(4 * length);
  });

  test("R7: a window that ends at the present shuts a leak of the mask", () => {
    const mask = bits(length, length, (i, j) => j <= i || (i === 2 && j === 9));
    expect(codes(lb.diagnose(q, k, v, { mask }))).toEqual(["future-leak"]);
    expectHealthy(lb.diagnose(q, k, v, { mask, window: { right: 0 } }));
  });

  test("R10: NaN in padded keys and values is harmless, and said to be", () => {
    const bad = { data: k.data.slice(), dims: k.dims };
    bad.data[length * 16 * 4 + 20 * 16] = Number.NaN; // batch row 1, head 0, key 20
    for (const [keys, values] of [
      [bad, v],
      [k, bad],
    ] as const) {
      const padded = only(lb.diagnose(q, keys, values, { keyLengths: [24, 20] }), "non-finite");
      expect(padded).toMatchObject({ severity: "info", batches: [1], heads: [0], keys: [20] });
      expect(only(lb.diagnose(q, keys, values, { keyLengths: [24, 21] }), "non-finite").severity).toBe("error");
    }
  });

  test("slices of rows agree with the whole: masks, biases and offsets move along", () => {
    const [rows, heads] = [700, 4];
    const long = operands([1, heads, rows, 8]); // 4 × 700 × 700 scores are two slices
    expectHealthy(lb.diagnose(...long, { mask: masks.causal(rows) }));
    expectHealthy(lb.diagnose(...long, { bias: masks.causal(rows).toBias(), alibi: true }));
    const mask = bits(rows, rows, (i, j) => (j <= i && i !== 650) || (i === 600 && j === 699));
    const diagnosis = lb.diagnose(...long, { mask });
    expect(diagnosis.examined.rows).toBe(rows);
    expect(codes(diagnosis)).toEqual(["rows-see-nothing", "future-leak"]);
    expect(find(diagnosis, "rows-see-nothing")).toMatchObject({ rows: [650], numbers: { rows: heads } });
    expect(find(diagnosis, "future-leak")).toMatchObject({ rows: [600], keys: [699] });
    const { weights } = lb.attention(...long, { mask, weights: { queries: [600, 601] } });
    const leaked = Math.max(...[0, 1, 2, 3].map((h) => weights.data[h * rows + 699]!));
    expect(find(diagnosis, "future-leak").numbers.weight).toBeCloseTo(leaked, 5);
    const low = lowBias(
      bits(rows, rows, (i, j) => j <= i && i !== 650),
      -1e9,
    );
    expect(only(lb.diagnose(...long, { bias: low }), "bias-is-mask")).toMatchObject({ rows: [650] });
  });

  describe("R16: with a cache", () => {
    const filled = () => {
      const cache = lb.kvCache({ batch: 2, kvHeads: 4, headDim: 16, capacity: 64 });
      cache.append(k, v);
      return cache;
    };
    const next = operands([2, 4, 10, 16], 10, 7);

    test("all is seen as the call would see it, and the cache stays as it is", () => {
      const cache = filled();
      const before = cache.save();
      const diagnosis = lb.diagnose(...next, { cache, causal: true });
      expectHealthy(diagnosis);
      expect(diagnosis.examined).toMatchObject({ queryLength: 10, keyLength: length + 10, futureWeight: 0 });
      expect(lb.diagnose(...next, { cache }).examined.futureWeight).toBeGreaterThan(0);
      expectHealthy(lb.diagnose(next[0], null, null, { cache }));
      expect(cache.lengths).toEqual([length, length]);
      expect(cache.save()).toEqual(before);
      const live = lb.memory().allocations;
      cache.dispose();
      expect(lb.memory().allocations).toBe(live - 1);
    });

    test("columns of masks and of findings count stored and new keys", () => {
      const cache = filled();
      const total = length + 10;
      const mask = bits(10, total, (i, j) => j <= i + length || (i === 3 && j === total - 1));
      const leak = only(lb.diagnose(...next, { cache, mask }), "future-leak");
      expect(leak).toMatchObject({ severity: "warning", rows: [3], keys: [total - 1] });
      const bad = { data: next[1].data.slice(), dims: next[1].dims };
      bad.data[(1 * 10 + 5) * 16] = Number.NaN; // head 1, new key 5
      const hidden = bits(1, total, (_, j) => j !== length + 5);
      expect(only(lb.diagnose(next[0], bad, next[2], { cache }), "non-finite").severity).toBe("error");
      expect(only(lb.diagnose(next[0], bad, next[2], { cache, mask: hidden }), "non-finite").severity).toBe("info");
      cache.dispose();
    });

    test("its errors are those of attention", () => {
      const cache = filled();
      const many = operands([2, 4, 60, 16]);
      expectError(
        caught(() => lb.diagnose(...many, { cache, causal: true })),
        "cache-full",
        "64",
      );
      expectError(
        caught(() => lb.diagnose(...next, { cache, queryOffset: 3 })),
        "bad-query-offset",
      );
      cache.dispose();
      expectError(
        caught(() => lb.diagnose(...next, { cache })),
        "disposed",
      );
    });
  });

  test("R1: 2-D and 3-D inputs, slices included", () => {
    const x = normal([1, 700, 32], 3);
    const flat = { data: x.data, dims: [700, 32] };
    const mask = bits(700, 700, (i, j) => j <= i && i !== 650);
    for (const given of [x, flat]) {
      const finding = only(
        lb.diagnose(given, normal([...given.dims], 4), given, { heads: 4, mask }),
        "rows-see-nothing",
      );
      expect(finding.rows).toEqual([650]);
    }
  });
});
