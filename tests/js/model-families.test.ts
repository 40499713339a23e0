/** One model of each family as transformers writes it, with random weights: its logits are those of the float64 reference. */
import { describe, expect, test } from "@jest/globals";
import type { Lookback } from "lookback";
import { loadDecoder, type WeightDtype } from "lookback/model";
import { type ReferenceConfig, type ReferenceWeights, referenceDecoder } from "./reference-decoder.ts";
import { describeVariants } from "./support/instances.ts";
import {
  filesOf,
  gpt2Shapes,
  type LlamaLike,
  llamaShapes,
  type ModelFolder,
  randomTensors,
  VOCABULARY,
} from "./support/model-folders.ts";
import { type FloatType, type NamedTensor, rounded } from "./support/safetensors.ts";

const TOKENS = [7, 250, 31, 99, 0, 287, 140, 31, 12, 66, 5, 201];

const BASE: ReferenceConfig = {
  ...{ vocabSize: VOCABULARY, layers: 3, embedDim: 24, heads: 4, kvHeads: 2, headDim: 6, hiddenDim: 40 },
  ...{ norm: "rms", activation: "silu", gated: true, learnedPositions: false, tiedHead: false, queryKeyNorm: false },
  ...{ postNorms: false, normWeightsFromOne: false, normEpsilon: 1e-6, embedScale: 1, attentionScale: 0 },
  ...{ attentionSoftcap: 0, logitSoftcap: 0, window: 0, firstWindowedLayer: 0, fullEvery: 0, windowRotaryBase: 0 },
  rotary: { dims: 6, base: 10000 },
};

const SIZES = {
  ...{ vocab_size: VOCABULARY, hidden_size: 24, intermediate_size: 40, num_hidden_layers: 3 },
  ...{ num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 64 },
};

/** Where transformers keeps what the reference asks for. */
const LLAMA_NAMES: Record<string, string> = {
  attentionNorm: "input_layernorm",
  query: "self_attn.q_proj",
  key: "self_attn.k_proj",
  value: "self_attn.v_proj",
  queryNorm: "self_attn.q_norm",
  keyNorm: "self_attn.k_norm",
  output: "self_attn.o_proj",
  mlpNorm: "post_attention_layernorm",
  gate: "mlp.gate_proj",
  up: "mlp.up_proj",
  down: "mlp.down_proj",
};
const POST_NORMS: Record<string, string> = {
  attentionPostNorm: "post_attention_layernorm",
  mlpNorm: "pre_feedforward_layernorm",
  mlpPostNorm: "post_feedforward_layernorm",
};

const values = (tensor: NamedTensor | undefined) => tensor && rounded(tensor.values, tensor.dtype ?? "F32");

function llamaWeights(tensors: ModelFolder["tensors"], postNorms: boolean): ReferenceWeights {
  const names = postNorms ? { ...LLAMA_NAMES, ...POST_NORMS } : LLAMA_NAMES;
  const cache = new Map(Object.entries(tensors).map(([name, tensor]) => [name, values(tensor)!]));
  return (slot, layer) => {
    if (slot === "tokenEmbedding") return cache.get("model.embed_tokens.weight");
    if (slot === "head") return cache.get("lm_head.weight");
    if (slot.startsWith("finalNorm")) return slot.endsWith("Weight") ? cache.get("model.norm.weight") : undefined;
    const [, part, kind] = /^(.*)(Weight|Bias)$/.exec(slot)!;
    return cache.get(`model.layers.${layer}.${names[part!]}.${kind!.toLowerCase()}`);
  };
}

/** Conv1D keeps [inputs, outputs], and queries, keys and values side by side. */
function gpt2Weights(tensors: ModelFolder["tensors"]): ReferenceWeights {
  const names: Record<string, string> = {
    ...{ attentionNorm: "ln_1", mlpNorm: "ln_2", output: "attn.c_proj", up: "mlp.c_fc", down: "mlp.c_proj" },
    ...{ query: "attn.c_attn", key: "attn.c_attn", value: "attn.c_attn" },
  };
  return (slot, layer) => {
    if (slot === "tokenEmbedding") return values(tensors["wte.weight"]);
    if (slot === "positionEmbedding") return values(tensors["wpe.weight"]);
    const [, part, kind] = /^(.*)(Weight|Bias)$/.exec(slot)!;
    const name = part === "finalNorm" ? "ln_f" : `h.${layer}.${names[part!]}`;
    const tensor = tensors[`${name}.${kind!.toLowerCase()}`]!;
    const all = values(tensor)!;
    const third = ["query", "key", "value"].indexOf(part!);
    const outputs = tensor.dims.at(-1)!;
    const from = third < 0 ? 0 : (third * outputs) / 3;
    const count = third < 0 ? outputs : outputs / 3;
    if (tensor.dims.length === 1) return all.slice(from, from + count);
    const inputs = tensor.dims[0]!;
    return Float64Array.from(
      { length: count * inputs },
      (_, at) => all[(at % inputs) * outputs + from + Math.floor(at / inputs)]!,
    );
  };
}

interface Case {
  readonly folder: ModelFolder;
  readonly reference: ReferenceConfig;
  readonly weights: ReferenceWeights;
}

type Extras = Parameters<typeof llamaShapes>[1] & object;

function llama(
  family: string,
  fields: Record<string, unknown>,
  own: Partial<ReferenceConfig> = {},
  extras: Extras = {},
  dtype: FloatType = "F32",
): Case {
  const config: LlamaLike = { ...SIZES, model_type: family, ...fields };
  const reference = { ...BASE, ...own };
  const shapes = llamaShapes(config, { tied: reference.tiedHead, postNorms: reference.postNorms, ...extras });
  const tensors = randomTensors(shapes, family.length + 7, dtype, reference.normWeightsFromOne ? 0 : 1);
  return { folder: { config, tensors }, reference, weights: llamaWeights(tensors, reference.postNorms) };
}

function gpt2(fields: Record<string, unknown>, own: Partial<ReferenceConfig> = {}): Case {
  const config = { model_type: "gpt2", vocab_size: VOCABULARY, n_embd: 24, n_head: 4, n_layer: 3, n_positions: 32 };
  const tensors = randomTensors(gpt2Shapes(config, ""), 3);
  const reference: ReferenceConfig = {
    ...BASE,
    ...{ kvHeads: 4, hiddenDim: 96, norm: "layer", activation: "gelu_tanh", gated: false, learnedPositions: true },
    ...{ tiedHead: true, normEpsilon: 1e-5, rotary: undefined, ...own },
  };
  return { folder: { config: { ...config, ...fields }, tensors }, reference, weights: gpt2Weights(tensors) };
}

const LLAMA3 = {
  ...{ rope_type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 4 },
  original_max_position_embeddings: 16,
};
const GEMMA: Partial<ReferenceConfig> = {
  ...{ activation: "gelu_tanh", tiedHead: true, normWeightsFromOne: true, embedScale: Math.sqrt(24) },
  ...{ headDim: 8, rotary: { dims: 8, base: 10000 } },
};
const GEMMA2: Partial<ReferenceConfig> = {
  ...{ ...GEMMA, postNorms: true, attentionSoftcap: 50, logitSoftcap: 30 },
  ...{ attentionScale: 1 / 4, window: 3, fullEvery: 2 },
};

const CASES: Record<string, () => Case> = {
  gpt2: () => gpt2({ n_ctx: 32, layer_norm_epsilon: 1e-5 }),
  "gpt2 with exact GELU and no scale": () =>
    gpt2({ activation_function: "gelu", scale_attn_weights: false }, { activation: "gelu_erf", attentionScale: 1 }),
  llama: () =>
    llama("llama", { rms_norm_eps: 1e-5, rope_theta: 500 }, { normEpsilon: 1e-5, rotary: { dims: 6, base: 500 } }),
  "llama in bfloat16": () => llama("llama", {}, {}, {}, "BF16"),
  "llama in float16": () => llama("llama", {}, {}, {}, "F16"),
  "llama with biases and a tied head": () =>
    llama(
      "llama",
      { attention_bias: true, tie_word_embeddings: true },
      { tiedHead: true },
      { projectionBias: true, outputBias: true },
    ),
  "llama with llama3 scaling": () =>
    llama(
      "llama",
      { rope_scaling: LLAMA3 },
      {
        rotary: {
          ...{ dims: 6, base: 10000 },
          scaling: { type: "llama3", factor: 8, originalLength: 16, lowFrequencyFactor: 1, highFrequencyFactor: 4 },
        },
      },
    ),
  "llama with linear scaling, as older files say it": () =>
    llama(
      "llama",
      { rope_scaling: { type: "linear", factor: 4 } },
      {
        rotary: { dims: 6, base: 10000, scaling: { type: "linear", factor: 4 } },
      },
    ),
  "llama with yarn, as newer files say it": () =>
    llama(
      "llama",
      { rope_parameters: { rope_type: "yarn", rope_theta: 700, factor: 4, original_max_position_embeddings: 16 } },
      {
        rotary: { dims: 6, base: 700, scaling: { type: "yarn", factor: 4, originalLength: 16 } },
      },
    ),
  mistral: () => llama("mistral", { sliding_window: 4 }, { window: 4 }),
  "mistral with wide heads and no window": () =>
    llama("mistral", { sliding_window: null, head_dim: 10 }, { headDim: 10, rotary: { dims: 10, base: 10000 } }),
  qwen2: () => llama("qwen2", { sliding_window: 3, use_sliding_window: false }, {}, { projectionBias: true }),
  "qwen2 with windows in its last layers": () =>
    llama(
      "qwen2",
      { sliding_window: 3, use_sliding_window: true, max_window_layers: 1 },
      { window: 3, firstWindowedLayer: 1 },
      {
        projectionBias: true,
      },
    ),
  qwen3: () =>
    llama(
      "qwen3",
      { head_dim: 10 },
      { headDim: 10, queryKeyNorm: true, rotary: { dims: 10, base: 10000 } },
      { headNorms: true },
    ),
  gemma: () => llama("gemma", { head_dim: 8, hidden_act: "gelu" }, GEMMA),
  gemma2: () =>
    llama(
      "gemma2",
      { head_dim: 8, query_pre_attn_scalar: 16, sliding_window: 3, hidden_activation: "gelu_pytorch_tanh" },
      GEMMA2,
    ),
  "gemma2 with layer_types and no caps": () =>
    llama(
      "gemma2",
      {
        ...{ head_dim: 8, query_pre_attn_scalar: 16, sliding_window: 3, attn_logit_softcapping: null },
        ...{ final_logit_softcapping: 5, layer_types: ["full_attention", "full_attention", "sliding_attention"] },
      },
      { ...GEMMA2, attentionSoftcap: 0, logitSoftcap: 5, firstWindowedLayer: 2, fullEvery: 0 },
    ),
  gemma3_text: () =>
    llama(
      "gemma3_text",
      {
        ...{ head_dim: 8, query_pre_attn_scalar: 16, sliding_window: 3, sliding_window_pattern: 3 },
        ...{ rope_theta: 5000, rope_local_base_freq: 100, rope_scaling: { rope_type: "linear", factor: 8 } },
      },
      {
        ...{ ...GEMMA2, attentionSoftcap: 0, logitSoftcap: 0, queryKeyNorm: true, fullEvery: 3, windowRotaryBase: 100 },
        rotary: { dims: 8, base: 5000, scaling: { type: "linear", factor: 8 } },
      },
      { headNorms: true },
    ),
};

/** The largest difference from the reference, as a share of the largest logit. */
async function difference(lb: Lookback, { folder, reference, weights }: Case, dtype: WeightDtype): Promise<number> {
  const model = await loadDecoder(lb, filesOf(folder), { dtype });
  const { logits } = model.forward(TOKENS, { logits: "all" });
  model.dispose();
  const expected = referenceDecoder(reference, weights, TOKENS).logits.flat();
  const most = expected.reduce((size, value) => Math.max(size, Math.abs(value)), 0);
  expect(logits.dims).toEqual([1, TOKENS.length, VOCABULARY]);
  let found = 0;
  for (const [i, value] of expected.entries()) found = Math.max(found, Math.abs(logits.data[i]! - value) / most);
  return found;
}

describeVariants((lb) => {
  test.each(Object.keys(CASES))("%s: logits are the reference's within 1e-5 of the largest", async (name) => {
    expect(await difference(lb, CASES[name]!(), "f32")).toBeLessThan(1e-5);
  });

  test("weights are kept exactly where the file has no more bits", async () => {
    expect(await difference(lb, CASES["llama in bfloat16"]!(), "bf16")).toBeLessThan(1e-5);
    expect(await difference(lb, CASES["llama in float16"]!(), "f16")).toBeLessThan(1e-5);
  });

  test.each([
    ["f16", 0.002],
    ["bf16", 0.02],
    ["int8", 0.05],
  ] as const)("kept as %s they take less memory, and logits are within %p", async (dtype, bound) => {
    for (const name of ["gpt2", "llama", "gemma2"]) {
      const one = CASES[name]!();
      expect(await difference(lb, one, dtype)).toBeLessThan(bound);
      const [plain, small] = await Promise.all([
        loadDecoder(lb, filesOf(one.folder)),
        loadDecoder(lb, filesOf(one.folder), { dtype }),
      ]);
      expect(small.inspect().memory.weights).toBeLessThan(0.75 * plain.inspect().memory.weights);
      plain.dispose();
      small.dispose();
    }
  });
});

describe("the reference's own weights", () => {
  test("differ from family to family, so that none can stand for another", () => {
    const first = new Set(
      Object.values(CASES).map((make) => referenceDecoder(make().reference, make().weights, [1, 2]).logits[1]![0]!),
    );
    expect(first.size).toBeGreaterThan(Object.keys(CASES).length - 4);
  });
});
