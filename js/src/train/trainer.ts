import { fail, refuse } from "../errors.js";
import { breathe } from "../model/breath.js";
import type { Decoder } from "../model/decoder.js";
import { LoadedModel } from "../model/model.js";
import { readSignal } from "../model/requests.js";
import { parameterCount } from "../model/slots.js";
import type { TextTokenizer } from "../model/tokenizer.js";
import type { Attended, Generation, ModelConfig } from "../model/types.js";
import { flag, later, oneOf, positiveInteger, readOptions } from "../options.js";
import { DISPOSE } from "../owned.js";
import { VERSION } from "../version.js";
import { type Engine, type RunState, writeCheckpoint } from "./checkpoint.js";
import { diverged, type TrainerCore } from "./core.js";
import { coveringWindows, encodeDocuments, refuseShort, sampleWindows, type TokenPart, windowBatch } from "./data.js";
import { exportFiles } from "./export.js";
import { halvesOf, hash32 } from "./random.js";
import { learningRateOf } from "./schedule.js";
import type { MadeTokenizer } from "./tokenizer-files.js";
import type {
  EvaluateOptions,
  Evaluation,
  FullTrainerConfig,
  RunOptions,
  Trainer,
  TrainingData,
  TrainingStep,
} from "./types.js";

const RUN = { signal: readSignal, onProgress: readCallback };
const EVALUATE = {
  mask: flag,
  on: later<NonNullable<EvaluateOptions["on"]>>(),
  stride: positiveInteger,
  windows: positiveInteger,
  signal: readSignal,
};
const EXPORT = { dtype: oneOf("f16", "f32") };
const EPSILON = 1e-8;
/** Tells dropout's numbers from those of windows. */
const DROPOUT_DRAWS = 0x64726f70;
const SAMPLE = { temperature: 0.8, topK: 40, seed: 1 };

/** What a run works with, whether it begins or goes on. */
export interface Prepared {
  readonly config: FullTrainerConfig;
  readonly tokenizer: TextTokenizer;
  readonly made: MadeTokenizer;
  readonly train: TokenPart;
  readonly validation: TokenPart;
  readonly fingerprint: string;
}

export class RunningTrainer implements Trainer {
  readonly config: FullTrainerConfig;
  readonly parameters: number;
  readonly data: TrainingData;
  readonly #engine: Required<RunState>["engine"];
  readonly #prepared: Prepared;
  readonly #decoder: Decoder;
  readonly #core: TrainerCore;
  readonly #model: LoadedModel;
  #step = 0;
  #busy = false;

  /** Takes decoder and core over. */
  constructor({ variant, fused }: Engine, prepared: Prepared, decoder: Decoder, core: TrainerCore, step: number) {
    const { config, train, validation, fingerprint, tokenizer, made } = prepared;
    this.config = config;
    this.#engine = { variant, fused, version: VERSION };
    this.#prepared = prepared;
    this.#decoder = decoder;
    this.#core = core;
    this.#step = step;
    this.parameters = parameterCount(decoder.settings);
    this.data = Object.freeze({
      trainTokens: train.ids.length,
      trainCharacters: train.characters,
      validationTokens: validation.ids.length,
      validationCharacters: validation.characters,
      fingerprint,
    });
    this.#model = new LoadedModel(decoder, {
      name: "the model in training",
      family: config.model.family,
      settings: decoder.settings,
      tokenizer,
      endIds: made.endId === undefined ? [] : [made.endId],
    });
  }

  get model(): ModelConfig {
    return this.#model.config;
  }

  get step(): number {
    return this.#step;
  }

  get disposed(): boolean {
    return this.#core.disposed;
  }

  async *run(given?: unknown): AsyncGenerator<TrainingStep, void, undefined> {
    const options = readOptions(given, RUN, "run") as RunOptions;
    while (this.#step < this.config.steps) {
      const step = await this.#alone("run", () => this.#makeStep(options));
      yield step;
    }
  }

  evaluate(given?: unknown): Promise<Evaluation> {
    return this.#alone("evaluate", () => this.#evaluate(readOptions(given, EVALUATE, "evaluate") as EvaluateOptions));
  }

  generate(prompt: unknown, options?: unknown): Generation {
    return this.#model.generate(prompt, options);
  }

  attend(text: unknown, options?: unknown): Attended {
    return this.#model.attend(text, options);
  }

  async save(): Promise<Uint8Array<ArrayBuffer>> {
    this.#core.block();
    const { config, made, fingerprint } = this.#prepared;
    const { trainTokens, validationTokens } = this.data;
    const data = { fingerprint, trainTokens, validationTokens };
    const state: RunState = { config, step: this.#step, tokenizer: made, ...data, engine: this.#engine };
    return writeCheckpoint(state, this.#decoder.settings, (place) => this.#core.read(place));
  }

  async export(given?: unknown): Promise<File[]> {
    const { dtype = "f16" } = readOptions(given, EXPORT, "export");
    this.#core.block();
    const { config, made: tokenizer } = this.#prepared;
    const { settings } = this.#decoder;
    return exportFiles({ config, settings, tokenizer, read: (place) => this.#core.read(place) }, dtype);
  }

  dispose(): void {
    this.#core.dispose();
    this.#decoder.dispose();
  }

  [DISPOSE](): void {
    this.dispose();
  }

  /** One thing at a time: what runs between the micro-batches of a step would see half of it. */
  async #alone<T>(what: string, work: () => Promise<T>): Promise<T> {
    this.#core.block();
    if (this.#busy)
      fail("trainer-busy", `${what}: a step or an evaluation of this trainer has not ended; await it first.`);
    this.#busy = true;
    try {
      return await work();
    } finally {
      this.#busy = false;
    }
  }

  async #makeStep({ signal, onProgress }: RunOptions): Promise<TrainingStep> {
    const { config } = this;
    const { batch, length, accumulate, seed, mask, dropout, steps } = config;
    const { train } = this.#prepared;
    const step = this.#step + 1;
    const learningRate = learningRateOf(step, config);
    const gradientScale = 1 / (accumulate * batch * length);
    const begun = performance.now();
    let sum = 0;
    let gradientNorm: number;
    try {
      for (let micro = 0; micro < accumulate; micro++) {
        await breathe();
        signal?.throwIfAborted();
        const windows = sampleWindows(train, config, { seed, step, micro });
        const place = [...halvesOf(seed), step, micro];
        const dropoutSeed = [hash32(DROPOUT_DRAWS, ...place), hash32(DROPOUT_DRAWS + 1, ...place)] as const;
        sum += this.#core.accumulate({ ...windows, causal: mask, gradientScale, dropout, dropoutSeed });
        if (!Number.isFinite(sum)) diverged(`the loss of step ${step} is ${sum}`);
        const fraction = (step - 1 + (micro + 1) / accumulate) / steps;
        onProgress?.({ step, steps, fraction });
      }
      const { beta1, beta2, weightDecay, clip } = config;
      const update = { step, learningRate, beta1, beta2, epsilon: EPSILON, weightDecay, maxNorm: clip };
      gradientNorm = this.#core.update(update);
    } catch (error) {
      if (!this.disposed) this.#core.zeroGradients();
      throw error;
    }
    this.#step = step;
    const tokensPerSecond = (1000 * accumulate * batch * length) / (performance.now() - begun);
    const made: TrainingStep = { step, loss: sum * gradientScale, gradientNorm, learningRate, tokensPerSecond };
    await this.#report(made, signal);
    return made;
  }

  /** What is due after a step. A signal that comes meanwhile ends the run at the next one: this one is made. */
  async #report(made: TrainingStep, signal: AbortSignal | undefined): Promise<void> {
    const { evaluateEvery, evaluateWindows, sampleEvery, samplePrompt, sampleTokens, steps } = this.config;
    const isDue = (every: number) => every > 0 && (made.step % every === 0 || made.step === steps);
    if (isDue(evaluateEvery) && this.data.validationTokens > 0 && !signal?.aborted)
      made.validation = await this.#evaluate({ windows: evaluateWindows });
    if (isDue(sampleEvery) && !signal?.aborted) {
      const maxTokens = Math.min(sampleTokens, this.config.model.contextLength);
      made.sample = samplePrompt + (await this.generate(samplePrompt, { ...SAMPLE, maxTokens }).text());
    }
  }

  async #evaluate({ mask = true, on = "validation", stride, windows, signal }: EvaluateOptions): Promise<Evaluation> {
    const { length, batch } = this.config;
    const part = this.#part(on);
    const step = stride ?? length;
    if (step > length) refuse("bad-option", "evaluate: stride", `at most the window, ${length}`, step);
    const covering = coveringWindows(part.ids.length, length, step, windows ?? Number.POSITIVE_INFINITY);
    let [sum, tokens] = [0, 0];
    for (let at = 0; at < covering.length; at += batch) {
      await breathe();
      signal?.throwIfAborted();
      const rows = windowBatch(part.ids, covering.slice(at, at + batch), { batch, length });
      sum += this.#core.evaluate(rows, mask);
      tokens += rows.targets.reduce((counted, target) => counted + (target >= 0 ? 1 : 0), 0);
    }
    const loss = sum / tokens;
    return { loss, bitsPerCharacter: ((loss / Math.LN2) * part.ids.length) / part.characters, tokens };
  }

  #part(on: unknown): TokenPart {
    const { train, validation, tokenizer, made } = this.#prepared;
    const what = on === "validation" ? "the validation text" : on === "train" ? "the training text" : "the text";
    const part = on === "validation" ? validation : on === "train" ? train : this.#encode(on, tokenizer, made);
    if (on === "validation" && part.ids.length === 0)
      fail("text-too-short", "evaluate: no text was kept back for validation; give another with on: { text }.");
    refuseShort(part, 1, what, "Give a longer one.");
    return part;
  }

  #encode(on: unknown, tokenizer: TextTokenizer, { endId }: MadeTokenizer): TokenPart {
    const accepted = "'validation', 'train' or { text }, a text that is not empty";
    const { text } = typeof on === "string" ? {} : readOptions(on, { text: later<unknown>() }, "evaluate: on");
    if (typeof text !== "string" || text === "") return refuse("bad-option", "evaluate: on", accepted, on);
    return encodeDocuments([text], tokenizer, endId);
  }
}

function readCallback(value: unknown, where: string): NonNullable<RunOptions["onProgress"]> {
  return typeof value === "function"
    ? (value as NonNullable<RunOptions["onProgress"]>)
    : refuse("bad-option", where, "a function", value);
}
