/** R16, B4: what a cache refuses, with the numbers that do not fit; after every refusal it holds what it held. */
import { expect, test } from "@jest/globals";
import { createLookback, type ErrorCode, type KvCache, type KvCacheConfig, type Lookback } from "lookback";
import { caught, expectAlive, expectError, tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";
import { loose, type Refusal, testRefusals } from "./support/refusals.js";

const SIZES = { batch: 2, kvHeads: 2, headDim: 4, capacity: 8 };
const x = (length: number, batch = 2, heads = 2, width = 4) => tensor([batch, heads, length, width]);

// biome-ignore lint/suspicious/noExplicitAny: the wrong types are the point
type Loose = any;
type Case = [rule: string, code: ErrorCode, shown: string[], action: (cache: Loose, lb: Loose) => unknown];

/** On a cache that holds 6 tokens of row 0 and 3 of row 1. */
const CASES: Case[] = [
  [
    "R16: full in a call",
    "cache-full",
    ["capacity of 8", "row 0 holds 6", "3 more", "[6, 3]"],
    (cache, lb) => lb.attention(x(3), x(3), x(3), { causal: true, cache }),
  ],
  ["R16: full in append", "cache-full", ["8", "row 0 holds 6", "3 more"], (cache) => cache.append(x(3), x(3))],
  [
    "R16: one row full",
    "cache-full",
    ["row 1 holds 3", "6 more"],
    (cache) => cache.append(x(6), x(6), { keyLengths: [0, 6] }),
  ],
  [
    "R16: another batch",
    "cache-mismatch",
    ["batch 2", "the call 1"],
    (cache, lb) => lb.attention(x(1, 1), x(1, 1), x(1, 1), { cache }),
  ],
  [
    "R16: other key/value heads",
    "cache-mismatch",
    ["kvHeads 2", "the call 4"],
    (cache, lb) => lb.attention(x(1, 2, 4), x(1, 2, 4), x(1, 2, 4), { cache }),
  ],
  [
    "R16: another headDim",
    "cache-mismatch",
    ["headDim 4", "the call 5"],
    (cache, lb) => lb.attention(x(1, 2, 2, 5), x(1, 2, 2, 5), x(1), { cache }),
  ],
  [
    "R16: another headDim of the query alone",
    "cache-mismatch",
    ["headDim 4", "the call 5"],
    (cache, lb) => lb.attention(x(1, 2, 2, 5), null, null, { cache }),
  ],
  [
    "R16: another valueDim",
    "cache-mismatch",
    ["valueDim 4", "the call 3"],
    (cache) => cache.append(x(1), x(1, 2, 2, 3)),
  ],
  [
    "R16: append with another batch",
    "cache-mismatch",
    ["batch 2", "the call 3"],
    (cache) => cache.append(x(1, 3), x(1, 3)),
  ],
  [
    "R16: append of other heads",
    "heads-mismatch",
    ["4 heads", "kvHeads is 2"],
    (cache) => cache.append(x(1, 2, 4), x(1)),
  ],
  ["R16: more values than keys", "length-mismatch", ["2 and 3"], (cache) => cache.append(x(2), x(3))],
  ["R16: append without values", "not-a-tensor", ["v", "undefined"], (cache) => cache.append(x(1))],
  ["R16: append of 1-D", "bad-rank", ["k", "[4]"], (cache) => cache.append(tensor([4]), x(1))],
  [
    "R16: another option of append",
    "unknown-option",
    ["append has no option 'mask'", "keyLengths, keyMask"],
    (cache) => cache.append(x(1), x(1), { mask: [1, 1] }),
  ],
  ["R16: only k is null", "not-a-tensor", ["k", "null"], (cache, lb) => lb.attention(x(1), null, x(1), { cache })],
  [
    "R6, R16: queryOffset with a cache",
    "bad-query-offset",
    ["With a cache", "leave it out"],
    (cache, lb) => lb.attention(x(1), x(1), x(1), { cache, causal: true, queryOffset: "end" }),
  ],
  [
    "R16: keyLengths of all tokens instead of the new ones",
    "bad-option",
    ["keyLengths", "from 0 to 1", "[0] is 7"],
    (cache, lb) => lb.attention(x(1), x(1), x(1), { cache, keyLengths: [7, 4] }),
  ],
  [
    "R16: a keyMask of all columns",
    "mask-shape",
    ["[2, 1]", "new tokens", "[2, 7]"],
    (cache, lb) => lb.attention(x(1), x(1), x(1), { cache, keyMask: { data: new Uint8Array(14), dims: [2, 7] } }),
  ],
  [
    "R16: a mask of the new columns only",
    "mask-shape",
    ["[2, 2]", "[2, 8]", "6 stored keys, then the 2 new ones"],
    (cache, lb) => lb.attention(x(2), x(2), x(2), { cache, mask: { data: new Uint8Array(4), dims: [2, 2] } }),
  ],
  [
    "R16: a bias of the new columns only",
    "bias-shape",
    ["6 stored keys"],
    (cache, lb) => lb.attention(x(2), x(2), x(2), { cache, bias: tensor([1, 2]) }),
  ],
  [
    "R16, R12: rows of weights that are not there",
    "bad-weights-request",
    ["from 0 to 1"],
    (cache, lb) => lb.attention(x(1), x(1), x(1), { cache, weights: { queries: [6, 7] } }),
  ],
  [
    "R16, B2: a target of the wrong size",
    "bad-out",
    ["out.weights", "[2, 2, 1, 7]"],
    (cache, lb) =>
      lb.attention(x(1), x(1), x(1), { cache, weights: "softmax", out: { weights: tensor([2, 2, 1, 1]) } }),
  ],
  [
    "R13, R16: more cells than columns",
    "bad-option",
    ["C ≤ 7"],
    (cache, lb) => lb.attention(x(1), x(1), x(1), { cache, summary: { map: [1, 8] } }),
  ],
  ["R16: a negative length", "bad-option", ["truncate", "≥ 0", "-1"], (cache) => cache.truncate(-1)],
  ["R16: truncating to nothing said", "bad-option", ["truncate", "undefined"], (cache) => cache.truncate()],
  ["R16: no bytes", "invalid-cache", ["Uint8Array", "received"], (cache) => cache.load([1, 2, 3])],
  ["R16: bytes of something else", "invalid-cache", ["save()"], (cache) => cache.load(new Uint8Array(100))],
  ["R16: too few bytes", "invalid-cache", ["save()"], (cache) => cache.load(cache.save().subarray(0, 7))],
  [
    "R16: bytes cut off",
    "invalid-cache",
    ["cut off or damaged"],
    (cache) => {
      const bytes = cache.save();
      return cache.load(bytes.subarray(0, bytes.length - 1));
    },
  ],
  [
    "R16: damaged lengths",
    "invalid-cache",
    ["damaged"],
    (cache) => {
      const bytes = cache.save();
      new DataView(bytes.buffer).setInt32(40, 9, true); // the first row's length, behind ten words of header
      return cache.load(bytes);
    },
  ],
];

const OTHERS: [rule: string, config: Partial<KvCacheConfig>, shown: string[]][] = [
  ["batch", { batch: 3 }, ["batch 3 there and 2 here"]],
  ["capacity", { capacity: 16 }, ["capacity 16 there and 8 here"]],
  ["valueDim", { valueDim: 3 }, ["valueDim 3 there and 4 here"]],
  ["dtype", { dtype: "int8" }, ["dtype int8 there and f32 here"]],
  [
    "rolling and kvHeads",
    { rolling: true, kvHeads: 1 },
    ["kvHeads 1 there and 2 here", "rolling true there and false here"],
  ],
];

const REFUSALS: Refusal[] = [
  ["R16: no sizes", "bad-option", ["batch is missing", "capacity"], (lb) => loose(lb).kvCache()],
  [
    "R16: a size too few",
    "bad-option",
    ["headDim is missing"],
    (lb) => loose(lb).kvCache({ batch: 1, kvHeads: 1, capacity: 4 }),
  ],
  ["R16: a capacity of 0", "bad-option", ["capacity", "≥ 1", "0"], (lb) => lb.kvCache({ ...SIZES, capacity: 0 })],
  [
    "R16: another type",
    "bad-option",
    ["'f32' or 'int8'", '"f16"'],
    (lb) => loose(lb).kvCache({ ...SIZES, dtype: "f16" }),
  ],
  ["R16: another name", "unknown-option", ["'maxLength'"], (lb) => loose(lb).kvCache({ ...SIZES, maxLength: 4 })],
  ["R16: heads", "unknown-option", ["'heads'", "'kvHeads'"], (lb) => loose(lb).kvCache({ ...SIZES, heads: 2 })],
  [
    "R23: beyond the memory",
    "too-large",
    ["The cache", "8589934592 bytes"],
    (lb) => lb.kvCache({ batch: 1, kvHeads: 16, headDim: 64, capacity: 2 ** 20 }),
  ],
  [
    "R23: sizes whose product is no integer any more",
    "too-large",
    ["bytes"],
    (lb) => lb.kvCache({ batch: 2 ** 31 - 1, kvHeads: 2 ** 31 - 1, headDim: 2 ** 31 - 1, capacity: 2 ** 31 - 1 }),
  ],
  [
    "R16: something else as cache",
    "bad-option",
    ["cache", "lb.kvCache()", "Object"],
    (lb) => loose(lb).attention(x(1), x(1), x(1), { cache: {} }),
  ],
  ["R16: no tokens and no cache", "not-a-tensor", ["k", "null"], (lb) => lb.attention(x(1), null, null)],
];

function filled(lb: Lookback, config: Partial<KvCacheConfig> = {}): KvCache {
  const cache = lb.kvCache({ ...SIZES, ...config });
  const { batch, kvHeads, headDim, valueDim } = cache.config;
  const keyLengths = Array.from({ length: batch }, (_, b) => (b === 0 ? 6 : 3));
  cache.append(tensor([batch, kvHeads, 6, headDim], 1), tensor([batch, kvHeads, 6, valueDim], 2), { keyLengths });
  return cache;
}

describeVariants((lb, variant) => {
  test.each(CASES.map((row) => [row[0], row[1], row] as const))("%s → %s", (_rule, code, [, , shown, action]) => {
    for (const config of [{}, { dtype: "int8" }] as const) {
      const cache = filled(lb, config);
      const before = { bytes: cache.save(), memory: lb.memory() };
      expectError(
        caught(() => action(cache, loose(lb))),
        code,
        ...shown,
      );
      expect(cache.save()).toEqual(before.bytes);
      expect(lb.memory()).toMatchObject({ bytes: before.memory.bytes, allocations: before.memory.allocations });
      const q = x(2);
      expect(lb.attention(q, q, q, { causal: true, cache }).output.dims).toEqual([2, 2, 2, 4]);
      expect(cache.lengths).toEqual([8, 5]);
      cache.dispose();
    }
    expectAlive(lb);
  });

  test.each(OTHERS)("R16: bytes of a cache with another %s say what differs", (_what, config, shown) => {
    const [cache, other] = [filled(lb), filled(lb, config)];
    const before = cache.save();
    expectError(
      caught(() => cache.load(other.save())),
      "cache-mismatch",
      ...shown,
    );
    expect(cache.save()).toEqual(before);
    for (const each of [cache, other]) each.dispose();
  });

  test("R16: rolling needs a window below the capacity", () => {
    const cache = lb.kvCache({ ...SIZES, rolling: true });
    const run = (window?: { left?: number }) => lb.attention(x(1), x(1), x(1), { causal: true, cache, window });
    for (const window of [undefined, {}, { left: 8 }, { left: Infinity }]) {
      expectError(
        caught(() => run(window)),
        "rolling-window",
        "window.left below 8",
        "last 8 tokens",
      );
      expect(cache.length).toBe(0);
    }
    run({ left: 7 });
    expect(cache.length).toBe(1);
    cache.dispose();
  });

  test("R16: what has rolled out cannot come back", () => {
    const cache = lb.kvCache({ ...SIZES, rolling: true });
    for (let n = 0; n < 4; n++) cache.append(x(5), x(5));
    const before = cache.save();
    expect([cache.length, cache.firstPosition]).toEqual([20, 12]);
    expectError(
      caught(() => cache.truncate(11)),
      "evicted",
      "position 12",
      "row 0",
      "11",
    );
    expect(cache.save()).toEqual(before);

    // After truncate() a query would look further back than the cache still goes.
    cache.truncate(15);
    const run = (left: number) => lb.attention(x(1), null, null, { cache, causal: true, window: { left } });
    expectError(
      caught(() => run(4)),
      "evicted",
      "window.left 4",
      "position 15",
      "back to 11",
      "begins at 12",
    );
    expect(run(3).output.dims).toEqual([2, 2, 1, 4]);
    expect(cache.lengths).toEqual([15, 15]);
    cache.dispose();
  });

  test("R16, B3: a cache of another instance", async () => {
    const other = await createLookback({ variant });
    const cache = filled(other);
    const before = cache.save();
    expectError(
      caught(() => lb.attention(x(1), x(1), x(1), { cache })),
      "other-instance",
      "cache",
    );
    expect(cache.save()).toEqual(before);
    const foreign = lb.tensor(null, [2, 2, 1, 4]);
    expectError(
      caught(() => cache.append(foreign, foreign)),
      "other-instance",
      "k",
    );
    foreign.dispose();
    other.dispose();
  });

  test("R23: more than there is left", async () => {
    const other = await createLookback({ variant });
    const half = { batch: 1, kvHeads: 8, headDim: 64, capacity: 600_000 };
    const first = other.kvCache(half);
    const before = other.memory();
    expectError(
      caught(() => other.kvCache(half)),
      "out-of-memory",
      "the cache",
      "bytes",
    );
    expectError(
      caught(() => first.clone()),
      "out-of-memory",
      "the cache",
    );
    expect(other.memory()).toEqual(before);
    first.dispose();
    other.kvCache(half);
    expectAlive(other);
    other.dispose();
  });

  testRefusals(lb, REFUSALS);
});
