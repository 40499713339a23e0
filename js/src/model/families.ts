import { fail, show } from "../errors.js";
import { ConfigFields } from "./config-json.js";
import { readRotary } from "./config-rotary.js";
import { type Activation, type DecoderSettings, isWindowed, PLAIN } from "./settings.js";

/** How a family's tensors are named: see tensor-names.ts. */
export type Naming = "gpt2" | "llama";

interface Family {
  readonly naming: Naming;
  settings(config: ConfigFields): DecoderSettings;
}

/** By the model_type of config.json. */
const FAMILIES: Readonly<Record<string, Family>> = {
  gpt2: { naming: "gpt2", settings: gpt2 },
  llama: { naming: "llama", settings: (c) => llama(c, { attentionBias: "attention_bias" }) },
  mistral: { naming: "llama", settings: (c) => windowed(llama(c, { kvHeads: 8 }), c, () => true, 4096) },
  qwen2: { naming: "llama", settings: qwen2 },
  qwen3: { naming: "llama", settings: qwen3 },
  gemma: { naming: "llama", settings: gemma },
  gemma2: { naming: "llama", settings: gemma2 },
  gemma3_text: { naming: "llama", settings: gemma3 },
};

export const KNOWN_FAMILIES: readonly string[] = Object.keys(FAMILIES);

/** What a config.json of Hugging Face's transformers says. */
export function readConfig(
  json: Record<string, unknown>,
  where: string,
): { naming: Naming; settings: DecoderSettings; type: string } {
  const config = new ConfigFields(json, where);
  const type = config.raw("model_type");
  const family = typeof type === "string" && Object.hasOwn(FAMILIES, type) ? FAMILIES[type] : undefined;
  if (!family) {
    fail("model-unknown", `${where}: model_type ${show(type)} is not known; there are: ${KNOWN_FAMILIES.join(", ")}.`);
  }
  const settings = family.settings(config);
  const { heads, kvHeads } = settings;
  if (heads % kvHeads !== 0)
    fail("kv-heads-not-divisor", `${where}: ${kvHeads} kv heads do not divide ${heads} heads.`);
  return { naming: family.naming, settings, type: type as string };
}

const MOST_LAYERS = 1024;
const ACTIVATIONS: Readonly<Record<string, Activation>> = {
  ...{ gelu_new: "gelu_tanh", gelu_pytorch_tanh: "gelu_tanh", gelu_fast: "gelu_tanh" },
  ...{ gelu: "gelu_erf", silu: "silu", swish: "silu" },
};

function activation(config: ConfigFields, field: string, fallback: string): Activation {
  const name = config.text(field, fallback);
  return Object.hasOwn(ACTIVATIONS, name)
    ? ACTIVATIONS[name]!
    : config.unsupported(field, `there are ${Object.keys(ACTIVATIONS).join(", ")}`);
}

const evenly = (embedDim: number, heads: number): number =>
  embedDim % heads === 0
    ? embedDim / heads
    : fail("embed-dim-not-divisible", `A hidden size of ${embedDim} is no multiple of ${heads} heads.`);

function gpt2(config: ConfigFields): DecoderSettings {
  const embedDim = config.size("n_embd");
  const heads = config.size("n_head");
  if (config.flag("scale_attn_by_inverse_layer_idx", false))
    config.unsupported("scale_attn_by_inverse_layer_idx", "every layer has one scale");
  return {
    ...PLAIN,
    vocabSize: config.size("vocab_size"),
    layers: config.size("n_layer", undefined, MOST_LAYERS),
    embedDim,
    heads,
    kvHeads: heads,
    headDim: evenly(embedDim, heads),
    hiddenDim: config.size("n_inner", 4 * embedDim),
    contextLength: config.has("n_positions") ? config.size("n_positions") : config.size("n_ctx", 1024),
    norm: "layer",
    activation: activation(config, "activation_function", "gelu_new"),
    gated: false,
    learnedPositions: true,
    tiedHead: config.flag("tie_word_embeddings", true),
    queryKeyValueBias: true,
    outputBias: true,
    mlpBias: true,
    normEpsilon: config.positive("layer_norm_epsilon", 1e-5),
    attentionScale: config.flag("scale_attn_weights", true) ? 0 : 1,
  };
}

interface Defaults {
  kvHeads?: number;
  headDim?: number;
  tied?: boolean;
  context?: number;
  activation?: Activation;
  /** The field that gives all four projections a bias. */
  attentionBias?: string;
}

function llama(config: ConfigFields, defaults: Defaults = {}, layerKind?: string): DecoderSettings {
  const embedDim = config.size("hidden_size");
  const heads = config.size("num_attention_heads");
  const headDim = config.has("head_dim") ? config.size("head_dim") : (defaults.headDim ?? evenly(embedDim, heads));
  const bias = defaults.attentionBias !== undefined && config.flag(defaults.attentionBias, false);
  return {
    ...PLAIN,
    vocabSize: config.size("vocab_size"),
    layers: config.size("num_hidden_layers", undefined, MOST_LAYERS),
    embedDim,
    heads,
    kvHeads: config.size("num_key_value_heads", defaults.kvHeads ?? heads),
    headDim,
    hiddenDim: config.size("intermediate_size"),
    contextLength: config.size("max_position_embeddings", defaults.context ?? 2048),
    activation: defaults.activation ?? activation(config, "hidden_act", "silu"),
    tiedHead: config.flag("tie_word_embeddings", defaults.tied ?? false),
    queryKeyValueBias: bias,
    outputBias: bias,
    mlpBias: config.flag("mlp_bias", false),
    normEpsilon: config.positive("rms_norm_eps", 1e-6),
    rotary: readRotary(config, headDim, 10000, layerKind),
  };
}

function qwen2(config: ConfigFields): DecoderSettings {
  return qwenWindow({ ...llama(config, { context: 32768 }), queryKeyValueBias: true }, config);
}

function qwen3(config: ConfigFields): DecoderSettings {
  const defaults = { context: 32768, headDim: 128, attentionBias: "attention_bias" };
  return qwenWindow({ ...llama(config, defaults), queryKeyNorm: true }, config);
}

function qwenWindow(settings: DecoderSettings, config: ConfigFields): DecoderSettings {
  if (!config.flag("use_sliding_window", false)) return settings;
  const first = config.raw("max_window_layers") === 0 ? 0 : config.size("max_window_layers", 28);
  return windowed(settings, config, (layer) => layer >= first, 4096);
}

function gemma(config: ConfigFields): DecoderSettings {
  return gemmaBase(config);
}

function gemmaBase(config: ConfigFields, layerKind?: string): DecoderSettings {
  // The first files of the family say gelu and mean its approximation.
  const named = config.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  const own = named === "hidden_act" && config.raw(named) === "gelu";
  const activated = own ? "gelu_tanh" : activation(config, named, "gelu_pytorch_tanh");
  const defaults = { headDim: 256, tied: true, context: 8192, activation: activated, attentionBias: "attention_bias" };
  const settings = llama(config, defaults, layerKind);
  return { ...settings, normWeightsFromOne: true, embedScale: Math.sqrt(settings.embedDim) };
}

/** What Gemma 2 has and Gemma 3 keeps. */
function withPostNorms(
  config: ConfigFields,
  settings: DecoderSettings,
  caps: readonly [number, number],
): DecoderSettings {
  return {
    ...settings,
    postNorms: true,
    attentionScale: 1 / Math.sqrt(config.positive("query_pre_attn_scalar", 256)),
    attentionSoftcap: config.positiveOrNone("attn_logit_softcapping", caps[0]),
    logitSoftcap: config.positiveOrNone("final_logit_softcapping", caps[1]),
  };
}

function gemma2(config: ConfigFields): DecoderSettings {
  const settings = withPostNorms(config, gemmaBase(config), [50, 30]);
  return windowed(settings, config, (layer) => layer % 2 === 0, 4096);
}

function gemma3(config: ConfigFields): DecoderSettings {
  const settings = withPostNorms(config, gemmaBase(config, "full_attention"), [0, 0]);
  const rotary = { ...settings.rotary, base: fullBase(config) };
  const every = config.size("sliding_window_pattern", 6);
  const local = config.inner("rope_parameters")?.inner("sliding_attention");
  return {
    ...windowed({ ...settings, queryKeyNorm: true, rotary }, config, (layer) => (layer + 1) % every !== 0, 4096),
    windowRotaryBase: local ? local.positive("rope_theta", 10000) : config.positive("rope_local_base_freq", 10000),
  };
}

const fullBase = (config: ConfigFields): number =>
  (config.inner("rope_parameters")?.inner("full_attention") ?? config).positive("rope_theta", 1_000_000);

/** Layers that see a window only: as layer_types lists them, else by the family's habit. */
function windowed(
  settings: DecoderSettings,
  config: ConfigFields,
  habit: (layer: number) => boolean,
  fallback: number,
): DecoderSettings {
  const window = config.sizeOrNone("sliding_window", fallback);
  const types = config.list("layer_types");
  const { layers } = settings;
  const isLocal = (layer: number) => (types ? types[layer] === "sliding_attention" : habit(layer));
  if (types && (types.length !== layers || !types.every((type) => /^(sliding|full)_attention$/.test(String(type)))))
    config.unsupported("layer_types", `there are sliding_attention and full_attention, for ${layers} layers`);
  const locals = Array.from({ length: layers }, (_, layer) => isLocal(layer));
  if (window === 0 || !locals.includes(true)) return settings;
  const firstWindowedLayer = locals.indexOf(true);
  const nextFull = locals.indexOf(false, firstWindowedLayer);
  const fullEvery = nextFull < 0 ? 0 : nextFull + 1;
  const found = { ...settings, window, firstWindowedLayer, fullEvery };
  if (locals.some((local, layer) => local !== isWindowed(found, layer)))
    config.unsupported("layer_types", "every n-th layer may see all, and the first ones");
  return found;
}
