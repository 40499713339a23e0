/** What options and tensors are refused: the code, what the message shows, and that the instance goes on. */
import { masks } from "lookback";
import { tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";
import { loose, type Refusal, testRefusals } from "./support/refusals.js";

const detached = (): Float32Array => {
  const data = new Float32Array(16);
  structuredClone(data.buffer, { transfer: [data.buffer] });
  return data;
};
const x = tensor([1, 4, 8]);
const h = { heads: 2 };

const REFUSALS: Refusal[] = [
  // Options
  [
    "B4: isCausal means causal",
    "unknown-option",
    ["isCausal", "'causal'"],
    (lb) => loose(lb).attention(x, x, x, { ...h, isCausal: true }),
  ],
  ["B4: a typing mistake", "unknown-option", ["hedas", "'heads'"], (lb) => loose(lb).attention(x, x, x, { hedas: 2 })],
  [
    "B4: attn_mask means mask",
    "unknown-option",
    ["attn_mask", "'mask'"],
    (lb) => loose(lb).attention(x, x, x, { ...h, attn_mask: null }),
  ],
  [
    "B4: far from every option",
    "unknown-option",
    ["zzz", "heads, kvHeads, scale"],
    (lb) => loose(lb).attention(x, x, x, { zzz: 1 }),
  ],
  [
    "B4: an option of out",
    "unknown-option",
    ["out has no option 'outputs'", "'output'"],
    (lb) => loose(lb).attention(x, x, x, { ...h, out: { outputs: 1 } }),
  ],
  [
    "B4: a layer called with query, key and value",
    "bad-option",
    ["{ memory: … }", "received a tensor"],
    (lb) => {
      const layer = loose(lb).multiHeadAttention({ embedDim: 8, heads: 2 });
      try {
        layer.forward(x, x, x);
      } finally {
        layer.dispose();
      }
    },
  ],
  [
    "B4: lists in lists",
    "not-a-tensor",
    ["[an Array, an Array] without dims"],
    (lb) => loose(lb).attention([[1], [1]], x, x, h),
  ],
  ["B4: dims as text", "bad-dims", ['["4", "4"]'], () => masks.causal("4" as never)],
  ["B4: options that are no object", "bad-option", ["heads", "2"], (lb) => loose(lb).attention(x, x, x, 2)],
  ["R1: heads 0", "bad-option", ["heads", "integer ≥ 1", "received 0"], (lb) => lb.attention(x, x, x, { heads: 0 })],
  ["R1: heads as text", "bad-option", ["heads", '"2"'], (lb) => loose(lb).attention(x, x, x, { heads: "2" })],
  [
    "R2: scale NaN",
    "bad-option",
    ["scale", "finite", "NaN"],
    (lb) => lb.attention(x, x, x, { ...h, scale: Number.NaN }),
  ],
  ["R4: softcap below 0", "bad-option", ["softcap", "-1"], (lb) => lb.attention(x, x, x, { ...h, softcap: -1 })],
  [
    "B4: causal as a number",
    "bad-option",
    ["causal", "true or false", "1"],
    (lb) => loose(lb).attention(x, x, x, { ...h, causal: 1 }),
  ],
  // Tensors
  ["B1: nothing", "not-a-tensor", ["q", "undefined", "dims"], (lb) => loose(lb).attention()],
  [
    "B1: an array without dims",
    "not-a-tensor",
    ["k", "Float32Array without dims"],
    (lb) => loose(lb).attention(x, x.data, x, h),
  ],
  [
    "B1: another object",
    "not-a-tensor",
    ["v", "shape"],
    (lb) => loose(lb).attention(x, x, { shape: [1], data: x.data }, h),
  ],
  [
    "B1: number[]",
    "not-float",
    ["q", "Float32Array", "[1, 2]"],
    (lb) => loose(lb).attention({ data: [1, 2], dims: [1, 2] }, x, x, h),
  ],
  [
    "B1: doubles",
    "not-float",
    ["q", "Float64Array", "Float32Array.from"],
    (lb) => lb.attention({ data: new Float64Array(2), dims: [1, 2] }, x, x, h),
  ],
  [
    "B1: dims that are a number",
    "bad-dims",
    ["q", "32"],
    (lb) => loose(lb).attention({ data: x.data, dims: 32 }, x, x, h),
  ],
  [
    "B1: a dim that is no integer",
    "bad-dims",
    ["q", "integer", "[1, 4.5, 8]"],
    (lb) => lb.attention({ data: x.data, dims: [1, 4.5, 8] }, x, x, h),
  ],
  ["B1: a negative dim", "bad-dims", ["[1, -4, 8]"], (lb) => lb.attention({ data: x.data, dims: [1, -4, 8] }, x, x, h)],
  [
    "B1: a dim beyond int32",
    "bad-dims",
    ["2147483647", "4294967296"],
    (lb) => lb.attention({ data: new Float32Array(0), dims: [0, 2 ** 32, 8] }, x, x, h),
  ],
  [
    "B1: wrong dims",
    "dims-data-mismatch",
    ["q", "[1, 4, 9]", "36", "32"],
    (lb) => lb.attention({ data: x.data, dims: [1, 4, 9] }, x, x, h),
  ],
  [
    "B1: a detached buffer",
    "detached-buffer",
    ["k", "detached", "copy"],
    (lb) => lb.attention(x, { data: detached(), dims: [1, 2, 8] }, x, h),
  ],
  [
    "R1: a batch of 0",
    "bad-dims",
    ["q", "[0, 4, 8]"],
    (lb) => lb.attention(tensor([0, 4, 8]), tensor([0, 4, 8]), tensor([0, 4, 8]), h),
  ],
  // Layouts
  [
    "R1: one dim",
    "bad-rank",
    ["q", "1 dims", "[8]", "[B, heads, L, headDim]"],
    (lb) => lb.attention(tensor([8]), x, x, h),
  ],
  ["R1: five dims", "bad-rank", ["5 dims"], (lb) => lb.attention(tensor([1, 1, 1, 1, 8]), x, x, h)],
  [
    "R1: mixed 3-D and 4-D",
    "rank-mismatch",
    ["[1, 4, 8]", "[1, 2, 4, 4]"],
    (lb) => lb.attention(x, tensor([1, 2, 4, 4]), x, h),
  ],
  ["R1: 3-D without heads", "heads-missing", ["3-D", "[1, 4, 8]", "heads"], (lb) => lb.attention(x, x, x)],
  [
    "R1: 4-D with differing heads",
    "heads-mismatch",
    ["[1, 2, 4, 4]", "2 heads", "heads is 3"],
    (lb) => lb.attention(tensor([1, 2, 4, 4]), tensor([1, 2, 4, 4]), tensor([1, 2, 4, 4]), { heads: 3 }),
  ],
  [
    "R1: 4-D as [B, L, heads, headDim]",
    "heads-mismatch",
    ["looks like [B, L, heads, headDim]"],
    (lb) => lb.attention(tensor([1, 6, 2, 4]), tensor([1, 6, 2, 4]), tensor([1, 6, 2, 4]), h),
  ],
  [
    "R1: width not divisible",
    "width-not-divisible",
    ["q", "8", "heads 3"],
    (lb) => lb.attention(x, x, x, { heads: 3 }),
  ],
  [
    "R1: batch and length swapped",
    "axes-swapped",
    ["batch and length", "[4, 2, 8]", "[6, 2, 8]"],
    (lb) => lb.attention(tensor([4, 2, 8]), tensor([6, 2, 8]), tensor([6, 2, 8]), h),
  ],
  [
    "R1: batch and length swapped in the memory",
    "axes-swapped",
    ["[2, 5, 8]", "[5, 2, 8]"],
    (lb) => lb.attention(tensor([2, 5, 8]), tensor([5, 2, 8]), tensor([5, 2, 8]), h),
  ],
  [
    "R1: heads and length swapped",
    "axes-swapped",
    ["Heads and length", "[1, 5, 2, 4]"],
    (lb) => lb.attention(tensor([1, 5, 2, 4]), tensor([1, 7, 2, 4]), tensor([1, 7, 2, 4])),
  ],
  [
    "R1: batches that differ",
    "batch-mismatch",
    ["q and k", "2 and 3"],
    (lb) => lb.attention(tensor([2, 4, 8]), tensor([3, 5, 8]), tensor([3, 5, 8]), h),
  ],
  [
    "R1: keys and values of different length",
    "length-mismatch",
    ["length", "4 and 5"],
    (lb) => lb.attention(x, x, tensor([1, 5, 8]), h),
  ],
  [
    "R1: keys and values of different heads",
    "heads-mismatch",
    ["2 and 1"],
    (lb) => lb.attention(tensor([1, 2, 4, 4]), tensor([1, 2, 4, 4]), tensor([1, 1, 4, 4])),
  ],
  [
    "R1: head dims that differ",
    "head-dim-mismatch",
    ["4 and 8"],
    (lb) => lb.attention(tensor([1, 2, 4, 4]), tensor([1, 2, 4, 8]), tensor([1, 2, 4, 4])),
  ],
  [
    "R11: head dims that tell of grouped queries",
    "head-dim-mismatch",
    ["kvHeads: 1"],
    (lb) => lb.attention(x, tensor([1, 4, 4]), tensor([1, 4, 4]), h),
  ],
  [
    "R11: heads no multiple of kvHeads",
    "kv-heads-not-divisor",
    ["heads 4", "kvHeads 3"],
    (lb) => lb.attention(tensor([1, 4, 8]), tensor([1, 4, 6]), tensor([1, 4, 6]), { heads: 4, kvHeads: 3 }),
  ],
];

describeVariants((lb) => testRefusals(lb, REFUSALS));
