/** Runs `lookback train`: progress to stderr, samples to stdout, everything else into the folder. */
import { readFile } from "node:fs/promises";
import { Presets, SingleBar } from "cli-progress";
import type { Trainer, TrainerConfig, TrainingStep } from "../node.js";
import { openCheckpoint } from "../train/checkpoint.js";
import { grouped, printable } from "./printable.js";
import { detectTerminal } from "./terminal.js";
import { TrainingFolder } from "./train-folder.js";
import { type Launch, openEngine, type Remembered, settle } from "./train-launch.js";

export async function train(launch: Launch): Promise<void> {
  const folder = new TrainingFolder(launch.out);
  if (!launch.resume && folder.hasCheckpoint)
    throw new Error(`${launch.out} holds the checkpoint of a run: go on with --resume, or name another folder.`);
  const checkpoint = launch.resume ? folder.readCheckpoint() : undefined;
  const told = settle(launch, launch.resume ? folder.readRemembered() : undefined);
  const documents = await Promise.all(told.corpus.map(readText));
  const text = told.heldOut === undefined ? documents : { train: documents, validation: await readText(told.heldOut) };
  const state = checkpoint && (await openCheckpoint(checkpoint)).state;
  const controller = new AbortController();
  const stop = () => controller.abort();
  process.once("SIGINT", stop);
  const lb = await openEngine(launch, told.threads, state);
  try {
    // An engine that is not the checkpoint's has been chosen.
    const config = { ...launch.config, ...(checkpoint && { checkpoint, otherEngine: true }), text };
    const trainer = await lb.trainer(config as TrainerConfig);
    await new Run(launch, told, folder, trainer, controller.signal).toTheEnd();
  } finally {
    process.removeListener("SIGINT", stop);
    lb.dispose();
  }
}

async function readText(path: string): Promise<string> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    // On resumption nobody may have named it in this call.
    throw new Error(
      `the text ${path} cannot be read in ${process.cwd()} (${error.message}); name it as it is called here.`,
      {
        cause: error,
      },
    );
  });
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new Error(`${path} is not UTF-8: convert it first (iconv -t UTF-8).`, { cause: error });
  }
}

class Run {
  readonly #launch: Launch;
  readonly #told: Remembered;
  readonly #folder: TrainingFolder;
  readonly #trainer: Trainer;
  readonly #signal: AbortSignal;
  readonly #progress: Progress;
  #saved: number;

  constructor(launch: Launch, told: Remembered, folder: TrainingFolder, trainer: Trainer, signal: AbortSignal) {
    this.#launch = launch;
    this.#told = told;
    this.#folder = folder;
    this.#trainer = trainer;
    this.#signal = signal;
    this.#progress = new Progress(trainer);
    this.#saved = trainer.step;
  }

  async toTheEnd(): Promise<void> {
    await this.#folder.begin(this.#trainer.step, this.#told);
    this.#progress.begin();
    let last: TrainingStep | undefined;
    let validation: TrainingStep["validation"];
    const { keep, saveEvery } = this.#told;
    let kept = false;
    try {
      for await (const step of this.#trainer.run({ signal: this.#signal })) {
        last = step;
        validation = step.validation ?? validation;
        const isBest = await this.#folder.record(step);
        this.#progress.show(step);
        if (step.sample !== undefined && !this.#launch.json) this.#progress.print(sampleText(step));
        if (isBest && keep === "best") {
          await this.#export();
          kept = true;
        }
        if (saveEvery > 0 && step.step % saveEvery === 0) await this.#save();
      }
    } catch (error) {
      this.#progress.end();
      if (this.#signal.aborted) await this.#interrupted();
      throw error;
    }
    this.#progress.end();
    await this.#save();
    const isWritten = keep === "best" && (kept || this.#folder.lowest < Number.POSITIVE_INFINITY);
    if (!isWritten) await this.#export();
    this.#conclude(last, validation);
  }

  async #save(): Promise<void> {
    await this.#folder.save(await this.#trainer.save());
    this.#saved = this.#trainer.step;
  }

  async #export(): Promise<void> {
    await this.#folder.writeModel(await this.#trainer.export({ dtype: this.#told.dtype }));
  }

  async #interrupted(): Promise<void> {
    if (this.#trainer.step > this.#saved || !this.#folder.hasCheckpoint) await this.#save();
    const again = printable(`lookback train --resume --out ${quoted(this.#launch.out)}`);
    console.error(`Saved after step ${this.#trainer.step} of ${this.#trainer.config.steps}. Go on with: ${again}`);
  }

  #conclude(last: TrainingStep | undefined, validation: TrainingStep["validation"]): void {
    const { out, json } = this.#launch;
    const { keep } = this.#told;
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
