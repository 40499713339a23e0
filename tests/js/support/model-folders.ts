/** Small models as Hugging Face's transformers writes them, one of each family, with random weights. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FloatType, type NamedTensor, safetensors } from "./safetensors.ts";

export interface ModelFolder {
  readonly config: Record<string, unknown>;
  readonly tensors: Record<string, NamedTensor>;
}

/** A congruential generator: numbers in (−1, 1). */
export function randomNumbers(seed: number): () => number {
  let state = (seed * 7919 + 12345) % 2147483647;
  return () => {
    state = (state * 16807) % 2147483647;
    return (2 * state) / 2147483647 - 1;
  };
}

export function randomValues(length: number, seed: number, size: number): Float64Array {
  const next = randomNumbers(seed);
  for (let i = 0; i < 8; i++) next();
  return Float64Array.from({ length }, () => size * next());
}

type Shapes = Record<string, readonly number[]>;

/** Norms around 1 (or 0, where 1 is added), matrices so that layers neither vanish nor explode. */
export function randomTensors(
  shapes: Shapes,
  seed: number,
  dtype: FloatType = "F32",
  normCentre = 1,
): ModelFolder["tensors"] {
  let n = seed * 1000;
  return Object.fromEntries(
    Object.entries(shapes).map(([name, dims]) => {
      const length = dims.reduce((product, dim) => product * dim, 1);
      const isNorm = /(norm|ln_\w)\.weight$/.test(name);
      const values = randomValues(length, ++n, dims.length === 1 ? 0.3 : 1.5 / Math.sqrt(dims.at(-1)!));
      return [name, { dims, dtype, values: isNorm ? values.map((value) => normCentre + value) : values }];
    }),
  );
}

export const VOCABULARY = 288;

export interface LlamaLike {
  readonly model_type: string;
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_key_value_heads: number;
  readonly head_dim?: number;
  readonly [field: string]: unknown;
}

interface Extras {
  readonly projectionBias?: boolean;
  readonly outputBias?: boolean;
  readonly headNorms?: boolean;
  readonly postNorms?: boolean;
  readonly tied?: boolean;
}

export function llamaShapes(config: LlamaLike, extras: Extras = {}): Shapes {
  const { hidden_size: width, intermediate_size: inner, num_attention_heads: heads, num_key_value_heads: kv } = config;
  const headDim = config.head_dim ?? width / heads;
  const shapes: Shapes = { "model.embed_tokens.weight": [VOCABULARY, width], "model.norm.weight": [width] };
  if (!extras.tied) shapes["lm_head.weight"] = [VOCABULARY, width];
  for (let layer = 0; layer < config.num_hidden_layers; layer++) {
    const add = (name: string, ...dims: number[]) => {
      shapes[`model.layers.${layer}.${name}`] = dims;
    };
    add("input_layernorm.weight", width);
    for (const [name, size] of Object.entries({ q: heads * headDim, k: kv * headDim, v: kv * headDim })) {
      add(`self_attn.${name}_proj.weight`, size, width);
      if (extras.projectionBias) add(`self_attn.${name}_proj.bias`, size);
      if (extras.headNorms && name !== "v") add(`self_attn.${name}_norm.weight`, headDim);
    }
    add("self_attn.o_proj.weight", width, heads * headDim);
    if (extras.outputBias) add("self_attn.o_proj.bias", width);
    add("post_attention_layernorm.weight", width);
    if (extras.postNorms) {
      add("pre_feedforward_layernorm.weight", width);
      add("post_feedforward_layernorm.weight", width);
    }
    add("mlp.gate_proj.weight", inner, width);
    add("mlp.up_proj.weight", inner, width);
    add("mlp.down_proj.weight", width, inner);
  }
  return shapes;
}

export interface Gpt2Config {
  readonly n_embd: number;
  readonly n_layer: number;
  readonly n_positions: number;
  readonly vocab_size: number;
}

/** Conv1D keeps [inputs, outputs]. */
export function gpt2Shapes({ n_embd: width, n_layer, n_positions, vocab_size }: Gpt2Config, prefix: string): Shapes {
  const shapes: Shapes = {
    [`${prefix}wte.weight`]: [vocab_size, width],
    [`${prefix}wpe.weight`]: [n_positions, width],
  };
  const add = (name: string, ...dims: number[]) => {
    shapes[prefix + name] = dims;
  };
  for (let layer = 0; layer < n_layer; layer++) {
    const linear = (name: string, inputs: number, outputs: number) => {
      add(`h.${layer}.${name}.weight`, inputs, outputs);
      add(`h.${layer}.${name}.bias`, outputs);
    };
    for (const norm of ["ln_1", "ln_2"]) {
      add(`h.${layer}.${norm}.weight`, width);
      add(`h.${layer}.${norm}.bias`, width);
    }
    linear("attn.c_attn", width, 3 * width);
    linear("attn.c_proj", width, width);
    linear("mlp.c_fc", width, 4 * width);
    linear("mlp.c_proj", 4 * width, width);
  }
  add("ln_f.weight", width);
  add("ln_f.bias", width);
  return shapes;
}

/** GPT-2's visible stand-ins of the 256 bytes. */
function byteCharacters(): string[] {
  const visible = (byte: number) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(visible(byte) ? byte : 256 + others++));
}

/** A byte-level BPE of 288 tokens: the bytes, a few merges, and <|end|> as the last of all. */
export function tokenizerJson(): Record<string, unknown> {
  const bytes = byteCharacters();
  const space = bytes[32]!;
  const merges = [
    "h e",
    `${space} t`,
    `${space}t he`,
    "l l",
    "o n",
    "c e",
    "on ce",
    "i n",
    "a n",
    "an d",
    "e r",
    "r e",
  ];
  const words = [...bytes, ...merges.map((merge) => merge.replace(" ", ""))];
  while (words.length < VOCABULARY - 1) words.push(`unused${words.length}`);
  const end = { id: VOCABULARY - 1, content: "<|end|>", single_word: false, lstrip: false, rstrip: false };
  return {
    version: "1.0",
    added_tokens: [{ ...end, normalized: false, special: true }],
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      vocab: Object.fromEntries(words.map((word, id) => [word, id])),
      merges,
    },
  };
}

export const asFile = (name: string, content: Uint8Array<ArrayBuffer> | object): File =>
  new File([content instanceof Uint8Array ? content : JSON.stringify(content)], name);

/** The folder as the files that a browser's picker would give. */
export const filesOf = ({ config, tensors }: ModelFolder): File[] => [
  asFile("config.json", config),
  asFile("tokenizer.json", tokenizerJson()),
  asFile("generation_config.json", { eos_token_id: VOCABULARY - 1 }),
  asFile("model.safetensors", safetensors(tensors)),
];

/** The folder on disk. */
export function writeFolder(path: string, folder: ModelFolder): void {
  mkdirSync(path, { recursive: true });
  const write = (name: string, content: object) =>
    writeFileSync(join(path, name), content instanceof Uint8Array ? content : JSON.stringify(content));
  write("config.json", folder.config);
  write("tokenizer.json", tokenizerJson());
  write("model.safetensors", safetensors(folder.tensors));
}
