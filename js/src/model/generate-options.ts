import { fail, kindOf, refuse } from "../errors.js";
import { count, flag, integer, later, number, type Reader, readOptions } from "../options.js";
import type { Decoder } from "./decoder.js";
import { OwnedModelCache } from "./model-cache.js";
import { type Chosen, readChosen, readSignal } from "./requests.js";
import type { DecoderSession } from "./session.js";
import type { CacheDtype, GenerateOptions } from "./types.js";

const GENERATE = {
  maxTokens: number(
    "an integer ≥ 1, or Infinity for no limit",
    (n) => n === Infinity || (Number.isSafeInteger(n) && n >= 1),
  ),
  temperature: single("of at least 0 (0 = the most probable token)", (t) => t >= 0),
  topK: count,
  topP: single("above 0 and at most 1", (p) => p > 0 && p <= 1),
  minP: single("from 0 to 1", (p) => p >= 0 && p <= 1),
  repetitionPenalty: single("above 0 (1 = none)", (r) => r > 0),
  seed: readSeeds,
  stop: readStops,
  weights: later<unknown>(),
  candidates: count,
  entropy: flag,
  cache: later<unknown>(),
  signal: readSignal,
};
const MAX_TOKENS = 256;

/** The options of generate() with their defaults. */
export interface GenerationPlan {
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
  readonly repetitionPenalty: number;
  /** One per row. */
  readonly seeds: readonly number[];
  readonly stops: readonly string[];
  readonly weights: Chosen | undefined;
  readonly candidates: number;
  readonly entropy: boolean;
  readonly dtype: CacheDtype;
  /** A cache that goes on. */
  readonly session: DecoderSession | undefined;
  readonly signal: AbortSignal | undefined;
}

export function planGeneration(given: GenerateOptions | unknown, decoder: Decoder, batch: number): GenerationPlan {
  const options = readOptions(given, GENERATE, "generate");
  const { topK = 0, topP = 1, minP = 0, cache = "f32", seed } = options;
  // Who narrows or seeds the choice wants one.
  const chooses = [options.topK, options.topP, options.minP, seed].some((option) => option !== undefined);
  const { vocabSize } = decoder.settings;
  const { candidates = 0 } = options;
  if (candidates > vocabSize)
    refuse("bad-option", "generate: candidates", `an integer from 0 to ${vocabSize} (the vocabulary)`, candidates);
  const drawn = seed ?? [Math.floor(Math.random() * 2 ** 32)];
  if (drawn.length !== 1 && drawn.length !== batch)
    fail("bad-option", `generate: seed: ${drawn.length} seeds for ${batch} prompts; give one, or one per prompt.`);
  return {
    maxTokens: options.maxTokens ?? MAX_TOKENS,
    temperature: options.temperature ?? (chooses ? 1 : 0),
    topK,
    topP,
    minP,
    repetitionPenalty: options.repetitionPenalty ?? 1,
    seeds: Array.from({ length: batch }, (_, row) => drawn[drawn.length === 1 ? 0 : row]!),
    stops: options.stop ?? [],
    weights:
      options.weights === undefined ? undefined : readChosen(options.weights, decoder.settings, "generate: weights"),
    candidates,
    entropy: options.entropy ?? false,
    dtype: cache === "int8" ? cache : "f32",
    session: cache === "f32" || cache === "int8" ? undefined : OwnedModelCache.read(cache, decoder, batch),
    signal: options.signal,
  };
}

/** The core computes with float32, where very small numbers are 0 and very large ones infinite. */
function single(accepted: string, accepts: (value: number) => boolean): Reader<number> {
  const fits = (value: number) => Number.isFinite(Math.fround(value)) && accepts(Math.fround(value));
  return number(`a float32 number ${accepted}`, fits);
}

function readSeeds(value: unknown, where: string): number[] {
  if (!Array.isArray(value)) return [integer(value, where)];
  return value.map((one, row) => integer(one, `${where}[${row}]`));
}

function readStops(value: unknown, where: string): string[] {
  const list = Array.isArray(value) ? value : [value];
  const isText = (stop: unknown) => kindOf(stop) === "String" && stop !== "";
  return list.every(isText)
    ? list
    : refuse("bad-option", where, "a text or a list of texts, none of them empty", value);
}
