/** What every builder of masks.* draws, how masks combine, and that they mean to a call what they say. */
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { type ErrorCode, type Mask, type MaskPlacement, masks, type QueryOffset, type Tensor } from "lookback";
import { readBroadcast, visibility } from "./reference.ts";
import { randomFloats, randomSource } from "./reference-data.ts";
import { caught, expectError, product } from "./support/helpers.ts";
import { describeVariants } from "./support/instances.ts";

const rows = (mask: Mask): string[] => String(mask).split("\n");
/** Every place of [B, 1, Lq, Lk] that a mask leaves visible, whatever its dims. */
const spread = (mask: Mask, batch: number, queryLength: number, keyLength: number): number[] => {
  const all: number[] = [];
  for (let b = 0; b < batch; b++) {
    for (let i = 0; i < queryLength; i++) {
      for (let j = 0; j < keyLength; j++) all.push(readBroadcast(mask, b, 0, i, j));
    }
  }
  return all;
};

const length = fc.integer({ min: 1, max: 9 });
const side = fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constant(Infinity));
const offset = fc.oneof(fc.constantFrom<QueryOffset>("start", "end"), fc.integer({ min: -12, max: 12 }));

describe("builders", () => {
  test("R7: masks.window shows left and right of the position, which is not counted", () => {
    expect(rows(masks.window(4, { left: 1, right: 0 }))).toEqual(["■ · · ·", "■ ■ · ·", "· ■ ■ ·", "· · ■ ■"]);
    expect(rows(masks.window(3, { right: 1 }))).toEqual(["■ ■ ·", "■ ■ ■", "■ ■ ■"]);
    expect(rows(masks.window(2, { left: 1, right: 0, keyLength: 4, queryOffset: "end" }))).toEqual([
      "· ■ ■ ·",
      "· · ■ ■",
    ]);
    expect([...masks.window(3, {}).data]).toEqual(new Array(9).fill(1));
  });

  test("R6, R7: causal and window are the reference's, for any lengths and offset", () => {
    fc.assert(
      fc.property(length, length, side, side, offset, (queryLength, keyLength, left, right, queryOffset) => {
        const shape = { batch: 1, heads: 1, kvHeads: 1, queryLength, keyLength, headDim: 1, valueDim: 1 };
        const place = { keyLength, queryOffset };
        const reference = (options: object) => [...visibility({ ...options, queryOffset }, shape)];
        expect([...masks.causal(queryLength, keyLength, queryOffset).data]).toEqual(reference({ causal: true }));
        expect([...masks.window(queryLength, { left, right, ...place }).data]).toEqual(
          reference({ window: { left, right } }),
        );
      }),
    );
  });

  test("R6: one offset per batch row makes a mask per batch row", () => {
    const mask = masks.causal(2, 3, [1, -1]);
    expect(mask.dims).toEqual([2, 1, 2, 3]);
    expect(rows(mask)).toEqual(["■ ■ ·", "■ ■ ■", "", "· · ·", "■ · ·"]);
    expect(masks.window(2, { left: 0, right: 0, queryOffset: Int32Array.of(0, 1) }).dims).toEqual([2, 1, 2, 2]);
  });

  test("masks.dilated shows every step-th key from the position, in positions of a window", () => {
    expect(rows(masks.dilated(5, { step: 2 }))).toEqual([
      "■ · ■ · ■",
      "· ■ · ■ ·",
      "■ · ■ · ■",
      "· ■ · ■ ·",
      "■ · ■ · ■",
    ]);
    expect(rows(masks.dilated(5, { step: 2, left: 3, right: 0 }).and(masks.causal(5)))).toEqual([
      "■ · · · ·",
      "· ■ · · ·",
      "■ · ■ · ·",
      "· ■ · ■ ·",
      "· · ■ · ■",
    ]);
    fc.assert(
      fc.property(
        length,
        length,
        side,
        side,
        offset,
        fc.integer({ min: 1, max: 5 }),
        (Lq, Lk, left, right, at, step) => {
          const shift = at === "start" ? 0 : at === "end" ? Lk - Lq : (at as number);
          const expected = masks.from([Lq, Lk], (i, j) => {
            const distance = i + shift - j;
            return distance % step === 0 && distance <= left && -distance <= right;
          });
          const found = masks.dilated(Lq, { step, left, right, keyLength: Lk, queryOffset: at });
          expect(rows(found)).toEqual(rows(expected));
        },
      ),
    );
  });

  test("masks.prefix shows the prefix to everyone and the rest causally, also per batch row", () => {
    expect(rows(masks.prefix(4, 2))).toEqual(["■ ■ · ·", "■ ■ · ·", "■ ■ ■ ·", "■ ■ ■ ■"]);
    expect(rows(masks.prefix(3, 0))).toEqual(rows(masks.causal(3)));
    expect(rows(masks.prefix(2, 9))).toEqual(["■ ■", "■ ■"]);
    expect(rows(masks.prefix(1, 1, { keyLength: 4, queryOffset: 2 }))).toEqual(["■ ■ ■ ·"]);
    const perRow = masks.prefix(3, BigInt64Array.of(0n, 3n));
    expect(perRow.dims).toEqual([2, 1, 3, 3]);
    expect(rows(perRow)).toEqual([...rows(masks.prefix(3, 0)), "", ...rows(masks.prefix(3, 3))]);
    const placed = masks.prefix(2, [1, 2], { queryOffset: [0, -1] });
    expect(rows(placed)).toEqual(["■ ·", "■ ■", "", "■ ■", "■ ■"]);
  });

  test("masks.documents lets a query see its own document", () => {
    const ids = [7, 7, 3, 3, 7];
    expect(rows(masks.documents(ids).and(masks.causal(5)))).toEqual([
      "■ · · · ·",
      "■ ■ · · ·",
      "· · ■ · ·",
      "· · ■ ■ ·",
      "■ ■ · · ■",
    ]);
    expect(rows(masks.documents([1, 2], BigInt64Array.of(2n, 1n, 2n)))).toEqual(["· ■ ·", "■ · ■"]);
    const batch = masks.documents({ data: Int32Array.of(0, 1, 5, 5), dims: [2, 2] });
    expect(batch.dims).toEqual([2, 1, 2, 2]);
    expect(rows(batch)).toEqual(["■ ·", "· ■", "", "■ ■", "■ ■"]);
    expect(rows(masks.documents({ data: [1, 1], dims: [2] }))).toEqual(["■ ■", "■ ■"]);
    expect(masks.documents([]).dims).toEqual([0, 0]);
  });

  test("R5: masks.padding from lengths, or from 0 and 1 anywhere", () => {
    const mask = masks.padding([2, 0, 3]);
    expect(mask.dims).toEqual([3, 1, 1, 3]);
    expect([...mask.data]).toEqual([1, 1, 0, 0, 0, 0, 1, 1, 1]);
    expect([...masks.padding(BigInt64Array.of(1n), 4).data]).toEqual([1, 0, 0, 0]);
    const left = masks.padding({ data: BigInt64Array.of(0n, 1n, 1n, 1n), dims: [2, 2] }, 2);
    expect(left.dims).toEqual([2, 1, 1, 2]);
    expect(rows(left.and(masks.causal(2)))).toEqual(["· ·", "· ■", "", "■ ·", "■ ■"]);
    expect(masks.padding({ data: [true, false], dims: [2] }).dims).toEqual([1, 1, 1, 2]);
    expect(masks.padding([]).dims).toEqual([0, 1, 1, 0]);
  });

  test("masks.from asks a function for every place, with one index per dim", () => {
    expect(rows(masks.from([2, 3], (i, j) => j <= i))).toEqual(["■ · ·", "■ ■ ·"]);
    const seen: number[][] = [];
    const mask = masks.from([2, 1, 2, 2], (...index) => seen.push(index) % 2 === 1);
    expect(mask.dims).toEqual([2, 1, 2, 2]);
    expect(seen).toEqual([0, 1].flatMap((b) => [0, 1].flatMap((i) => [0, 1].map((j) => [b, 0, i, j]))));
    expect([...mask.data]).toEqual([1, 0, 1, 0, 1, 0, 1, 0]);
    expect([...masks.from([3], (j) => j > 0).data]).toEqual([0, 1, 1]);
    expect(masks.from([0, 3], () => true).dims).toEqual([0, 3]);
  });
});

/** One mask of each kind over the same [B, Lq, Lk], with what it says in words of its own. */
type Rule = [Mask, (b: number, i: number, j: number) => boolean];
const rules = fc
  .record({
    batch: fc.integer({ min: 1, max: 3 }),
    n: fc.integer({ min: 1, max: 6 }),
    left: fc.nat(6),
    right: fc.nat(6),
    step: fc.integer({ min: 1, max: 4 }),
    seed: fc.nat(1000),
    chosen: fc.uniqueArray(fc.nat(5), { minLength: 1 }),
  })
  .map(({ batch, n, left, right, step, seed, chosen }) => {
    const random = randomSource(seed);
    const draw = (count: number, below: number) => Array.from({ length: count }, () => Math.floor(random() * below));
    const [lengths, ids, prefixes] = [draw(batch, n + 1), draw(batch * n, 3), draw(batch, n + 1)];
    const all: Rule[] = [
      [masks.causal(n), (_b, i, j) => j <= i],
      [masks.window(n, { left, right }), (_b, i, j) => j >= i - left && j <= i + right],
      [masks.padding(lengths, n), (b, _i, j) => j < lengths[b]!],
      [masks.documents({ data: ids, dims: [batch, n] }), (b, i, j) => ids[b * n + i] === ids[b * n + j]],
      [masks.prefix(n, prefixes), (b, i, j) => j <= i || j < prefixes[b]!],
      [masks.dilated(n, { step }), (_b, i, j) => (i - j) % step === 0],
    ];
    return { batch, n, rules: chosen.map((index) => all[index]!) };
  });

describe("R8: masks combine", () => {
  const places = (batch: number, n: number, visible: (b: number, i: number, j: number) => boolean) => [
    ...masks.from([batch, 1, n, n], (b, _h, i, j) => visible(b!, i!, j!)).data,
  ];

  test("and is every one of them, or is any of them, whatever their dims and their order", () => {
    fc.assert(
      fc.property(rules, ({ batch, n, rules: some }) => {
        const all = some.map(([mask]) => mask);
        const [and, or] = [all.reduce((a, b) => a.and(b)), all.reduce((a, b) => a.or(b))];
        const every = places(batch, n, (b, i, j) => some.every(([, sees]) => sees(b, i, j)));
        expect(spread(and, batch, n, n)).toEqual(every);
        expect(spread(or, batch, n, n)).toEqual(places(batch, n, (b, i, j) => some.some(([, sees]) => sees(b, i, j))));
        expect(
          spread(
            all.reduceRight((a, b) => a.and(b)),
            batch,
            n,
            n,
          ),
        ).toEqual(every);
        expect(
          spread(
            all
              .map((mask) => mask.not())
              .reduce((a, b) => a.or(b))
              .not(),
            batch,
            n,
            n,
          ),
        ).toEqual(every);
      }),
    );
  });
});

describe("refused", () => {
  const loose = (value: object) => value as MaskPlacement;
  const flags = { data: Uint8Array.of(1, 0), dims: [2] };
  const refusals: [string, ErrorCode, string[], () => unknown][] = [
    ["R7: flash-attention's −1", "bad-option", ["left", "Infinity", "-1"], () => masks.window(3, { left: -1 })],
    ["R7: half a position", "bad-option", ["right", "0.5"], () => masks.window(3, { right: 0.5 })],
    ["B4: an unknown option", "unknown-option", ["'right'"], () => masks.window(3, loose({ rigth: 1 }))],
    [
      "R6: lengths that differ",
      "query-offset-missing",
      ["3 queries", "5 keys"],
      () => masks.window(3, { left: 1, keyLength: 5 }),
    ],
    ["R3: a length below 0", "bad-dims", ["masks.window", "-1"], () => masks.window(-1, {})],
    ["R23: too large", "too-large", ["10000000000"], () => masks.dilated(1e5, { step: 1 })],
    ["no step", "bad-option", ["step", "undefined"], () => masks.dilated(3, {} as { step: number })],
    ["a step of 0", "bad-option", ["step", "0"], () => masks.dilated(3, { step: 0 })],
    ["a prefix below 0", "bad-values", ["prefixLength", "-1"], () => masks.prefix(3, -1)],
    ["a prefix that is none", "bad-values", ["prefixLength", '"2"'], () => masks.prefix(3, "2" as unknown as number)],
    [
      "as many prefixes as offsets",
      "bad-query-offset",
      ["3 values", "batch of 2"],
      () => masks.prefix(3, [1, 2], { queryOffset: [0, 0, 0] }),
    ],
    ["ids with a hole", "bad-values", ["ids", "undefined"], () => masks.documents([1, undefined as unknown as number])],
    ["ids of half", "bad-values", ["ids", "0.5"], () => masks.documents([0.5])],
    ["ids that are none", "bad-values", ["ids", "null"], () => masks.documents(null as unknown as number[])],
    ["ids of 3 dims", "bad-values", ["[1, 1, 1]", "[B, L]"], () => masks.documents({ data: [1], dims: [1, 1, 1] })],
    [
      "ids of other dims",
      "dims-data-mismatch",
      ["[2, 2]", "3"],
      () => masks.documents({ data: [1, 2, 3], dims: [2, 2] }),
    ],
    [
      "ids of two batches",
      "mask-shape",
      ["1", "2"],
      () => masks.documents({ data: [1, 2], dims: [1, 2] }, { data: [1, 2], dims: [2, 1] }),
    ],
    ["R5: a length beyond", "mask-shape", ["length 4", "row 1", "keyLength 3"], () => masks.padding([1, 4], 3)],
    [
      "R5: flags for lengths",
      "bad-values",
      ["{ data, dims: [B, Lk] }", "true"],
      () => masks.padding([true, false] as unknown as number[]),
    ],
    ["R5: flags of other lengths", "mask-shape", ["[B, 3]", "[2]"], () => masks.padding(flags, 3)],
    [
      "R5: flags that are a whole mask",
      "mask-shape",
      ["[B, Lk]", "[2, 2, 2]"],
      () => masks.padding({ data: new Uint8Array(8), dims: [2, 2, 2] }),
    ],
    [
      "a function that answers nothing",
      "bad-values",
      ["[0, 0]", "true or false", "undefined"],
      () => masks.from([2, 2], (() => {}) as () => boolean),
    ],
    ["no function", "bad-option", ["function", "1"], () => masks.from([2, 2], 1 as unknown as () => boolean)],
    ["no dims", "bad-dims", ["[]"], () => masks.from([], () => true)],
  ];
  test.each(refusals)("%s → %s", (_what, code, shown, action) => expectError(caught(action), code, ...shown));

  test("B1: a detached list of ids is said to be detached", () => {
    const ids = Int32Array.of(1, 2);
    structuredClone(ids.buffer, { transfer: [ids.buffer] });
    expectError(
      caught(() => masks.documents(ids)),
      "detached-buffer",
      "ids",
    );
  });
});

describeVariants((lb) => {
  const heads = 2;
  const [q, k, v] = [1, 2, 3].map((seed): Tensor => {
    const dims = [2, 6, 8];
    return { data: randomFloats(randomSource(seed), product(dims)), dims };
  }) as [Tensor, Tensor, Tensor];
  /** Rows [from, to) of batch row b, alone. */
  const part = ({ data }: Tensor, b: number, from: number, to: number): Tensor => ({
    data: data.slice((b * 6 + from) * 8, (b * 6 + to) * 8),
    dims: [1, to - from, 8],
  });
  const near = (found: ArrayLike<number>, expected: ArrayLike<number>) => {
    expect(found.length).toBe(expected.length);
    for (let n = 0; n < expected.length; n++) expect(Math.abs(found[n]! - expected[n]!)).toBeLessThanOrEqual(2e-6);
  };

  test("R8: packed documents are what each document is alone", () => {
    const ids = [0, 0, 1, 1, 1, 2];
    const mask = masks.documents(ids).and(masks.causal(6));
    const { output } = lb.attention(q, k, v, { heads, mask });
    for (const [from, to] of [
      [0, 2],
      [2, 5],
      [5, 6],
    ] as const) {
      for (const b of [0, 1]) {
        const own = [q, k, v].map((tensor) => part(tensor, b, from, to)) as [Tensor, Tensor, Tensor];
        near(part(output, b, from, to).data, lb.attention(...own, { heads, causal: true }).output.data);
      }
    }
  });

  test("R5: padded rows are what they are without padding", () => {
    const { output } = lb.attention(q, k, v, { heads, mask: masks.padding([4, 6]).and(masks.causal(6)) });
    const own = [q, k, v].map((tensor) => part(tensor, 0, 0, 4)) as [Tensor, Tensor, Tensor];
    near(part(output, 0, 0, 4).data, lb.attention(...own, { heads, causal: true }).output.data);
    const all = [q, k, v].map((tensor) => part(tensor, 1, 0, 6)) as [Tensor, Tensor, Tensor];
    near(part(output, 1, 0, 6).data, lb.attention(...all, { heads, causal: true }).output.data);
  });

  test("R8: one mask of many kinds gives the bits of the same places from a function", () => {
    fc.assert(
      fc.property(rules, ({ batch, n, rules: some }) => {
        const x = { data: randomFloats(randomSource(n), batch * n * 4), dims: [batch, n, 4] };
        const mask = some.map(([own]) => own).reduce((a, b) => a.and(b));
        const plain = masks.from([batch, 1, n, n], (b, _h, i, j) => some.every(([, sees]) => sees(b!, i!, j!)));
        const options = { heads: 2, weights: "softmax" } as const;
        expect(lb.attention(x, x, x, { ...options, mask })).toEqual(lb.attention(x, x, x, { ...options, mask: plain }));
      }),
    );
  });
});
