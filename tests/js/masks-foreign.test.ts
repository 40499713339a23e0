/** Masks of PyTorch, Keras and ONNX: what they hide there is hidden here. */
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { type ErrorCode, type Mask, masks } from "lookback";
import { readBroadcast } from "./reference.ts";
import { caught, expectError, product } from "./support/helpers.ts";

const rows = (mask: Mask): string[] => String(mask).split("\n");
const flags = (dims: number[], ...data: number[]) => ({ data: Uint8Array.from(data), dims });
const floats = (dims: number[], ...data: number[]) => ({ data: Float32Array.from(data), dims });
const _ = -Infinity;

const sizes = fc.record({
  B: fc.integer({ min: 1, max: 3 }),
  H: fc.integer({ min: 1, max: 3 }),
  L: fc.integer({ min: 1, max: 4 }),
  S: fc.integer({ min: 1, max: 4 }),
  seed: fc.array(fc.boolean(), { minLength: 3 * 3 * 4 * 4, maxLength: 3 * 3 * 4 * 4 }),
  padding: fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
  other: fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
});
interface Sizes {
  B: number;
  H: number;
  L: number;
  S: number;
}

/** Every place of [B, H, L, S] by a function of its indices, against the mask as a call broadcasts it. */
function expectPlaces(
  mask: Mask,
  { B, H, L, S }: Sizes,
  visible: (b: number, h: number, i: number, j: number) => boolean,
) {
  for (let b = 0; b < B; b++) {
    for (let h = 0; h < H; h++) {
      for (let i = 0; i < L; i++) {
        for (let j = 0; j < S; j++) {
          if ((readBroadcast(mask, b, h, i, j) === 1) !== visible(b, h, i, j))
            throw new Error(`[${b}, ${h}, ${i}, ${j}]`);
        }
      }
    }
  }
}

describe("R3: masks.fromTorch, where true hides", () => {
  test("bool and float say the same", () => {
    const causal = rows(masks.causal(2));
    expect(rows(masks.fromTorch(flags([2, 2], 0, 1, 0, 0)))).toEqual(causal);
    expect(rows(masks.fromTorch({ data: [false, true, false, false], dims: [2, 2] }))).toEqual(causal);
    expect(rows(masks.fromTorch(floats([2, 2], 0, _, -0, 0)))).toEqual(causal);
  });

  test("key_padding_mask goes to the keys of its batch row, alone and with an attn_mask of 2 or 3 dims", () => {
    const keyPaddingMask = flags([2, 2], 0, 1, 0, 0);
    const alone = masks.fromTorch(null, { keyPaddingMask });
    expect(alone.dims).toEqual([2, 1, 1, 2]);
    expect([...alone.data]).toEqual([1, 0, 1, 1]);
    const both = masks.fromTorch(flags([2, 2], 0, 1, 0, 0), { keyPaddingMask: floats([2, 2], 0, _, 0, 0) });
    expect(rows(both)).toEqual(["■ ·", "■ ·", "", "■ ·", "■ ■"]);
    expect(masks.fromTorch(null, { keyPaddingMask: flags([3], 0, 0, 1) }).dims).toEqual([3]);

    fc.assert(
      fc.property(sizes, fc.boolean(), ({ B, H, L, S, seed, padding }, told) => {
        const attn = { data: seed.slice(0, B * H * L * S), dims: [B * H, L, S] };
        const keys = { data: padding.slice(0, B * S), dims: [B, S] };
        const mask = masks.fromTorch(attn, { keyPaddingMask: keys, ...(told ? { heads: H } : {}) });
        expect(mask.dims).toEqual([B, H, L, S]);
        const hidden = (b: number, h: number, i: number, j: number) => seed[((b * H + h) * L + i) * S + j]!;
        expectPlaces(mask, { B, H, L, S }, (b, h, i, j) => !hidden(b, h, i, j) && !padding[b * S + j]);
      }),
    );
  });

  test("an unbatched 3-D attn_mask is led by the heads", () => {
    expect(masks.fromTorch(flags([2, 1, 1], 0, 1)).dims).toEqual([2, 1, 1]);
    expect(masks.fromTorch(flags([2, 1, 1], 0, 1), { keyPaddingMask: flags([1], 0) }).dims).toEqual([1, 2, 1, 1]);
  });
});

describe("R3: masks.fromKeras, where 1 attends", () => {
  test("[T, S], [B, T, S] and [B, heads, T, S]; what Keras casts to bool is taken", () => {
    expect(masks.fromKeras(flags([1, 2], 1, 0)).dims).toEqual([1, 2]);
    expect(masks.fromKeras(flags([2, 1, 2], 1, 0, 0, 1)).dims).toEqual([2, 1, 1, 2]);
    expect(masks.fromKeras(floats([1, 1, 2, 2], 1, 0, 1, 1)).dims).toEqual([1, 1, 2, 2]);
    expect(rows(masks.fromKeras(floats([2, 2], 1, 0, 1, 1)))).toEqual(rows(masks.causal(2)));
    expect(rows(masks.fromKeras(masks.causal(2), { valueMask: flags([1, 2], 1, 0) }))).toEqual(["■ ·", "■ ·"]);
  });

  test("the masks of query, value and key apply together with it, for every head", () => {
    fc.assert(
      fc.property(sizes, fc.subarray(["attention", "query", "value", "key"], { minLength: 1 }), (drawn, given) => {
        const { B, H, L, S, seed, padding, other } = drawn;
        const has = (name: string) => given.includes(name);
        const attention = { data: seed.slice(0, B * L * S), dims: [B, L, S] };
        const mask = masks.fromKeras(has("attention") ? attention : null, {
          queryMask: has("query") ? { data: padding.slice(0, B * L), dims: [B, L] } : null,
          valueMask: has("value") ? { data: other.slice(0, B * S), dims: [B, S] } : null,
          keyMask: has("key") ? { data: padding.slice(0, B * S), dims: [B, S] } : null,
        });
        expectPlaces(mask, { B, H, L, S }, (b, _h, i, j) => {
          const sees = [seed[(b * L + i) * S + j], padding[b * L + i], other[b * S + j], padding[b * S + j]];
          return ["attention", "query", "value", "key"].every((name, n) => !has(name) || sees[n]);
        });
      }),
    );
  });
});

describe("R3: masks.fromONNX, where true attends and floats add", () => {
  test("bool and float say the same, in every rank", () => {
    expect(rows(masks.fromONNX(flags([2, 2], 1, 0, 1, 1)))).toEqual(rows(masks.causal(2)));
    expect(rows(masks.fromONNX(floats([2, 2], 0, _, 0, 0)))).toEqual(rows(masks.causal(2)));
    expect(masks.fromONNX(floats([2, 1, 1, 2], 0, _, 0, 0)).dims).toEqual([2, 1, 1, 2]);
  });

  test("fewer columns than keys hide the rest", () => {
    expect(rows(masks.fromONNX(flags([2, 2], 1, 0, 1, 1), { keyLength: 4 }))).toEqual(["■ · · ·", "■ ■ · ·"]);
    expect(rows(masks.fromONNX(floats([1, 1], 0), { keyLength: 3 }))).toEqual(["■ · ·"]);
    expect(rows(masks.fromONNX(flags([2, 2], 1, 0, 1, 1), { keyLength: 2 }))).toEqual(rows(masks.causal(2)));
    fc.assert(
      fc.property(sizes, fc.nat(3), ({ B, H, L, S, seed }, more) => {
        const dims = [B, H, L, S];
        const mask = masks.fromONNX({ data: seed.slice(0, product(dims)), dims }, { keyLength: S + more });
        expect(mask.dims).toEqual([B, H, L, S + more]);
        expectPlaces(mask, { B, H, L, S: S + more }, (b, h, i, j) => j < S && seed[((b * H + h) * L + i) * S + j]!);
      }),
    );
  });
});

test("R3: nothing is shared with the caller's arrays", () => {
  const given = flags([1, 2], 1, 0);
  const made = [
    masks.fromONNX(given),
    masks.fromKeras(given),
    masks.padding(given),
    masks.from(given),
    masks.fromTorch(given),
  ];
  const before = made.map((mask) => [...mask.data]);
  given.data.fill(1);
  expect(
    made.map((mask) => [0, 1].map((j) => Number(mask.visible(...new Array(mask.dims.length - 1).fill(0), j)))),
  ).toEqual(before);
});

const refusals: [string, ErrorCode, string[], () => unknown][] = [
  ["a Mask knows its meaning", "not-a-mask", ["Mask already"], () => masks.fromTorch(masks.causal(2))],
  ["PyTorch: nothing", "not-a-mask", ["null"], () => masks.fromTorch(null)],
  [
    "PyTorch: a bias",
    "bad-values",
    ["keyPaddingMask", "0.5", "'bias'"],
    () => masks.fromTorch(null, { keyPaddingMask: floats([1, 2], 0, 0.5) }),
  ],
  [
    "PyTorch: a padding mask of 3 dims",
    "mask-shape",
    ["keyPaddingMask", "[B, Lk]", "[1, 1, 2]"],
    () => masks.fromTorch(null, { keyPaddingMask: flags([1, 1, 2], 0, 0) }),
  ],
  [
    "PyTorch: B·H that the batch does not divide",
    "mask-shape",
    ["[3, 1, 1]", "batch 2"],
    () => masks.fromTorch(flags([3, 1, 1], 0, 0, 0), { keyPaddingMask: flags([2, 1], 0, 0) }),
  ],
  [
    "PyTorch: key lengths that differ",
    "mask-shape",
    ["[2, 2]", "[1, 1, 1, 3]"],
    () => masks.fromTorch(flags([2, 2], 0, 0, 0, 0), { keyPaddingMask: flags([1, 3], 0, 0, 0) }),
  ],
  ["Keras: nothing", "not-a-mask", ["at least one", "null"], () => masks.fromKeras(null)],
  [
    "Keras: an additive mask",
    "bad-values",
    ["attentionMask", "-1000000000"],
    () => masks.fromKeras(floats([1, 2], 0, -1e9)),
  ],
  ["Keras: a list of flags", "mask-shape", ["[B, T, S]", "[2]"], () => masks.fromKeras(flags([2], 1, 0))],
  [
    "Keras: a query mask of 1 dim",
    "mask-shape",
    ["queryMask", "[B, T]", "[2]"],
    () => masks.fromKeras(null, { queryMask: flags([2], 1, 0) }),
  ],
  [
    "Keras: its own spelling",
    "unknown-option",
    ["query_mask", "'queryMask'"],
    () => masks.fromKeras(null, { query_mask: flags([1, 2], 1, 0) } as object),
  ],
  [
    "ONNX: more columns than keys",
    "mask-shape",
    ["[2, 2]", "keyLength 1"],
    () => masks.fromONNX(flags([2, 2], 1, 1, 1, 1), { keyLength: 1 }),
  ],
  ["ONNX: a bias", "bad-values", ["1.5", "'bias'"], () => masks.fromONNX(floats([1, 2], 0, 1.5))],
  ["ONNX: no mask", "not-a-mask", ["undefined"], () => masks.fromONNX(undefined as never)],
  ["a value that is no flag", "bad-values", ["255"], () => masks.fromONNX(flags([1, 2], 0, 255))],
  ["data of other length", "dims-data-mismatch", ["[2, 2]", "2"], () => masks.fromTorch(floats([2, 2], 0, 0))],
];
test.each(refusals)("B4: %s → %s", (_what, code, shown, action) => expectError(caught(action), code, ...shown));
