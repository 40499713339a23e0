import { fail, refuse } from "../errors.js";
import { heaps } from "../heap.js";
import { oneOf, type Reader, readOptions } from "../options.js";
import { breathe } from "./breath.js";
import { Decoder } from "./decoder.js";
import { LoadedModel } from "./model.js";
import { openFolder } from "./open-folder.js";
import { openLlama2c } from "./open-llama2c.js";
import type { OpenedModel } from "./opened.js";
import { GROUP } from "./pour.js";
import { readSignal } from "./requests.js";
import { type Files, openSource } from "./sources.js";
import type { LoadOptions, Model, WeightDtype } from "./types.js";

const readCallback: Reader<NonNullable<LoadOptions["onProgress"]>> = (value, where) =>
  typeof value === "function"
    ? (value as NonNullable<LoadOptions["onProgress"]>)
    : refuse("bad-option", where, "a function", value);
const OPTIONS = {
  dtype: oneOf<WeightDtype>("f32", "f16", "bf16", "int8"),
  signal: readSignal,
  onProgress: readCallback,
};

/** Reads the small files, checks that everything fits, makes the decoder, and fills it from the weights as they come. */
export async function loadOn(files: Files, lb: unknown, source: unknown, given: unknown): Promise<Model> {
  const heap = typeof lb === "object" && lb !== null ? heaps.get(lb) : undefined;
  if (!heap) refuse("bad-option", "loadDecoder: the first argument", "an instance of createLookback()", lb);
  heap.raw; // throws where the instance is disposed
  const { dtype = "f32", signal, onProgress } = readOptions(given, OPTIONS, "loadDecoder");
  const opened = await open(files, source, signal);
  let decoder: Decoder | undefined;
  try {
    const made = new Decoder(heap, opened.settings, { dtype, group: GROUP });
    decoder = made;
    await pour(opened, made, signal, onProgress);
    return new LoadedModel(made, opened) as unknown as Model;
  } catch (error) {
    decoder?.dispose();
    throw error;
  } finally {
    await opened.close();
  }
}

function open(files: Files, source: unknown, signal: AbortSignal | undefined): Promise<OpenedModel> {
  const opened = openSource(files, source);
  return "folder" in opened ? openFolder(opened.folder, signal) : openLlama2c(opened.weights, opened.tokenizer, signal);
}

async function pour(
  opened: OpenedModel,
  decoder: Decoder,
  signal: AbortSignal | undefined,
  onProgress: LoadOptions["onProgress"],
): Promise<void> {
  let loaded = 0;
  const total = opened.weightBytes;
  await opened.pour(decoder, async (file, bytes) => {
    loaded += bytes;
    onProgress?.({ file, loaded, total });
    signal?.throwIfAborted();
    await breathe();
  });
  const missing = decoder.missing();
  if (missing.length > 0) fail("core", `${opened.name}: ${missing[0]} was not written.`);
}
