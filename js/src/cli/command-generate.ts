import { type Command, InvalidArgumentError, Option } from "commander";
import type { CacheDtype, GenerateOptions, GenerationStep, Model } from "../model/node.js";
import { collected, count, decimal, positiveCount, positiveDecimal, positiveShare, share } from "./arguments.js";
import { type ModelOptions, type Opened, weightOption, withModel } from "./open-model.js";
import { printable } from "./printable.js";
import { detectTerminal } from "./terminal.js";

interface Options extends ModelOptions {
  readonly maxTokens: number;
  readonly temperature?: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly minP?: number;
  readonly repetitionPenalty?: number;
  readonly seed?: number;
  readonly stop?: string[];
  readonly candidates?: number;
  readonly cache?: CacheDtype;
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  $ lookback generate ./SmolLM2-135M "Once upon a time"
  $ lookback generate stories.bin --tokenizer tok.bin "Once upon a time" --max-tokens 100
  $ lookback generate ./gpt2 "The answer is" --temperature 0.8 --top-p 0.95 --seed 1 --stop "."
  $ lookback generate ./gpt2 "To be or" --json --candidates 5`;

export const addGenerate = (program: Command): Command =>
  program
    .command("generate")
    .description("continue a prompt")
    .argument(
      "<model>",
      "a folder with config.json, a .bin file of llama2.c, a URL, or english-prose, tang-verse: they come with the package",
    )
    .argument("<prompt>", "the text to continue")
    .option("--tokenizer <file>", "the tokenizer of a .bin file")
    .addOption(weightOption())
    .option("-n, --max-tokens <n>", "new tokens at most", positiveCount, 256)
    .option("-t, --temperature <t>", "0 takes the most probable token (the default)", decimal)
    .option("--top-k <k>", "choose among the k most probable", count)
    .option("--top-p <p>", "… among the fewest whose probabilities reach p", positiveShare)
    .option("--min-p <p>", "… among those with p times the largest probability", share)
    .option("--repetition-penalty <r>", "above 1: repeat less", positiveDecimal)
    .option("--seed <n>", "the same seed, the same text", count)
    .option("--stop <text>", "end before this text; may be given several times", collected)
    .option("--candidates <n>", "with --json: the most probable tokens of each step, and its entropy", count)
    .addOption(new Option("--cache <type>", "how keys and values are remembered").choices(["f32", "int8"]))
    .option("--json", "print one JSON object")
    .addHelpText("after", EXAMPLES)
    .action((model: string, prompt: string, options: Options) => {
      if (options.candidates !== undefined && !options.json)
        throw new InvalidArgumentError("--candidates belongs to --json.");
      return withModel(model, options, (opened) => generate(opened, prompt, options));
    });

async function generate({ model, signal }: Opened, prompt: string, options: Options): Promise<void> {
  const { tokenizer: _t, dtype: _d, json, candidates, ...wanted } = options;
  const looked = json && candidates !== undefined ? { candidates, entropy: true } : {};
  const settings = { ...wanted, ...looked, signal } as GenerateOptions;
  if (json) return printJson(model, prompt, settings);
  const terminal = detectTerminal();
  const show = process.stdout.isTTY ? printable : (text: string) => text;
  const run = model.generate(prompt, settings);
  process.stdout.write(terminal.paint.dim(show(prompt)));
  try {
    for await (const { text } of run) process.stdout.write(show(text));
  } finally {
    process.stdout.write("\n");
    const { newTokens, tokensPerSecond } = run.stats;
    if (process.stderr.isTTY)
      process.stderr.write(`${terminal.paint.dim(`${newTokens} tokens, ${tokensPerSecond.toFixed(1)} per second`)}\n`);
  }
}

async function printJson(model: Model, prompt: string, options: GenerateOptions): Promise<void> {
  const run = model.generate(prompt, options);
  const steps: GenerationStep[] = [];
  for await (const step of run) steps.push(step);
  const result = {
    prompt,
    text: steps.map(({ text }) => text).join(""),
    promptIds: model.encode(prompt),
    ids: steps.map(({ id }) => id),
    finish: steps.at(-1)?.finish,
    stats: run.stats,
    ...(options.candidates !== undefined && {
      steps: steps.map(({ id, text, candidates, entropy }) => ({ id, text, entropy, candidates })),
    }),
  };
  console.log(JSON.stringify(result));
}
