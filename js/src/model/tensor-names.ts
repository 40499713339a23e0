import type { Naming } from "./families.js";
import type { DecoderSettings } from "./settings.js";
import { isLayerSlot, type Slot, slotShape, slotsOf } from "./slots.js";

/** A part of a file's tensor that is a slot of the decoder, or one layer of it. */
export interface Destination {
  readonly slot: Slot;
  readonly layer: number;
  /** Rows of the source (columns, if transposed) that belong: from here on, as many as the slot has. */
  readonly from: number;
}

/** A tensor that a file has to have, [rows, columns]; vectors have one column. */
export interface WantedTensor {
  readonly dims: readonly number[];
  /** The source is the slot's transpose. */
  readonly transposed: boolean;
  readonly destinations: readonly Destination[];
}

/** Names of one slot's tensor; # stands for the layer. */
type Names = Readonly<Partial<Record<Slot, string>>>;

const LLAMA: Names = {
  tokenEmbedding: "embed_tokens.weight",
  finalNormWeight: "norm.weight",
  attentionNormWeight: "layers.#.input_layernorm.weight",
  queryWeight: "layers.#.self_attn.q_proj.weight",
  queryBias: "layers.#.self_attn.q_proj.bias",
  keyWeight: "layers.#.self_attn.k_proj.weight",
  keyBias: "layers.#.self_attn.k_proj.bias",
  valueWeight: "layers.#.self_attn.v_proj.weight",
  valueBias: "layers.#.self_attn.v_proj.bias",
  queryNormWeight: "layers.#.self_attn.q_norm.weight",
  keyNormWeight: "layers.#.self_attn.k_norm.weight",
  outputWeight: "layers.#.self_attn.o_proj.weight",
  outputBias: "layers.#.self_attn.o_proj.bias",
  mlpNormWeight: "layers.#.post_attention_layernorm.weight",
  gateWeight: "layers.#.mlp.gate_proj.weight",
  gateBias: "layers.#.mlp.gate_proj.bias",
  upWeight: "layers.#.mlp.up_proj.weight",
  upBias: "layers.#.mlp.up_proj.bias",
  downWeight: "layers.#.mlp.down_proj.weight",
  downBias: "layers.#.mlp.down_proj.bias",
};

/** The post-norms take the name that the MLP's norm has elsewhere. */
const LLAMA_POST_NORMS: Names = {
  ...LLAMA,
  attentionPostNormWeight: "layers.#.post_attention_layernorm.weight",
  mlpNormWeight: "layers.#.pre_feedforward_layernorm.weight",
  mlpPostNormWeight: "layers.#.post_feedforward_layernorm.weight",
};

const GPT2: Names = {
  tokenEmbedding: "wte.weight",
  positionEmbedding: "wpe.weight",
  finalNormWeight: "ln_f.weight",
  finalNormBias: "ln_f.bias",
  attentionNormWeight: "h.#.ln_1.weight",
  attentionNormBias: "h.#.ln_1.bias",
  queryWeight: "h.#.attn.c_attn.weight",
  queryBias: "h.#.attn.c_attn.bias",
  keyWeight: "h.#.attn.c_attn.weight",
  keyBias: "h.#.attn.c_attn.bias",
  valueWeight: "h.#.attn.c_attn.weight",
  valueBias: "h.#.attn.c_attn.bias",
  outputWeight: "h.#.attn.c_proj.weight",
  outputBias: "h.#.attn.c_proj.bias",
  mlpNormWeight: "h.#.ln_2.weight",
  mlpNormBias: "h.#.ln_2.bias",
  upWeight: "h.#.mlp.c_fc.weight",
  upBias: "h.#.mlp.c_fc.bias",
  downWeight: "h.#.mlp.c_proj.weight",
  downBias: "h.#.mlp.c_proj.bias",
};

/** Conv1D keeps [inputs, outputs]. */
const CONV1D: readonly Slot[] = ["queryWeight", "keyWeight", "valueWeight", "outputWeight", "upWeight", "downWeight"];
const PREFIX: Readonly<Record<Naming, string>> = { gpt2: "transformer.", llama: "model." };
/** Not under the prefix. */
const HEAD = "lm_head.weight";
/** Buffers that older files hold, and that the config says already. */
const BUFFERS: Readonly<Record<Naming, RegExp>> = {
  gpt2: /^h\.\d+\.attn\.(masked_)?bias$/,
  llama: /(^|\.)rotary_emb\.inv_freq$/,
};

/** The name within the model, whether the file has the prefix or not. */
export const plainName = (naming: Naming, name: string): string =>
  name.startsWith(PREFIX[naming]) ? name.slice(PREFIX[naming].length) : name;

/** The name that transformers writes. */
export const fullName = (naming: Naming, plain: string): string => (plain === HEAD ? plain : PREFIX[naming] + plain);

/** Whether a file may hold this beside what is wanted. */
export const isIgnored = (naming: Naming, settings: DecoderSettings, plain: string): boolean =>
  BUFFERS[naming].test(plain) || (settings.tiedHead && plain === HEAD);

/** Every tensor that a decoder needs, by its name without prefix. */
export function wantedTensors(naming: Naming, settings: DecoderSettings): Map<string, WantedTensor> {
  const names = naming === "gpt2" ? GPT2 : settings.postNorms ? LLAMA_POST_NORMS : LLAMA;
  const wanted = new Map<string, { dims: number[]; transposed: boolean; destinations: Destination[] }>();
  for (const slot of slotsOf(settings)) {
    const [rows, columns] = slotShape(settings, slot)!;
    const transposed = naming === "gpt2" && CONV1D.includes(slot);
    for (let layer = 0; layer < (isLayerSlot(slot) ? settings.layers : 1); layer++) {
      const name = slot === "head" ? HEAD : names[slot]!.replace("#", String(layer));
      // Parts of a fused tensor follow each other in the order of the slots.
      const known = wanted.get(name);
      const outputs = known ? known.dims[transposed ? 1 : 0]! : 0;
      const dims = isVector(slot)
        ? [outputs + rows]
        : transposed
          ? [columns, outputs + rows]
          : [outputs + rows, columns];
      const destinations = [...(known?.destinations ?? []), { slot, layer, from: outputs }];
      wanted.set(name, { dims, transposed, destinations });
    }
  }
  return wanted;
}

/** Norms and biases. */
export const isVector = (slot: Slot): boolean => /Norm|Bias$/.test(slot);
