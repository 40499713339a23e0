/** R5: the forms in which padding is told, and what is refused. */
import { expect, test } from "@jest/globals";
import { type Lookback, masks } from "lookback";
import { tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";
import { loose, type Refusal, testRefusals } from "./support/refusals.js";

const [q, k, v] = [tensor([2, 3, 8], 1), tensor([2, 4, 8], 2), tensor([2, 4, 8], 3)];
const REAL = [1, 1, 1, 0, 1, 0, 0, 0];
const h = { heads: 2, weights: "softmax", logSumExp: true } as const;

const REFUSALS: Refusal[] = [
  [
    "R5: a length for each key instead of each row",
    "bad-option",
    ["keyLengths", "4 values", "batch of 2"],
    (lb) => lb.attention(q, k, v, { heads: 2, keyLengths: [1, 1, 1, 1] }),
  ],
  [
    "R5: a length beyond the keys",
    "bad-option",
    ["keyLengths", "from 0 to 4", "[1] is 5"],
    (lb) => lb.attention(q, k, v, { heads: 2, keyLengths: [4, 5] }),
  ],
  [
    "R5: a negative length",
    "bad-option",
    ["[0] is -1"],
    (lb) => lb.attention(q, k, v, { heads: 2, keyLengths: Int32Array.of(-1, 4) }),
  ],
  ["R5: half a key", "bad-option", ["[1] is 1.5"], (lb) => lb.attention(q, k, v, { heads: 2, keyLengths: [1, 1.5] })],
  [
    "R5: one number",
    "bad-option",
    ["keyLengths", "received 3"],
    (lb) => loose(lb).attention(q, k, v, { heads: 2, keyLengths: 3 }),
  ],
  [
    "R5: a key mask of one row for two",
    "dims-data-mismatch",
    ["keyMask", "[2, 4]", "8 values", "4"],
    (lb) => lb.attention(q, k, v, { heads: 2, keyMask: [1, 1, 1, 0] }),
  ],
  [
    "R5: a key mask per query",
    "mask-shape",
    ["keyMask", "[2, 4]", "[2, 3, 4]", "'mask'"],
    (lb) => lb.attention(q, k, v, { heads: 2, keyMask: { data: new Uint8Array(24), dims: [2, 3, 4] } }),
  ],
  [
    "R5: a transposed key mask",
    "mask-shape",
    ["[4, 2]"],
    (lb) => lb.attention(q, k, v, { heads: 2, keyMask: { data: new Uint8Array(8), dims: [4, 2] } }),
  ],
  [
    "R5: a float key mask",
    "mask-is-float",
    ["keyMask", "Float32Array"],
    (lb) => loose(lb).attention(q, k, v, { heads: 2, keyMask: new Float32Array(8) }),
  ],
  [
    "R5: token ids as key mask",
    "bad-values",
    ["keyMask", "data[1] is 101"],
    (lb) => lb.attention(q, k, v, { heads: 2, keyMask: [0, 101, 7, 9, 1, 1, 1, 1] }),
  ],
  [
    "B4: another name for it",
    "unknown-option",
    ["'keyPaddingMask'", "Did you mean 'keyMask'?"],
    (lb) => loose(lb).attention(q, k, v, { heads: 2, keyPaddingMask: REAL }),
  ],
];

const byMask = (lb: Lookback) =>
  lb.attention(q, k, v, { ...h, mask: { data: Uint8Array.from(REAL), dims: [2, 1, 1, 4] } });

describeVariants((lb) => {
  const forms = {
    "number[]": [3, 1],
    Int32Array: Int32Array.of(3, 1),
    BigInt64Array: BigInt64Array.of(3n, 1n),
    tensor: { data: BigInt64Array.of(3n, 1n), dims: [2] },
  };
  test.each(Object.keys(forms) as (keyof typeof forms)[])("R5: keyLengths as %s", (form) => {
    const keyLengths = forms[form] as number[];
    expect(lb.attention(q, k, v, { ...h, keyLengths })).toEqual(byMask(lb));
  });

  const maskForms = {
    "number[]": REAL,
    "boolean[]": REAL.map((bit) => bit === 1),
    Uint8Array: Uint8Array.from(REAL),
    Int32Array: Int32Array.from(REAL),
    BigInt64Array: BigInt64Array.from(REAL.map(BigInt)),
    "tensor, as transformers.js' attention_mask": { data: BigInt64Array.from(REAL.map(BigInt)), dims: [2, 4] },
    Mask: masks.from({ data: Uint8Array.from(REAL), dims: [2, 4] }),
  };
  test.each(Object.keys(maskForms) as (keyof typeof maskForms)[])("R5: keyMask as %s", (form) => {
    expect(lb.attention(q, k, v, { ...h, keyMask: maskForms[form] })).toEqual(byMask(lb));
  });

  test("R5: with one batch row a key mask of dims [Lk] is clear as well", () => {
    const x = tensor([3, 8]);
    const keyMask = { data: [false, true, true], dims: [3] };
    const { weights } = lb.attention(x, x, x, { ...h, keyMask });
    expect(weights.dims).toEqual([1, 2, 3, 3]);
    for (let row = 0; row < 6; row++) expect(weights.data[row * 3]).toBe(0);
    expect(lb.attention(x, x, x, { ...h, keyMask: [0, 1, 1] }).weights).toEqual(weights);
  });

  test("R5, R8: left padding with causal: the padding rows see nothing, the others no padding", () => {
    const x = tensor([1, 4, 8]);
    const { weights, output } = lb.attention(x, x, x, { ...h, causal: true, keyMask: [0, 0, 1, 1] });
    expect(Array.from(weights.data.subarray(0, 16), Math.sign)).toEqual([
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1,
    ]);
    expect(output.data.subarray(0, 16)).toEqual(new Float32Array(16));
  });

  test("R6: 'end' with keyLengths is keyLengths[b] − Lq, for each row its own", () => {
    const end = { ...h, causal: true, keyLengths: [4, 3] };
    expect(lb.attention(q, k, v, { ...end, queryOffset: "end" })).toEqual(
      lb.attention(q, k, v, { ...end, queryOffset: [1, 0] }),
    );
  });

  test("R5, R9: no valid key at all", () => {
    const { output, weights, logSumExp } = lb.attention(q, k, v, { ...h, keyLengths: [0, 4] });
    expect(output.data.subarray(0, 24)).toEqual(new Float32Array(24));
    expect(weights.data.subarray(0, 24)).toEqual(new Float32Array(24));
    expect(logSumExp.data.subarray(0, 6)).toEqual(new Float32Array(6).fill(-Infinity));
    expect(output.data.subarray(24).every((x) => x !== 0)).toBe(true);
  });

  testRefusals(lb, REFUSALS);
});
