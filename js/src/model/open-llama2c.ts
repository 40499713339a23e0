import { fail } from "../errors.js";
import { type ByteReader, type ByteSource, MemoryReader } from "./bytes.js";
import type { OpenedModel } from "./opened.js";
import { pourTensor } from "./pour.js";
import { type DecoderSettings, PLAIN } from "./settings.js";
import { isLayerSlot, type Slot, slotShape } from "./slots.js";
import { mustOpen, readWhole } from "./sources.js";
import { isVector } from "./tensor-names.js";
import { BOS, EOS, Llama2cTokenizer } from "./tokenizer-llama2c.js";

const MAGIC = 0x616b3432;
const MOST_LAYERS = 1024;
const MOST_TOKENIZER = 2 ** 26;
const FIELDS = ["dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len"] as const;
type Header = Record<(typeof FIELDS)[number], number>;

/** What lies where in a file: slots (all layers of one after another), or floats that say nothing new. */
type Part = Slot | { skip: number };

interface Layout {
  readonly settings: DecoderSettings;
  readonly parts: readonly Part[];
  /** Of the header. */
  readonly bytes: number;
}

const LAYER_WEIGHTS = ["queryWeight", "keyWeight", "valueWeight", "outputWeight"] as const;
const MLP_WEIGHTS = ["gateWeight", "downWeight", "upWeight"] as const;

/** llama2.c's two files: weights of version 0 (no version in it) or 1, float32, and tokenizer.bin. */
export async function openLlama2c(
  weights: ByteSource,
  tokenizer: ByteSource,
  signal: AbortSignal | undefined,
): Promise<OpenedModel> {
  const words = await readTokenizer(tokenizer, signal);
  const reader = await mustOpen(weights, signal);
  try {
    const { settings, parts, bytes } = await readLayout(reader);
    const total = bytes + 4 * parts.reduce((sum, part) => sum + floatsOf(part, settings), 0);
    if (reader.size !== undefined && reader.size !== total) {
      const sizes = FIELDS.map((field, i) => `${field} ${sizesOf(settings)[i]}`).join(", ");
      fail("invalid-model", `${reader.name} has ${reader.size} bytes, but its header (${sizes}) makes ${total}.`);
    }
    if (words.size !== settings.vocabSize) {
      fail(
        "invalid-tokenizer",
        `${tokenizer.name} has ${words.size} tokens, but ${reader.name} a vocabulary of ${settings.vocabSize}: they do not belong together.`,
      );
    }
    return {
      name: weights.name,
      family: "llama2.c",
      settings,
      tokenizer: words,
      // The start of the next text ends this one.
      endIds: [BOS, EOS],
      weightBytes: total - bytes,
      async pour(sink, tally) {
        for (const part of parts) {
          if (typeof part === "object") {
            await reader.skip(4 * part.skip);
            await tally(reader.name, 4 * part.skip);
            continue;
          }
          const [rows, columns] = slotShape(settings, part)!;
          const dims = isVector(part) ? [rows] : [rows, columns];
          for (let layer = 0; layer < (isLayerSlot(part) ? settings.layers : 1); layer++) {
            const tensor = { dims, transposed: false, destinations: [{ slot: part, layer, from: 0 }] };
            await pourTensor(reader, tensor, "F32", settings, sink, tally);
          }
        }
        if ((await reader.next(1)).length > 0)
          fail("invalid-model", `${reader.name} goes on after the ${total} bytes that its header makes.`);
      },
      close: () => reader.close(),
    };
  } catch (error) {
    await reader.close();
    throw error;
  }
}

async function readTokenizer(source: ByteSource, signal: AbortSignal | undefined): Promise<Llama2cTokenizer> {
  const bytes = await readWhole(await mustOpen(source, signal), MOST_TOKENIZER);
  try {
    return new Llama2cTokenizer(bytes, source.name);
  } catch (error) {
    const isModel = await readLayout(new MemoryReader(source.name, bytes, signal)).then(
      () => true,
      () => false,
    );
    if (!isModel) throw error;
    return fail(
      "invalid-tokenizer",
      `${source.name} is a model of llama2.c, not a tokenizer: are weights and tokenizer exchanged?`,
      error,
    );
  }
}

const sizesOf = (s: DecoderSettings): number[] => [
  ...[s.embedDim, s.hiddenDim, s.layers, s.heads, s.kvHeads],
  ...[s.tiedHead ? s.vocabSize : -s.vocabSize, s.contextLength],
];

function floatsOf(part: Part, settings: DecoderSettings): number {
  if (typeof part === "object") return part.skip;
  const [rows, columns] = slotShape(settings, part)!;
  return rows * columns * (isLayerSlot(part) ? settings.layers : 1);
}

async function readLayout(reader: ByteReader): Promise<Layout> {
  const integers = async (count: number): Promise<number[]> => {
    const bytes = await reader.read(4 * count);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return Array.from({ length: count }, (_, i) => view.getInt32(4 * i, true));
  };
  const [first, version] = (await integers(2)) as [number, number];
  if (first !== MAGIC) {
    const settings = settingsOf([first, version, ...(await integers(5))], reader.name, (vocab) => vocab > 0);
    // The cosines and sines of old times.
    const tables = { skip: settings.contextLength * settings.headDim };
    const start = ["tokenEmbedding", "attentionNormWeight", ...LAYER_WEIGHTS, "mlpNormWeight", ...MLP_WEIGHTS] as const;
    const head = settings.tiedHead ? [] : (["head"] as const);
    return { settings, parts: [...start, "finalNormWeight", tables, ...head], bytes: 28 };
  }
  if (version !== 1) {
    fail(
      "model-unknown",
      `${reader.name} is of version ${version} of llama2.c's format; versions 0 and 1 (float32) are known. Export it with --version 1.`,
    );
  }
  const sizes = await integers(FIELDS.length);
  const shared = (await reader.read(1))[0] !== 0;
  await reader.skip(HEADER_BYTES - 4 * (2 + FIELDS.length) - 1);
  const settings = settingsOf(sizes, reader.name, () => shared);
  const norms = ["attentionNormWeight", "mlpNormWeight", "finalNormWeight"] as const;
  const head = settings.tiedHead ? [] : (["head"] as const);
  const parts = [...norms, "tokenEmbedding", ...LAYER_WEIGHTS, ...MLP_WEIGHTS, ...head] as const;
  return { settings, parts, bytes: HEADER_BYTES };
}

const HEADER_BYTES = 256;

/** In version 0 a negative vocab_size says that the head has weights of its own. */
function settingsOf(sizes: readonly number[], name: string, tied: (vocab: number) => boolean): DecoderSettings {
  const header = Object.fromEntries(FIELDS.map((field, i) => [field, sizes[i]!])) as Header;
  const { dim, n_heads: heads, n_kv_heads: kvHeads } = header;
  const no = (problem: string): never => {
    const fields = FIELDS.map((field) => `${field} ${header[field]}`).join(", ");
    fail("invalid-model", `${name} is no model of llama2.c: its header says ${fields}; ${problem}.`);
  };
  const vocabSize = Math.abs(header.vocab_size);
  if (FIELDS.some((field) => field !== "vocab_size" && header[field] < 1) || vocabSize < 1) no("sizes are at least 1");
  if (header.n_layers > MOST_LAYERS) no(`at most ${MOST_LAYERS} layers are possible`);
  if (dim % (2 * heads) !== 0) no("the width of a head must be even and a whole number");
  if (heads % kvHeads !== 0) no("n_kv_heads must divide n_heads");
  const headDim = dim / heads;
  return {
    ...PLAIN,
    vocabSize,
    layers: header.n_layers,
    embedDim: dim,
    heads,
    kvHeads,
    headDim,
    hiddenDim: header.hidden_dim,
    contextLength: header.seq_len,
    tiedHead: tied(header.vocab_size),
    normEpsilon: 1e-5,
    rotary: { dims: headDim, base: 10000, interleaved: true },
  };
}
