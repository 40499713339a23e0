/** What calls are refused: the code, what the message shows, that nothing was written, and that the instance goes on. */
import { describe, expect, test } from "@jest/globals";
import { type ErrorCode, masks } from "lookback";
import { caught, expectAlive, expectError, tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";
import { loose, type Refusal, testRefusals } from "./support/refusals.js";

const x = tensor([1, 4, 8]);
const h = { heads: 2 };

const REFUSALS: Refusal[] = [
  // Masks and biases
  [
    "R3: a Float32Array as mask",
    "mask-is-float",
    ["Float32Array", "A mask, or a bias?"],
    (lb) => loose(lb).attention(x, x, x, { ...h, mask: tensor([4, 4]) }),
  ],
  [
    "R3: a wasm tensor as mask",
    "mask-is-float",
    ["wasm tensor"],
    (lb) => {
      const t = lb.tensor(null, [4, 4]);
      try {
        loose(lb).attention(x, x, x, { ...h, mask: t });
      } finally {
        t.dispose();
      }
    },
  ],
  [
    "R3: a mask without dims",
    "not-a-mask",
    ["mask", "Uint8Array without dims"],
    (lb) => loose(lb).attention(x, x, x, { ...h, mask: new Uint8Array(16) }),
  ],
  [
    "R3: a mask of doubles as int16",
    "not-a-mask",
    ["Int16Array"],
    (lb) => loose(lb).attention(x, x, x, { ...h, mask: { data: new Int16Array(16), dims: [4, 4] } }),
  ],
  [
    "R3: a mask with other numbers",
    "bad-values",
    ["0 and 1", "data[3] is 255"],
    (lb) => lb.attention(x, x, x, { ...h, mask: { data: Uint8Array.of(0, 1, 0, 255), dims: [1, 4] } }),
  ],
  [
    "R3: a mask whose dims lie",
    "dims-data-mismatch",
    ["mask", "[4, 4]", "16", "8"],
    (lb) => lb.attention(x, x, x, { ...h, mask: { data: new Uint8Array(8), dims: [4, 4] } }),
  ],
  [
    "R3: a mask led by the batch",
    "mask-shape",
    ["[3, 1, 4, 4]", "[B, 1, Lq, Lk]"],
    (lb) =>
      lb.attention(tensor([3, 4, 8]), tensor([3, 4, 8]), tensor([3, 4, 8]), {
        ...h,
        mask: { data: new Uint8Array(48), dims: [3, 4, 4] },
      }),
  ],
  [
    "R3: a padding mask",
    "mask-shape",
    ["[3, 4]", "[3, 1, 1, 4]"],
    (lb) =>
      lb.attention(tensor([3, 4, 8]), tensor([3, 4, 8]), tensor([3, 4, 8]), {
        ...h,
        mask: { data: new Uint8Array(12), dims: [3, 4] },
      }),
  ],
  [
    "R3: a transposed mask",
    "mask-shape",
    ["[5, 4]", "transposed"],
    (lb) =>
      lb.attention(x, tensor([1, 5, 8]), tensor([1, 5, 8]), { ...h, mask: { data: new Uint8Array(20), dims: [5, 4] } }),
  ],
  [
    "R3: a mask of PyTorch's 3-D form",
    "mask-shape",
    ["[3, 2, 4, 4]"],
    (lb) =>
      lb.attention(tensor([3, 4, 8]), tensor([3, 4, 8]), tensor([3, 4, 8]), {
        ...h,
        mask: { data: new Uint8Array(96), dims: [6, 4, 4] },
      }),
  ],
  [
    "R4: a mask as bias",
    "bias-is-mask",
    ["Uint8Array", "'mask'"],
    (lb) => loose(lb).attention(x, x, x, { ...h, bias: { data: new Uint8Array(16), dims: [4, 4] } }),
  ],
  [
    "R4: a bias that does not broadcast",
    "bias-shape",
    ["[3, 4]", "[4, 4]", "[1, 2, 4, 4]"],
    (lb) => lb.attention(x, x, x, { ...h, bias: tensor([3, 4]) }),
  ],
  // Positions
  [
    "R6: silence about the offset",
    "query-offset-missing",
    ["2 queries", "4 keys", "'start'", "'end'", "■ ■ ■ ·", "■ · · ·"],
    (lb) => lb.attention(tensor([1, 2, 8]), x, x, { ...h, causal: true }),
  ],
  [
    "R6: silence with long sides",
    "query-offset-missing",
    ["512 queries", "100 keys", "Drawn smaller"],
    (lb) => lb.attention(tensor([1, 512, 8]), tensor([1, 100, 8]), tensor([1, 100, 8]), { ...h, causal: true }),
  ],
  [
    "R6: another word",
    "bad-query-offset",
    ["'start'", '"left"'],
    (lb) => loose(lb).attention(x, x, x, { ...h, causal: true, queryOffset: "left" }),
  ],
  [
    "R6: no integer",
    "bad-query-offset",
    ["1.5"],
    (lb) => lb.attention(x, x, x, { ...h, causal: true, queryOffset: 1.5 }),
  ],
  [
    "R6: too many",
    "bad-query-offset",
    ["2 values", "batch of 1"],
    (lb) => lb.attention(x, x, x, { ...h, causal: true, queryOffset: [0, 1] }),
  ],
  // Results
  [
    "R12: weights: true",
    "bad-weights-request",
    ["'softmax'", "true"],
    (lb) => loose(lb).attention(x, x, x, { ...h, weights: true }),
  ],
  [
    "R12: another kind",
    "bad-weights-request",
    ["logits"],
    (lb) => loose(lb).attention(x, x, x, { ...h, weights: { kind: "logits" } }),
  ],
  [
    "R12: a head too many",
    "bad-weights-request",
    ["heads", "0 to 1", "[0, 2]"],
    (lb) => lb.attention(x, x, x, { ...h, weights: { heads: [0, 2] } }),
  ],
  [
    "R12: rows beyond the end",
    "bad-weights-request",
    ["queries", "[2, 5]"],
    (lb) => lb.attention(x, x, x, { ...h, weights: { queries: [2, 5] } }),
  ],
  [
    "R12: rows backwards",
    "bad-weights-request",
    ["queries", "[3, 1]"],
    (lb) => lb.attention(x, x, x, { ...h, weights: { queries: [3, 1] } }),
  ],
  [
    "R12: a misspelt request",
    "unknown-option",
    ["'rows'"],
    (lb) => loose(lb).attention(x, x, x, { ...h, weights: { rows: [0, 1] } }),
  ],
  [
    "B2: out of another size",
    "bad-out",
    ["out.output", "32", "16 values"],
    (lb) => lb.attention(x, x, x, { ...h, out: { output: new Float32Array(16) } }),
  ],
  [
    "B2: out with other dims",
    "bad-out",
    ["[1, 4, 8]", "[4, 8]"],
    (lb) => lb.attention(x, x, x, { ...h, out: { output: tensor([4, 8]) } }),
  ],
  [
    "B2: out of another type",
    "bad-out",
    ["out.output", "Float64Array"],
    (lb) => loose(lb).attention(x, x, x, { ...h, out: { output: new Float64Array(32) } }),
  ],
  [
    "B2: out for what is not asked",
    "bad-out",
    ["out.weights", "does not ask"],
    (lb) => lb.attention(x, x, x, { ...h, out: { weights: new Float32Array(32) } }),
  ],
  [
    "B2: two outs in one place",
    "bad-out",
    ["out.weights", "out.output", "share"],
    (lb) => {
      const both = new Float32Array(48);
      lb.attention(x, x, x, {
        ...h,
        weights: "softmax",
        out: { output: both.subarray(0, 32), weights: both.subarray(16) },
      });
    },
  ],
  // Sizes and layers
  [
    "R23: weights beyond 2³² bytes",
    "too-large",
    ["17179869184", "weights"],
    (lb) =>
      lb.attention(tensor([1, 65536, 1]), tensor([1, 65536, 1]), tensor([1, 65536, 1]), {
        heads: 1,
        weights: "softmax",
      }),
  ],
  ["R23: a tensor beyond 2³² bytes", "too-large", ["8589934592"], (lb) => lb.tensor(null, [2, 2 ** 30])],
  [
    "R23: a layer beyond 2³² bytes",
    "too-large",
    ["40000000000"],
    (lb) => lb.multiHeadAttention({ embedDim: 100000, heads: 1 }),
  ],
  [
    "M1: embedDim not divisible",
    "embed-dim-not-divisible",
    ["embedDim 10", "heads 3", "2, 5"],
    (lb) => lb.multiHeadAttention({ embedDim: 10, heads: 3 }),
  ],
  [
    "M1: kvHeads",
    "kv-heads-not-divisor",
    ["heads 6", "kvHeads 4"],
    (lb) => lb.multiHeadAttention({ embedDim: 12, heads: 6, kvHeads: 4 }),
  ],
  ["M1: heads missing", "bad-option", ["heads is missing"], (lb) => loose(lb).multiHeadAttention({ embedDim: 12 })],
  [
    "M1: numHeads means heads",
    "unknown-option",
    ["num_heads", "'heads'"],
    (lb) => loose(lb).multiHeadAttention({ embedDim: 12, num_heads: 3 }),
  ],
  ["B3: values that are no numbers", "bad-values", ["data[1]", '"b"'], (lb) => loose(lb).tensor([1, "b"], [2])],
  ["B3: values of another number", "dims-data-mismatch", ["[3]", "3", "2"], (lb) => lb.tensor([1, 2], [3])],
];

describeVariants((lb) => {
  testRefusals(lb, REFUSALS);

  test("B4: after an error nothing has been written", () => {
    const output = new Float32Array(32).fill(7);
    const inWasm = lb.tensor(new Float32Array(8).fill(7), [1, 2, 4]);
    const wrong = [
      { ...h, bias: tensor([3, 4]) },
      { ...h, weights: { heads: [9] } },
      { ...h, logSumExp: true, out: { logSumExp: new Float32Array(9) } },
    ];
    for (const options of wrong) {
      const out = { output, ...("out" in options ? options.out : {}) };
      caught(() => lb.attention(x, x, x, { ...options, out }));
      caught(() => lb.attention(x, x, x, { ...options, out: { ...out, output: inWasm } }));
    }
    expect(output.every((value) => value === 7)).toBe(true);
    expect(inWasm.read().every((value) => value === 7)).toBe(true);
    inWasm.dispose();
  });

  test("B4: out of memory says how many bytes were asked for, and the instance goes on", () => {
    // The weights alone nearly fill 4 GiB, so that they cannot lie beside a tensor of 64 MiB. Nothing of that is ever touched.
    const tensorBeside = lb.tensor(null, [2 ** 24]);
    const long = tensor([1, 32700, 1]);
    const error = caught(() => lb.attention(long, long, long, { heads: 1, weights: "softmax" }));
    tensorBeside.dispose();
    expectError(error, "out-of-memory", "attention", "bytes");
    expect(Number(/(\d+) bytes/.exec(error.message)?.[1])).toBeGreaterThan(32700 * 32700 * 4);
    expectAlive(lb);
  });
});

describe("masks by themselves", () => {
  test.each<[string, ErrorCode, string[], () => unknown]>([
    ["R6: lengths that differ", "query-offset-missing", ["2 queries", "3 keys"], () => masks.causal(2, 3)],
    ["R3: a length that is no integer", "bad-dims", ["1.5"], () => masks.causal(1.5)],
    ["R23: a mask beyond 2³² bytes", "too-large", ["4294967296"], () => masks.causal(65536)],
    ["R3: masks that do not fit", "mask-shape", ["[2, 2]", "[3, 3]"], () => masks.causal(2).and(masks.causal(3))],
    ["R3: a place outside", "bad-option", ["[2, 0]", "[2, 2]"], () => masks.causal(2).visible(2, 0)],
    [
      "R3: finite numbers in PyTorch's float mask",
      "bad-values",
      ["-10000", "bias"],
      () => masks.fromTorch({ data: Float32Array.of(0, -10000), dims: [1, 2] }),
    ],
    [
      "R3: PyTorch's 3-D mask with other heads",
      "mask-shape",
      ["[3, 2, 2]", "heads 2"],
      () => masks.fromTorch({ data: new Uint8Array(12), dims: [3, 2, 2] }, { heads: 2 }),
    ],
  ])("%s → %s", (_rule, code, shown, action) => expectError(caught(action), code, ...shown));
});
