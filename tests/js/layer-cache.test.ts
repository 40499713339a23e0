/** M2, R16, R17: a layer's caches and positions: configurations, forms, and what is refused, after which nothing has changed. */
import { expect, test } from "@jest/globals";
import { createLookback, type ErrorCode } from "lookback";
import { caught, expectAlive, expectError, tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";
import { loose, type Refusal, testRefusals } from "./support/refusals.js";

const CONFIG = { embedDim: 16, heads: 4, kvHeads: 2, rotary: { base: 500 } } as const;
const x = (length: number, batch = 2, width = 16) => tensor([batch, length, width]);

// biome-ignore lint/suspicious/noExplicitAny: the wrong types are the point
type Loose = any;
type Case = [
  rule: string,
  code: ErrorCode,
  shown: string[],
  action: (layer: Loose, cache: Loose, lb: Loose) => unknown,
];

/** On a layer with rotary positions and a cache of 8 that holds 6 tokens of each row. */
const CASES: Case[] = [
  ["R16: full", "cache-full", ["capacity of 8", "3 more", "[6, 6]"], (layer, cache) => layer.step(x(3), cache)],
  ["R16: another batch", "cache-mismatch", ["batch 2", "the call 1"], (layer, cache) => layer.step(x(1, 1), cache)],
  ["R16: no cache", "bad-option", ["cache", "layer.kvCache()", "undefined"], (layer) => layer.step(x(1))],
  [
    "R16: options where the cache should be",
    "bad-option",
    ["cache", "Object"],
    (layer) => layer.step(x(1), { weights: "softmax" }),
  ],
  [
    "R16: another layer's cache",
    "cache-mismatch",
    ["headDim 8", "the call 4"],
    (layer, _, lb) => {
      const other = lb.kvCache({ batch: 2, kvHeads: 2, headDim: 8, capacity: 8 });
      try {
        layer.step(x(1), other);
      } finally {
        other.dispose();
      }
    },
  ],
  ["M2: another width", "input-width", ["embedDim", "[2, 1, 8]"], (layer, cache) => layer.step(x(1, 2, 8), cache)],
  [
    "M2: a step is causal",
    "unknown-option",
    ["step has no option 'causal'"],
    (layer, cache) => layer.step(x(1), cache, { causal: false }),
  ],
  [
    "M2: a step has no memory",
    "unknown-option",
    ["step has no option 'memory'"],
    (layer, cache) => layer.step(x(1), cache, { memory: x(1) }),
  ],
  [
    "M2: a cache is for self-attention",
    "bad-option",
    ["layer.project(memory)"],
    (layer, cache) => layer.forward(x(1), { cache, memory: x(3) }),
  ],
  [
    "M2: a memory of values alone",
    "memory-missing",
    ["memoryValues"],
    (layer, cache) => layer.forward(x(1), { cache, memoryValues: x(3) }),
  ],
  [
    "R17: rotary positions are those of one sequence",
    "bad-option",
    ["rotary", "memory"],
    (layer) => layer.forward(x(1), { memory: x(3) }),
  ],
  [
    "R17: … projected or not",
    "bad-option",
    ["rotary", "memory"],
    (layer) => {
      const memory = layer.project(x(3));
      try {
        layer.forward(x(1), { memory });
      } finally {
        memory.dispose();
      }
    },
  ],
  [
    "R6: queryOffset with a cache",
    "bad-query-offset",
    ["With a cache"],
    (layer, cache) => layer.forward(x(1), { cache, causal: true, queryOffset: 6 }),
  ],
  [
    "R17: positions for other rows",
    "bad-option",
    ["positions: 1 values", "2 or 4"],
    (layer, cache) => layer.step(x(2), cache, { positions: [6] }),
  ],
  [
    "R16: keyLengths beyond the new tokens",
    "bad-option",
    ["keyLengths", "from 0 to 1"],
    (layer, cache) => layer.step(x(1), cache, { keyLengths: [7, 7] }),
  ],
  [
    "R16: a mask of the new columns",
    "mask-shape",
    ["6 stored keys"],
    (layer, cache) => layer.step(x(2), cache, { mask: { data: new Uint8Array(4), dims: [2, 2] } }),
  ],
];

const REFUSALS: Refusal[] = [
  [
    "R17: an odd headDim",
    "bad-option",
    ["multiHeadAttention: rotary: dims", "even", "5"],
    (lb) => lb.multiHeadAttention({ embedDim: 10, heads: 2, rotary: {} }),
  ],
  [
    "R17: another scaling",
    "bad-option",
    ["rotary: scaling.type", "'yarn'", '"su"'],
    (lb) => loose(lb).multiHeadAttention({ ...CONFIG, rotary: { scaling: { type: "su", factor: 2 } } }),
  ],
  [
    "R17: an option of lb.rotary alone",
    "unknown-option",
    ["rotary has no option 'offset'"],
    (lb) => loose(lb).multiHeadAttention({ ...CONFIG, rotary: { offset: 2 } }),
  ],
  ["R17: true", "bad-option", ["rotary", "true"], (lb) => loose(lb).multiHeadAttention({ ...CONFIG, rotary: true })],
  ["R17: false", "bad-option", ["rotary", "false"], (lb) => loose(lb).multiHeadAttention({ ...CONFIG, rotary: false })],
  [
    "R17: positions for a layer without them",
    "bad-option",
    ["positions", "rotary"],
    (lb) => {
      const layer = lb.multiHeadAttention({ embedDim: 16, heads: 4 });
      try {
        layer.forward(x(2), { positions: [0, 1] });
      } finally {
        layer.dispose();
      }
    },
  ],
];

describeVariants((lb, variant) => {
  test("M1, R17: the configuration keeps what rotary says; without it there is none", () => {
    const layer = lb.multiHeadAttention(CONFIG);
    expect(layer.config.rotary).toEqual({ base: 500 });
    layer.dispose();
    const plain = lb.multiHeadAttention({ embedDim: 8, heads: 2 });
    expect("rotary" in plain.config).toBe(false);
    plain.dispose();
  });

  test("R16: layer.kvCache has the layer's sizes", () => {
    const layer = lb.multiHeadAttention(CONFIG);
    const cache = layer.kvCache({ batch: 3, capacity: 5, dtype: "int8", rolling: true });
    expect(cache.config).toEqual({
      batch: 3,
      kvHeads: 2,
      headDim: 4,
      valueDim: 4,
      capacity: 5,
      dtype: "int8",
      rolling: true,
    });
    const x3 = x(2, 3);
    layer.step(x3, cache, { window: { left: 4 } });
    expect(cache.lengths).toEqual([2, 2, 2]);
    expectError(
      caught(() => layer.step(x3, cache)),
      "rolling-window",
      "below 5",
    );
    cache.dispose();
    expectError(
      caught(() => (layer.kvCache as Loose)({ batch: 1 })),
      "bad-option",
      "capacity is missing",
    );
    expectError(
      caught(() => (layer.kvCache as Loose)({ batch: 1, capacity: 4, kvHeads: 2 })),
      "unknown-option",
      "'kvHeads'",
    );
    layer.dispose();
    expectError(
      caught(() => layer.kvCache({ batch: 1, capacity: 4 })),
      "disposed",
    );
  });

  test("M2, R16: 2-D tokens are those of one row", () => {
    const layer = lb.multiHeadAttention(CONFIG);
    const cache = layer.kvCache({ batch: 1, capacity: 4 });
    const { output, weights } = layer.step({ data: x(2).data.slice(0, 32), dims: [2, 16] }, cache, {
      weights: "softmax",
    });
    expect([output.dims, weights.dims, cache.length]).toEqual([[2, 16], [1, 4, 2, 2], 2]);
    for (const each of [cache, layer]) each.dispose();
  });

  test("R17: positions of a call, for all rows or row by row", () => {
    const layer = lb.multiHeadAttention(CONFIG);
    const run = (positions?: number[] | BigInt64Array) => layer.forward(x(3), { causal: true, positions }).output;
    expect(run([0, 1, 2])).toEqual(run());
    expect(run(BigInt64Array.of(0n, 1n, 2n, 0n, 1n, 2n))).toEqual(run());
    expect(run([0, 2, 4])).not.toEqual(run());
    const left = run([0, 0, 1, 0, 1, 2]); // the first row is padded on the left
    expect(left.data.subarray(48)).toEqual(run().data.subarray(48));
    layer.dispose();
  });

  test.each(CASES.map((row) => [row[0], row[1], row] as const))("%s → %s", (_rule, code, [, , shown, action]) => {
    const layer = lb.multiHeadAttention(CONFIG);
    const cache = layer.kvCache({ batch: 2, capacity: 8 });
    layer.step(x(6), cache);
    const before = { bytes: cache.save(), memory: lb.memory() };
    expectError(
      caught(() => action(layer, cache, loose(lb))),
      code,
      ...shown,
    );
    expect(cache.save()).toEqual(before.bytes);
    expect(lb.memory()).toMatchObject({ bytes: before.memory.bytes, allocations: before.memory.allocations });
    layer.step(x(2), cache);
    expect(cache.lengths).toEqual([8, 8]);
    for (const each of [cache, layer]) each.dispose();
    expectAlive(lb);
  });

  test("B3: a layer or cache that is gone, or lives elsewhere", async () => {
    const other = await createLookback({ variant });
    const layer = lb.multiHeadAttention(CONFIG);
    const foreign = other.multiHeadAttention(CONFIG).kvCache({ batch: 2, capacity: 8 });
    expectError(
      caught(() => layer.step(x(1), foreign)),
      "other-instance",
      "cache",
    );
    expect(foreign.length).toBe(0);
    const cache = layer.kvCache({ batch: 2, capacity: 8 });
    cache.dispose();
    expectError(
      caught(() => layer.step(x(1), cache)),
      "disposed",
      "The cache",
    );
    layer.dispose();
    expectError(
      caught(() => layer.step(x(1), foreign)),
      "disposed",
      "layer",
    );
    other.dispose();
  });

  testRefusals(lb, REFUSALS);
});
