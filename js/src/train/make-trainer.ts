/** lb.trainer(): from a config, or from a checkpoint, to a trainer with everything in its place. */
import { fail } from "../errors.js";
import type { Heap } from "../heap.js";
import { Decoder } from "../model/decoder.js";
import { makeJsonTokenizer } from "../model/tokenizer-json.js";
import { type Engine, engineText, isSameEngine, type OpenedCheckpoint, openCheckpoint } from "./checkpoint.js";
import { completeConfig, continueConfig, type GivenConfig, isSplit, readGiven } from "./config.js";
import { TrainerCore } from "./core.js";
import { encodeDocuments, fingerprint, refuseShort } from "./data.js";
import { initialise } from "./initial.js";
import { settingsOf } from "./model-files.js";
import { readText, type SplitText } from "./text.js";
import { type MadeTokenizer, makeTokenizer } from "./tokenizer-files.js";
import { type Prepared, RunningTrainer } from "./trainer.js";
import type { FullTrainerConfig, Trainer } from "./types.js";

export async function makeTrainer(heap: Heap, engine: Engine, given: unknown): Promise<Trainer> {
  heap.raw; // throws where the instance is disposed
  const options = readGiven(given);
  if (options.checkpoint !== undefined) return resume(heap, engine, options, await openCheckpoint(options.checkpoint));
  const share = options.validation ?? (isSplit(options.text) ? 0 : 0.05);
  const text = readText(options.text, share, "trainer: text");
  const config = completeConfig(options, firstWord(text.train[0]!));
  // The characters of both parts, for none shall be unknown; merges are learnt from what is trained on.
  const known = config.tokenizer === "characters" ? [...text.train, ...text.validation] : text.train;
  const prepared = await prepare(config, text, makeTokenizer(config.tokenizer, known, text.separated));
  return allocate(heap, engine, prepared, 0, (decoder) => initialise(decoder, config.seed));
}

async function resume(
  heap: Heap,
  engine: Engine,
  options: GivenConfig,
  { state, pour }: OpenedCheckpoint,
): Promise<Trainer> {
  if (!isSameEngine(state, engine) && !options.otherEngine)
    fail(
      "checkpoint-mismatch",
      `trainer: the checkpoint was saved by ${engineText(state.engine!)}; this instance is ${engineText(engine)}, which goes on to other bits. ` +
        `Create it with variant: '${state.engine!.variant}', or allow this with otherEngine: true.`,
    );
  const saved = completeConfig(readGiven({ ...state.config, text: options.text }), state.config.samplePrompt);
  const config = continueConfig(saved, options);
  const text = readText(options.text, config.validation, "trainer: text");
  const prepared = await prepare(config, text, state.tokenizer);
  if (prepared.fingerprint !== state.fingerprint)
    fail(
      "checkpoint-mismatch",
      `trainer: the checkpoint was made with another text: ${state.trainTokens} tokens to train on and ${state.validationTokens} kept back ` +
        `(fingerprint ${state.fingerprint}); this one gives ${prepared.train.ids.length} and ${prepared.validation.ids.length} (${prepared.fingerprint}).`,
    );
  return allocate(heap, engine, prepared, state.step, (decoder, core) =>
    pour(decoder.settings, (place, values) => core.write(place, values)),
  );
}

/** What a text begins with: something that a sample can continue. */
const firstWord = (text: string): string => /^\s*\S{1,20}/u.exec(text)?.[0] ?? text.slice(0, 1);

async function prepare(config: FullTrainerConfig, text: SplitText, made: MadeTokenizer): Promise<Prepared> {
  const tokenizer = await makeJsonTokenizer(made.json, made.config, "tokenizer.json");
  const train = encodeDocuments(text.train, tokenizer, made.endId);
  const validation =
    text.validation.length > 0
      ? encodeDocuments(text.validation, tokenizer, made.endId)
      : { ids: new Int32Array(0), characters: 0 };
  refuseShort(train, config.length, "the text to train on", "Give a longer text or a smaller length.");
  if (validation.ids.length > 0)
    refuseShort(validation, 1, "the text that is kept back", "Give a longer one, or validation: 0 for none.");
  return { config, tokenizer, made, train, validation, fingerprint: fingerprint(train.ids, validation.ids) };
}

async function allocate(
  heap: Heap,
  engine: Engine,
  prepared: Prepared,
  step: number,
  fill: (decoder: Decoder, core: TrainerCore) => Promise<void> | void,
): Promise<Trainer> {
  const { config, tokenizer } = prepared;
  const decoder = new Decoder(heap, settingsOf(config, tokenizer.size));
  let core: TrainerCore | undefined;
  try {
    core = new TrainerCore(decoder, { batch: config.batch, length: config.length });
    await fill(decoder, core);
    return new RunningTrainer(engine, prepared, decoder, core, step);
  } catch (error) {
    core?.dispose();
    decoder.dispose();
    throw error;
  }
}
