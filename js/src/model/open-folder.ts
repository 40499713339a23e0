import { fail, kindOf, refuse, shape } from "../errors.js";
import { nearest } from "../options.js";
import type { ByteReader } from "./bytes.js";
import { readConfig } from "./families.js";
import type { OpenedModel } from "./opened.js";
import { pourTensor } from "./pour.js";
import { quoted, readHeader, type TensorEntry } from "./safetensors.js";
import type { DecoderSettings } from "./settings.js";
import { type Folder, mustOpen, readJson } from "./sources.js";
import { isIgnored, plainName, type WantedTensor, wantedTensors } from "./tensor-names.js";
import { makeJsonTokenizer } from "./tokenizer-json.js";
import { FLOAT_BYTES, FLOAT_TYPES, type FloatType } from "./weight-rows.js";

const SINGLE = "model.safetensors";
const INDEX = "model.safetensors.index.json";

/** A file's tensors in the order of their bytes: what to do with each. */
interface Shard {
  readonly file: string;
  /** Open and behind its header, if it is the only one. */
  readonly reader: ByteReader | undefined;
  readonly tensors: readonly { entry: TensorEntry; wanted: WantedTensor | undefined }[];
}

/** A folder of Hugging Face: config.json, tokenizer.json, *.safetensors, and what else is there of generation_config.json, tokenizer_config.json. */
export async function openFolder(folder: Folder, signal: AbortSignal | undefined): Promise<OpenedModel> {
  const json = async (name: string) => readJson(await mustOpen(folder.file(name), signal));
  const jsonOrNothing = async (name: string): Promise<Record<string, unknown>> => {
    const reader = await folder.file(name).open(signal);
    return reader ? readJson(reader) : {};
  };
  const config = await json("config.json");
  const { naming, settings, type } = readConfig(config, "config.json");
  const generation = await jsonOrNothing("generation_config.json");
  const tokenizer = await makeJsonTokenizer(
    await json("tokenizer.json"),
    await jsonOrNothing("tokenizer_config.json"),
    "tokenizer.json",
  );
  const endIds = readEndIds(generation.eos_token_id ?? config.eos_token_id, settings.vocabSize);

  const wanted = wantedTensors(naming, settings);
  const shards: Shard[] = [];
  let weightBytes = 0;
  const files = await weightFiles(folder, signal);
  // The headers of all files, before anything is allocated.
  for (const file of files) {
    const reader = await mustOpen(folder.file(file), signal);
    let kept = false;
    try {
      const tensors = (await readHeader(reader)).map((entry) => {
        const name = plainName(naming, entry.name);
        const found = wanted.get(name);
        wanted.delete(name);
        if (found) checkTensor(entry, found, file);
        else if (!isIgnored(naming, settings, name)) unknownTensor(entry, wanted, shards, file, type);
        weightBytes += entry.end - entry.begin;
        return { entry, wanted: found };
      });
      if (file === files.at(-1)) refuseMissing(wanted, folder.name, type);
      kept = files.length === 1;
      shards.push({ file, tensors, reader: kept ? reader : undefined });
    } finally {
      if (!kept) await reader.close();
    }
  }
  return {
    name: folder.name,
    family: type,
    settings,
    tokenizer,
    endIds,
    weightBytes,
    async pour(sink, tally) {
      for (const shard of shards) {
        const reader = shard.reader ?? (await reopen(folder, shard, signal));
        try {
          await pourShard(reader, shard, settings, sink, tally);
        } finally {
          await reader.close();
        }
      }
    },
    close: async () => {
      for (const { reader } of shards) await reader?.close();
    },
  };
}

function refuseMissing(wanted: ReadonlyMap<string, unknown>, where: string, type: string): void {
  const [first, ...others] = wanted.keys();
  if (first === undefined) return;
  const more = others.length > 0 ? ` and ${others.length} more` : "";
  fail(
    "invalid-model",
    `${where}: by config.json a ${type} model has a tensor ${quoted(first)}${more}; the files have not.`,
  );
}

/** Open and behind its header once more. A file that was replaced meanwhile would be read by another's plan. */
async function reopen(folder: Folder, { file, tensors }: Shard, signal: AbortSignal | undefined): Promise<ByteReader> {
  const reader = await mustOpen(folder.file(file), signal);
  try {
    const entries = await readHeader(reader);
    if (JSON.stringify(entries) === JSON.stringify(tensors.map(({ entry }) => entry))) return reader;
    return fail("invalid-model", `${file} has changed while it was being read.`);
  } catch (error) {
    await reader.close();
    throw error;
  }
}

async function pourShard(
  reader: ByteReader,
  { file, tensors }: Shard,
  settings: DecoderSettings,
  ...[sink, tally]: Parameters<OpenedModel["pour"]>
): Promise<void> {
  for (const { entry, wanted } of tensors) {
    if (wanted) {
      await pourTensor(reader, wanted, entry.dtype as FloatType, settings, sink, tally);
    } else {
      await reader.skip(entry.end - entry.begin);
      await tally(reader.name, entry.end - entry.begin);
    }
  }
  if ((await reader.next(1)).length > 0) fail("invalid-model", `${file} goes on after its last tensor.`);
}

function checkTensor({ name, dtype, dims }: TensorEntry, { dims: expected }: WantedTensor, file: string): void {
  if (shape(dims) !== shape(expected))
    fail("invalid-model", `${file}: ${quoted(name)} is ${shape(dims)}; by config.json it must be ${shape(expected)}.`);
  if (!(dtype in FLOAT_BYTES))
    fail("model-unknown", `${file}: ${quoted(name)} is of type ${dtype}; accepted are ${FLOAT_TYPES.join(", ")}.`);
}

function unknownTensor(
  { name }: TensorEntry,
  wanted: ReadonlyMap<string, unknown>,
  shards: readonly Shard[],
  file: string,
  type: string,
): never {
  const known = shards.find(({ tensors }) => tensors.some(({ entry }) => entry.name === name));
  if (known) fail("invalid-model", `${file}: ${quoted(name)} is in ${known.file} already.`);
  const near = nearest(name, [...wanted.keys()]);
  const hint = near === undefined ? "" : ` The nearest that it has is '${near}'.`;
  return fail("invalid-model", `${file}: by config.json a ${type} model has no tensor ${quoted(name)}.${hint}`);
}

/** One file, or those that the index names. */
async function weightFiles(folder: Folder, signal: AbortSignal | undefined): Promise<string[]> {
  const index = await folder.file(INDEX).open(signal);
  if (!index) return [SINGLE];
  const map = (await readJson(index)).weight_map;
  const files = kindOf(map) === "Object" ? [...new Set(Object.values(map as object))] : [];
  if (files.length === 0) refuse("invalid-model", `${INDEX}: weight_map`, "an object of tensor names and files", map);
  for (const file of files) {
    // Of this folder, and nothing else of the machine.
    if (typeof file !== "string" || !/^[\w.-]+\.safetensors$/.test(file))
      refuse("invalid-model", `${INDEX}: each file of weight_map`, "the name of a .safetensors file beside it", file);
  }
  return (files as string[]).sort();
}

function readEndIds(value: unknown, vocabSize: number): number[] {
  const ids = Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
  const isId = (id: unknown) => Number.isInteger(id) && (id as number) >= 0;
  if (!ids.every(isId)) refuse("invalid-model", "eos_token_id", "a token or a list of tokens", value);
  return ids.filter((id: number) => id < vocabSize);
}
