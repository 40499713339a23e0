/** The small files of a trained model, and what they say to the core. */
import { readConfig } from "../model/families.js";
import type { DecoderSettings } from "../model/settings.js";
import type { FullTrainerConfig } from "./types.js";

/** The content of config.json, as Hugging Face's transformers writes it. */
export function configJson(
  { model, dropout }: Pick<FullTrainerConfig, "model" | "dropout">,
  vocabSize: number,
  endId: number | undefined,
  dtype: "float16" | "float32",
): Record<string, unknown> {
  const { layers, heads, kvHeads, embedDim, hiddenDim, contextLength, tiedHead } = model;
  const common = {
    vocab_size: vocabSize,
    bos_token_id: null,
    eos_token_id: endId ?? null,
    initializer_range: 0.02,
    tie_word_embeddings: tiedHead,
    torch_dtype: dtype,
    use_cache: true,
  };
  if (model.family === "gpt2") {
    return {
      architectures: ["GPT2LMHeadModel"],
      model_type: "gpt2",
      n_positions: contextLength,
      n_embd: embedDim,
      n_layer: layers,
      n_head: heads,
      n_inner: hiddenDim,
      activation_function: "gelu_new",
      layer_norm_epsilon: 1e-5,
      ...{ attn_pdrop: dropout, resid_pdrop: dropout, embd_pdrop: 0 },
      ...common,
    };
  }
  return {
    architectures: ["LlamaForCausalLM"],
    model_type: "llama",
    hidden_size: embedDim,
    intermediate_size: hiddenDim,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
    head_dim: embedDim / heads,
    hidden_act: "silu",
    max_position_embeddings: contextLength,
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    rope_scaling: null,
    attention_bias: false,
    attention_dropout: dropout,
    mlp_bias: false,
    ...common,
  };
}

/** What is trained is what the exported config.json describes. */
export const settingsOf = (config: Pick<FullTrainerConfig, "model" | "dropout">, vocabSize: number): DecoderSettings =>
  readConfig(configJson(config, vocabSize, undefined, "float32"), "trainer: model").settings;
