/** Reads a trainer's options: every default, and every refusal that needs no text. */
import { fail, kindOf, refuse } from "../errors.js";
import {
  count,
  flag,
  integer,
  later,
  notNegative,
  number,
  oneOf,
  positive,
  positiveInteger,
  type Reader,
  readOptions,
} from "../options.js";
import { FEWEST_BPE, MOST_BPE, type TokenizerKind } from "./tokenizer-files.js";
import type { FullTrainerConfig, TrainerModelConfig, TrainerReports } from "./types.js";

const WHERE = "trainer";

const readTokenizer: Reader<TokenizerKind> = (value, where) => {
  if (value === "characters") return value;
  if (kindOf(value) !== "Object") return refuse("bad-option", where, "'characters' or { bpe: size }", value);
  const accepted = `an integer from ${FEWEST_BPE} (the bytes and one more) to ${MOST_BPE}`;
  const bpe = number(accepted, (n) => Number.isInteger(n) && n >= FEWEST_BPE && n <= MOST_BPE);
  const { bpe: size } = readOptions(value, { bpe }, where);
  return size === undefined ? refuse("bad-option", where, "'characters' or { bpe: size }", value) : { bpe: size };
};

const share = number("a number from 0 to below 1", (n) => n >= 0 && n < 1);
const text: Reader<string> = (value, where) =>
  typeof value === "string" && value !== "" ? value : refuse("bad-option", where, "a text that is not empty", value);

const MODEL = {
  family: oneOf("gpt2", "llama"),
  layers: positiveInteger,
  heads: positiveInteger,
  kvHeads: positiveInteger,
  embedDim: positiveInteger,
  hiddenDim: positiveInteger,
  contextLength: positiveInteger,
  tiedHead: flag,
};

/** What a continuation may name anew. */
const REPORTS = {
  steps: positiveInteger,
  evaluateEvery: count,
  evaluateWindows: positiveInteger,
  sampleEvery: count,
  samplePrompt: text,
  sampleTokens: positiveInteger,
};

const TABLE = {
  model: later<TrainerModelConfig>(),
  text: later<unknown>(),
  checkpoint: later<unknown>(),
  otherEngine: flag,
  tokenizer: readTokenizer,
  length: positiveInteger,
  batch: positiveInteger,
  accumulate: positiveInteger,
  learningRate: positive,
  minLearningRate: notNegative,
  warmup: count,
  weightDecay: notNegative,
  clip: notNegative,
  beta1: share,
  beta2: share,
  dropout: share,
  seed: integer,
  validation: share,
  mask: flag,
  ...REPORTS,
};

/** The options that were given, each of which fits by itself. */
export function readGiven(given: unknown) {
  const options = readOptions(given, TABLE, WHERE);
  if (options.text === undefined)
    fail(
      "bad-option",
      `${WHERE}: text is missing: what the model is to learn${options.checkpoint ? ", as it was when the checkpoint was saved" : ""}.`,
    );
  if (options.otherEngine !== undefined && options.checkpoint === undefined)
    fail("bad-option", `${WHERE}: otherEngine is about a checkpoint; there is none.`);
  return { ...options, model: readOptions(options.model, MODEL, `${WHERE}: model`) };
}

export type GivenConfig = ReturnType<typeof readGiven>;

/** Fills in the defaults, and refuses what does not go together. */
export function completeConfig(given: GivenConfig, samplePrompt: string): FullTrainerConfig {
  const model = completeModel(given.model);
  const { learningRate = 1e-3, steps = 1000, length = model.contextLength } = given;
  const config: FullTrainerConfig = {
    model,
    tokenizer: given.tokenizer ?? "characters",
    length,
    batch: given.batch ?? 16,
    accumulate: given.accumulate ?? 1,
    steps,
    learningRate,
    minLearningRate: given.minLearningRate ?? learningRate / 10,
    warmup: given.warmup ?? Math.min(100, Math.floor(steps / 10)),
    weightDecay: given.weightDecay ?? 0.1,
    clip: given.clip ?? 1,
    beta1: given.beta1 ?? 0.9,
    beta2: given.beta2 ?? 0.95,
    dropout: given.dropout ?? 0,
    seed: given.seed ?? 1,
    validation: given.validation ?? (isSplit(given.text) ? 0 : 0.05),
    mask: given.mask ?? true,
    evaluateEvery: given.evaluateEvery ?? 100,
    evaluateWindows: given.evaluateWindows ?? 64,
    sampleEvery: given.sampleEvery ?? 0,
    samplePrompt: given.samplePrompt ?? samplePrompt,
    sampleTokens: given.sampleTokens ?? 100,
  };
  if (length > model.contextLength)
    refuse("bad-option", `${WHERE}: length`, `at most the model's contextLength, ${model.contextLength}`, length);
  if (config.minLearningRate > learningRate)
    refuse("bad-option", `${WHERE}: minLearningRate`, `at most learningRate, ${learningRate}`, config.minLearningRate);
  if (config.validation > 0 && isSplit(given.text))
    fail("bad-option", `${WHERE}: validation is given twice: as a share, ${config.validation}, and as a text.`);
  return config;
}

export const isSplit = (text: unknown): boolean => kindOf(text) === "Object";

function completeModel(given: GivenConfig["model"]): FullTrainerConfig["model"] {
  const { family = "gpt2", heads = 4, embedDim = 128 } = given;
  const kvHeads = given.kvHeads ?? heads;
  if (embedDim % heads !== 0)
    fail("embed-dim-not-divisible", `${WHERE}: model: embedDim ${embedDim} is no multiple of ${heads} heads.`);
  if (heads % kvHeads !== 0)
    fail("kv-heads-not-divisor", `${WHERE}: model: ${kvHeads} kvHeads do not divide ${heads} heads.`);
  if (family === "gpt2" && kvHeads !== heads)
    fail(
      "bad-option",
      `${WHERE}: model: kvHeads ${kvHeads} needs family 'llama'; GPT-2 has as many as heads, ${heads}.`,
    );
  if (family === "llama" && (embedDim / heads) % 2 !== 0)
    fail(
      "bad-option",
      `${WHERE}: model: embedDim / heads is ${embedDim / heads}; rotary positions turn pairs: it must be even.`,
    );
  return {
    family,
    layers: given.layers ?? 4,
    heads,
    kvHeads,
    embedDim,
    hiddenDim: given.hiddenDim ?? (family === "llama" ? 8 * Math.ceil(embedDim / 3) : 4 * embedDim),
    contextLength: given.contextLength ?? 128,
    tiedHead: given.tiedHead ?? true,
  };
}

/** A saved config with what a continuation names anew; anything else that it names must be as it was. */
export function continueConfig(saved: FullTrainerConfig, given: GivenConfig): FullTrainerConfig {
  const { text: _text, checkpoint: _checkpoint, otherEngine: _otherEngine, model, ...options } = given;
  const check = (where: string, had: object, named: object) => {
    for (const [name, value] of Object.entries(named)) {
      const before = (had as Record<string, unknown>)[name];
      if (name in REPORTS || JSON.stringify(before) === JSON.stringify(value)) continue;
      fail(
        "checkpoint-mismatch",
        `${where}${name} was ${JSON.stringify(before)} when the checkpoint was saved, and is ${JSON.stringify(value)} now.`,
      );
    }
  };
  check(`${WHERE}: `, saved, options);
  check(`${WHERE}: model: `, saved.model, model);
  const reports: TrainerReports = {};
  for (const name of Object.keys(REPORTS) as (keyof TrainerReports)[])
    if (options[name] !== undefined) Object.assign(reports, { [name]: options[name] });
  return { ...saved, ...reports } as FullTrainerConfig;
}
