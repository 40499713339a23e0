import { type Command, InvalidArgumentError, Option } from "commander";
import type { NewTrainerConfig, TrainerReports } from "../node.js";
import { count, decimal, positiveCount, positiveDecimal, share, text } from "./arguments.js";
import type { Launch, Remembered } from "./train-launch.js";
import { train } from "./train-run.js";

/** By the names that commander gives them. */
interface Options {
  readonly out: string;
  readonly resume?: boolean;
  readonly family?: "gpt2" | "llama";
  readonly layers?: number;
  readonly heads?: number;
  readonly kvHeads?: number;
  readonly embed?: number;
  readonly hidden?: number;
  readonly context?: number;
  readonly tokenizer?: NewTrainerConfig["tokenizer"];
  readonly steps?: number;
  readonly batch?: number;
  readonly accumulate?: number;
  readonly lr?: number;
  readonly minLr?: number;
  readonly warmup?: number;
  readonly weightDecay?: number;
  readonly clip?: number;
  readonly dropout?: number;
  readonly seed?: number;
  readonly validation?: number;
  readonly heldOut?: string;
  /** commander: true unless --no-mask. */
  readonly mask: boolean;
  readonly evaluateEvery?: number;
  readonly sampleEvery?: number;
  readonly prompt?: string;
  readonly saveEvery?: number;
  readonly keep?: "last" | "best";
  readonly dtype?: "f16" | "f32";
  readonly threads?: number | "auto";
  readonly variant: "auto" | "simd" | "relaxed";
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  $ lookback train moby-dick.txt --out whale
  $ lookback train poems.txt --out poems --layers 6 --embed 192 --heads 6 --tokenizer bpe:512 --steps 5000 --threads auto
  $ lookback train --resume --out whale
  $ lookback generate whale "Call me" --temperature 0.8

Ctrl-C saves a checkpoint; --resume goes on from it, to the same bits. The folder gets checkpoint.safetensors, run.json (what --resume need
not be told again), loss.csv and, at the end, a model that lookback generate and Hugging Face's transformers read.`;

function readTokenizer(given: string): NewTrainerConfig["tokenizer"] {
  if (given === "characters") return given;
  const [, size] = /^bpe:(\d+)$/.exec(given) ?? [];
  if (size !== undefined) return { bpe: Number(size) };
  throw new InvalidArgumentError("It must be characters, or bpe:512 (a byte-level BPE of so many tokens).");
}

const readThreads = (given: string): number | "auto" => (given === "auto" ? given : positiveCount(given));

export const addTrain = (program: Command): Command =>
  program
    .command("train")
    .description("train a small model on a text")
    .argument("[corpus...]", "text files (UTF-8); of several, each is a document; with --resume those of before")
    .requiredOption("-o, --out <folder>", "where everything is written", text)
    .option(
      "--resume",
      "go on from the folder's checkpoint, as it was told before; only --steps and options of reports and files may be others",
    )
    .addOption(new Option("--family <name>", "how the model is built (default: gpt2)").choices(["gpt2", "llama"]))
    .option("--layers <n>", "default: 4", positiveCount)
    .option("--heads <n>", "default: 4", positiveCount)
    .option("--kv-heads <n>", "llama only: heads for keys and values", positiveCount)
    .option("--embed <n>", "width, a multiple of the heads (default: 128)", positiveCount)
    .option("--hidden <n>", "width inside of the MLP", positiveCount)
    .option("--context <n>", "tokens that the model sees (default: 128)", positiveCount)
    .option("--tokenizer <kind>", "characters (the default), or bpe:512", readTokenizer)
    .option("--steps <n>", "default: 1000", positiveCount)
    .option("--batch <n>", "windows of a micro-batch (default: 16)", positiveCount)
    .option("--accumulate <n>", "micro-batches of a step (default: 1)", positiveCount)
    .option("--lr <x>", "highest learning rate (default: 0.001)", positiveDecimal)
    .option("--min-lr <x>", "that of the last step (default: a tenth)", decimal)
    .option("--warmup <n>", "steps in which it grows", count)
    .option("--weight-decay <x>", "default: 0.1", decimal)
    .option("--clip <x>", "longest gradient, 0 = any (default: 1)", decimal)
    .option("--dropout <p>", "default: 0", share)
    .option("--seed <n>", "the same seed, the same model (default: 1)", count)
    .option("--validation <share>", "of the text, kept back at its end (default: 0.05)", share)
    .option("--held-out <file>", "a text to keep back, in place of a share of the corpus", text)
    .option("--no-mask", "without the causal mask: an experiment")
    .option("--evaluate-every <n>", "steps between looks at what was kept back (default: 100)", count)
    .option("--sample-every <n>", "steps between samples, printed to stdout (default: 0 = none)", count)
    .option("--prompt <text>", "what samples continue", text)
    .option("--save-every <n>", "steps between checkpoints, 0 = at the end only (default: 500)", count)
    .addOption(
      new Option(
        "--keep <which>",
        "the model of the last step, or of the lowest validation loss (default: last)",
      ).choices(["last", "best"]),
    )
    .addOption(new Option("--dtype <type>", "what the model is written as (default: f16)").choices(["f16", "f32"]))
    .option("--threads <n>", "or auto; no bit depends on it (default: 1)", readThreads)
    .addOption(
      new Option("--variant <name>", "of the engine; bits depend on it, and auto resumes with the checkpoint's")
        .choices(["auto", "simd", "relaxed"])
        .default("auto"),
    )
    .option("--json", "print one JSON object at the end, and no samples")
    .addHelpText("after", EXAMPLES)
    .action((corpus: string[], options: Options, command: Command) => {
      if (corpus.length === 0 && !options.resume) command.error("error: missing required argument 'corpus'");
      return train(launchOf(corpus, options));
    });

function launchOf(corpus: string[], options: Options): Launch {
  const { family, layers, heads, kvHeads, embed: embedDim, hidden: hiddenDim, context: contextLength } = options;
  const model = { family, layers, heads, kvHeads, embedDim, hiddenDim, contextLength };
  const { tokenizer, batch, accumulate, lr: learningRate, minLr: minLearningRate, warmup, weightDecay, clip } = options;
  const { dropout, seed, validation, mask } = options;
  const learning = { tokenizer, batch, accumulate, learningRate, minLearningRate, warmup, weightDecay, clip };
  const { steps, evaluateEvery, sampleEvery, prompt: samplePrompt } = options;
  const reports: { [Name in keyof TrainerReports]: TrainerReports[Name] | undefined } = {
    ...{ steps, evaluateEvery, sampleEvery, samplePrompt },
  };
  const { heldOut, saveEvery, keep, dtype, threads } = options;
  const given: { [Name in keyof Remembered]: Remembered[Name] | undefined } = {
    ...{ corpus: corpus.length > 0 ? corpus : undefined, heldOut, saveEvery, keep, dtype, threads },
  };
  return {
    given,
    config: { model, ...learning, dropout, seed, validation, ...(!mask && { mask }), ...reports },
    ...{ out: options.out, resume: options.resume ?? false, variant: options.variant, json: options.json ?? false },
  };
}
