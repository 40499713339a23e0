/** Runs `lookback train`: progress to stderr, samples to stdout, everything else into the folder. */
import { readFile } from "node:fs/promises";
import { Presets, SingleBar } from "cli-progress";
import { createLookback, type Trainer, type TrainerConfig, type TrainingStep } from "../node.js";
import { grouped, printable } from "./printable.js";
import { detectTerminal } from "./terminal.js";
import { TrainingFolder } from "./train-folder.js";

/** What the command line asks for; an option that was not given is undefined. */
export interface Launch {
  readonly corpus: readonly string[];
  readonly heldOut: string | undefined;
  readonly config: object;
  readonly out: string;
  readonly resume: boolean;
  readonly saveEvery: number;
  readonly keep: "last" | "best";
  readonly dtype: "f16" | "f32";
  readonly threads: number | "auto";
  readonly variant: "auto" | "simd" | "relaxed";
  readonly json: boolean;
}

export async function train(launch: Launch): Promise<void> {
  const folder = new TrainingFolder(launch.out);
  if (!launch.resume && folder.hasCheckpoint)
    throw new Error(`${launch.out} holds the checkpoint of a run: go on with --resume, or name another folder.`);
  const checkpoint = launch.resume ? { checkpoint: folder.readCheckpoint() } : {};
  const documents = await Promise.all(launch.corpus.map(readText));
  const text =
    launch.heldOut === undefined ? documents : { train: documents, validation: await readText(launch.heldOut) };
  const controller = new AbortController();
  const stop = () => controller.abort();
  process.once("SIGINT", stop);
  const { threads, variant } = launch;
  const lb = await createLookback({ threads, variant });
  try {
    const config = { ...launch.config, ...checkpoint, text };
    const trainer = await lb.trainer(config as TrainerConfig);
    await new Run(launch, folder, trainer, controller.signal).toTheEnd();
  } finally {
    process.removeListener("SIGINT", stop);
    lb.dispose();
  }
}

async function readText(path: string): Promise<string> {
  const bytes = await readFile(path);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new Error(`${path} is not UTF-8: convert it first (iconv -t UTF-8).`, { cause: error });
  }
}

class Run {
  readonly #launch: Launch;
  readonly #folder: TrainingFolder;
  readonly #trainer: Trainer;
  readonly #signal: AbortSignal;
  readonly #progress: Progress;
  #saved: number;

  constructor(launch: Launch, folder: TrainingFolder, trainer: Trainer, signal: AbortSignal) {
    this.#launch = launch;
    this.#folder = folder;
    this.#trainer = trainer;
    this.#signal = signal;
    this.#progress = new Progress(trainer);
    this.#saved = trainer.step;
  }

  async toTheEnd(): Promise<void> {
    this.#folder.begin(this.#trainer.step);
    this.#progress.begin();
    let last: TrainingStep | undefined;
    let validation: TrainingStep["validation"];
    let kept = false;
    try {
      for await (const step of this.#trainer.run({ signal: this.#signal })) {
        last = step;
        validation = step.validation ?? validation;
        const isBest = await this.#folder.record(step);
        this.#progress.show(step);
        if (step.sample !== undefined && !this.#launch.json) this.#progress.print(sampleText(step));
        if (isBest && this.#launch.keep === "best") {
          await this.#export();
          kept = true;
        }
        if (this.#launch.saveEvery > 0 && step.step % this.#launch.saveEvery === 0) await this.#save();
      }
    } catch (error) {
      this.#progress.end();
      if (this.#signal.aborted) await this.#interrupted();
      throw error;
    }
    this.#progress.end();
    await this.#save();
    const isWritten = this.#launch.keep === "best" && (kept || this.#folder.lowest < Number.POSITIVE_INFINITY);
    if (!isWritten) await this.#export();
    this.#conclude(last, validation);
  }

  async #save(): Promise<void> {
    await this.#folder.save(await this.#trainer.save());
    this.#saved = this.#trainer.step;
  }

  async #export(): Promise<void> {
    await this.#folder.writeModel(await this.#trainer.export({ dtype: this.#launch.dtype }));
  }

  async #interrupted(): Promise<void> {
    if (this.#trainer.step > this.#saved || !this.#folder.hasCheckpoint) await this.#save();
    const { out, corpus, heldOut } = this.#launch;
    const kept = heldOut === undefined ? [] : ["--held-out", quoted(heldOut)];
    const again = ["lookback train", ...corpus.map(quoted), ...kept, "--out", quoted(out), "--resume"].join(" ");
    console.error(
      `Saved after step ${this.#trainer.step} of ${this.#trainer.config.steps}. Go on with: ${printable(again)}`,
    );
  }

  #conclude(last: TrainingStep | undefined, validation: TrainingStep["validation"]): void {
    const { out, json, keep } = this.#launch;
    const { step, parameters, data, model } = this.#trainer;
    const lowest = Number.isFinite(this.#folder.lowest) ? this.#folder.lowest : undefined;
    if (json) {
      const losses = { loss: last?.loss, validation, lowestValidation: lowest };
      console.log(JSON.stringify({ folder: out, steps: step, parameters, ...data, ...losses, kept: keep, model }));
      return;
    }
    const loss = last ? `loss ${last.loss.toFixed(4)}` : "no step was left";
    const held = validation
      ? `, validation ${validation.loss.toFixed(4)} (${validation.bitsPerCharacter.toFixed(3)} bits per character)`
      : "";
    const best =
      keep === "best" && lowest !== undefined ? `; the model is that of validation loss ${lowest.toFixed(4)}` : "";
    console.error(`Done after step ${step}: ${loss}${held}${best}.`);
    console.error(
      `Try it: lookback generate ${printable(quoted(out))} ${printable(quoted(this.#trainer.config.samplePrompt))} --temperature 0.8`,
    );
  }
}

const sampleText = ({ step, sample }: TrainingStep): string =>
  `--- step ${step}\n${process.stdout.isTTY ? printable(sample!) : sample}\n`;

/** A word as a shell takes it. */
const quoted = (word: string): string => (/^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`);

/** A bar where somebody looks; else a line whenever there is a validation loss. */
class Progress {
  readonly #trainer: Trainer;
  readonly #bar: SingleBar;
  readonly #shown = process.stderr.isTTY;
  /** Seconds per step, the last ones counting most. */
  #pace: number | undefined;
  #held = "";

  constructor(trainer: Trainer) {
    this.#trainer = trainer;
    this.#bar = new SingleBar(
      {
        barsize: Math.min(30, Math.max(4, (process.stderr.columns || 80) - 68)),
        format: "{bar} {value}/{total} {figures}",
        clearOnComplete: true,
        hideCursor: true,
        stream: process.stderr,
      },
      Presets.shades_classic,
    );
  }

  begin(): void {
    const { parameters, data, model, step } = this.#trainer;
    const kept = data.validationTokens > 0 ? `, ${grouped(data.validationTokens)} kept back` : "";
    const tokens = `${grouped(data.trainTokens)} tokens to learn from${kept}, a vocabulary of ${grouped(model.vocabSize)}`;
    console.error(
      detectTerminal().paint.dim(
        `${grouped(parameters)} parameters; ${tokens}${step > 0 ? `; from step ${step} on` : ""}`,
      ),
    );
    this.#start(step, "");
  }

  show({ step, loss, validation, tokensPerSecond }: TrainingStep): void {
    const { accumulate, batch, length, steps } = this.#trainer.config;
    const seconds = (accumulate * batch * length) / tokensPerSecond;
    this.#pace = this.#pace === undefined ? seconds : 0.95 * this.#pace + 0.05 * seconds;
    if (validation) this.#held = ` val ${validation.loss.toFixed(3)}`;
    const left = duration(this.#pace * (steps - step));
    const figures = `loss ${loss.toFixed(3)}${this.#held} ${grouped(Math.round(tokensPerSecond))} tok/s ${left} left`;
    if (this.#shown) this.#bar.update(step, { figures });
    else if (validation) console.error(`step ${step}/${steps} ${figures}`);
  }

  /** Something else, above the bar. */
  print(text: string): void {
    const value = this.#trainer.step;
    this.#bar.stop();
    process.stdout.write(text);
    this.#start(value, this.#held.trim());
  }

  end(): void {
    this.#bar.stop();
  }

  #start(value: number, figures: string): void {
    if (this.#shown) this.#bar.start(this.#trainer.config.steps, value, { figures });
  }
}

function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 100) return `${whole} s`;
  return whole < 6000 ? `${Math.round(whole / 60)} min` : `${(whole / 3600).toFixed(1)} h`;
}
