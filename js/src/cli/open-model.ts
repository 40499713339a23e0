/** Loads the model that a command names, with a progress bar where somebody looks, and takes Ctrl-C for a wish to end. */
import { existsSync } from "node:fs";
import { Presets, SingleBar } from "cli-progress";
import { InvalidArgumentError, Option } from "commander";
import { loadDecoder, type Model, type ModelSource, type WeightDtype } from "../model/node.js";
import { BUNDLED, isBundled } from "../models/bundled.js";
import { createLookback } from "../node.js";

export interface ModelOptions {
  readonly tokenizer?: string;
  readonly dtype?: WeightDtype;
}

export const weightOption = (): Option =>
  new Option("--dtype <type>", "what the weights are kept as (default: f32)").choices(["f32", "f16", "bf16", "int8"]);

/** What a command works with. */
export interface Opened {
  readonly model: Model;
  /** Ctrl-C; a second one ends the process at once. */
  readonly signal: AbortSignal;
  /** Before work without a pause, in which a wish to end would not be heard: from now on Ctrl-C ends the process at once. */
  readonly letGo: () => void;
}

function sourceOf(model: string, tokenizer: string | undefined): ModelSource {
  // A URL may have a query behind it.
  const isFile = /\.bin$/i.test(model.replace(/^(https?:[^?#]*)[?#].*$/i, "$1"));
  if (isFile && tokenizer === undefined)
    throw new InvalidArgumentError(`${model} is a file of llama2.c: name its tokenizer with --tokenizer FILE.`);
  if (!isFile && tokenizer !== undefined)
    throw new InvalidArgumentError("--tokenizer belongs to a .bin file; a folder has its own tokenizer.json.");
  if (tokenizer !== undefined) return { weights: model, tokenizer };
  // A folder of that name is nearer.
  return isBundled(model) && !existsSync(model) ? BUNDLED[model] : model;
}

/** Runs `use` with the model; whatever happens, the memory is given back. */
export async function withModel(
  name: string,
  options: ModelOptions,
  use: (opened: Opened) => Promise<void>,
): Promise<void> {
  const source = sourceOf(name, options.tokenizer);
  const controller = new AbortController();
  const stop = () => controller.abort();
  const letGo = () => void process.removeListener("SIGINT", stop);
  process.once("SIGINT", stop);
  const lb = await createLookback();
  try {
    const { signal } = controller;
    await use({ model: await load(lb, source, options.dtype, signal), signal, letGo });
  } finally {
    letGo();
    lb.dispose();
  }
}

async function load(
  lb: Awaited<ReturnType<typeof createLookback>>,
  source: ModelSource,
  dtype: WeightDtype | undefined,
  signal: AbortSignal,
): Promise<Model> {
  const bar = new SingleBar(
    {
      // The percents are worth more than the bar.
      barsize: Math.min(40, Math.max(4, (process.stderr.columns || 80) - 32)),
      format: "loading {bar} {percentage}% {file}",
      clearOnComplete: true,
      hideCursor: true,
      stream: process.stderr,
    },
    Presets.shades_classic,
  );
  try {
    return await loadDecoder(lb, source, {
      ...(dtype && { dtype }),
      signal,
      onProgress: ({ file, loaded, total }) => {
        if (!process.stderr.isTTY) return;
        if (bar.isActive) bar.update(loaded, { file });
        else bar.start(total, loaded, { file });
      },
    });
  } finally {
    bar.stop();
  }
}
