/** What state dicts are refused: the code, and what the message shows. */
import { test } from "@jest/globals";
import type { ErrorCode, Tensor } from "lookback";
import * as stateDicts from "lookback/state-dicts";
import { caught, expectError, product } from "./support/helpers.ts";

/** Tensors of zeros with these dims. */
const torch = (dims: Record<string, number[]>): Record<string, Tensor> =>
  Object.fromEntries(
    Object.entries(dims).map(([name, own]) => [name, { data: new Float32Array(product(own)), dims: own }]),
  );
const separate = { q_proj_weight: [4, 4], k_proj_weight: [4, 3], v_proj_weight: [4, 3], "out_proj.weight": [4, 4] };
const refusals: [string, ErrorCode, string[], () => unknown][] = [
  [
    "nanoGPT's c_attn is an nn.Linear",
    "state-shape",
    ["[12, 36]", "[12, 4]", "nanoGPT", "in_proj_weight"],
    () => stateDicts.fromGPT2(torch({ "c_attn.weight": [12, 4], "c_proj.weight": [4, 4] })),
  ],
  [
    "grouped keys do not fit GPT-2",
    "state-shape",
    ["c_attn", "[4, 4]", "[2, 4]"],
    () => stateDicts.toGPT2(torch({ in_proj_weight: [8, 4], "out_proj.weight": [4, 4] })),
  ],
  [
    "widths of their own do not fit GPT-2",
    "state-shape",
    ["c_attn", "[4, 3]"],
    () => stateDicts.toGPT2(torch(separate)),
  ],
  [
    "kvWidth that does not divide",
    "state-shape",
    ["k_proj.weight", "[3, 4]", "divisor of 4"],
    () =>
      stateDicts.fromLlama(
        torch({ "q_proj.weight": [4, 4], "k_proj.weight": [3, 4], "v_proj.weight": [3, 4], "o_proj.weight": [4, 4] }),
      ),
  ],
  [
    "heads that carry more than embedDim",
    "state-shape",
    ["q_proj.weight", "[4, 4]", "[8, 4]"],
    () =>
      stateDicts.fromLlama(
        torch({ "q_proj.weight": [8, 4], "k_proj.weight": [4, 4], "v_proj.weight": [4, 4], "o_proj.weight": [4, 8] }),
      ),
  ],
  [
    "Keras heads that do not make up E",
    "state-shape",
    ["query/kernel", "[4, 2, 2]", "[5, 2, 2]"],
    () =>
      stateDicts.fromKeras(
        torch({
          "query/kernel": [5, 2, 2],
          "key/kernel": [5, 2, 2],
          "value/kernel": [5, 2, 2],
          "attention_output/kernel": [2, 2, 5],
        }),
      ),
  ],
  [
    "Keras groups that do not divide",
    "kv-heads-not-divisor",
    ["3", "2"],
    () =>
      stateDicts.fromKeras(
        torch({
          "query/kernel": [6, 3, 2],
          "key/kernel": [6, 2, 2],
          "value/kernel": [6, 2, 2],
          "attention_output/kernel": [3, 2, 6],
        }),
      ),
  ],
  [
    "toKeras without heads",
    "heads-missing",
    ["heads"],
    () => stateDicts.toKeras(torch(separate), {} as { heads: number }),
  ],
  [
    "toKeras with other heads",
    "embed-dim-not-divisible",
    ["3", "4"],
    () => stateDicts.toKeras(torch(separate), { heads: 3 }),
  ],
  ["PyTorch's own: nothing", "state-missing", ["out_proj.weight"], () => stateDicts.toBert({})],
  [
    "PyTorch's own: no inputs",
    "state-missing",
    ["in_proj_weight"],
    () => stateDicts.toBert(torch({ "out_proj.weight": [4, 4] })),
  ],
  [
    "PyTorch's own: one bias",
    "state-missing",
    ["out_proj.bias"],
    () => stateDicts.toBert(torch({ ...separate, in_proj_bias: [12] })),
  ],
  [
    "PyTorch's own: misshapen",
    "state-shape",
    ["in_proj_weight", "[12, 4]", "[11, 4]"],
    () => stateDicts.toBert(torch({ in_proj_weight: [11, 4], "out_proj.weight": [4, 4] })),
  ],
  [
    "PyTorch's own: a misshapen bias",
    "state-shape",
    ["in_proj_bias", "[12]", "[11]"],
    () => stateDicts.toBert(torch({ ...separate, in_proj_bias: [11], "out_proj.bias": [4] })),
  ],
  [
    "PyTorch's own: add_bias_kv",
    "state-unknown",
    ["bias_k"],
    () => stateDicts.toBert(torch({ ...separate, bias_k: [1, 1, 4] })),
  ],
  [
    "a parameter that is no tensor",
    "not-float",
    ["c_attn.weight", "Array"],
    () => stateDicts.fromGPT2({ "c_attn.weight": { data: [1] as unknown as Float32Array, dims: [1] } }),
  ],
];
test.each(refusals)("B4: %s → %s", (_what, code, shown, action) => expectError(caught(action), code, ...shown));
