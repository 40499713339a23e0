/**
 * What `npm start` shows: a bundled model writes, token by token; heat maps of where the last words looked; and the stages of causal attention
 * for four tokens. Every number comes from the engine.
 */
import { parseArgs } from "node:util";
import { type HeadHabit, headHabits } from "../experiment/heads.js";
import { loadDecoder, type Model } from "../model/node.js";
import { BUNDLED, type BundledName } from "../models/bundled.js";
import { createLookback, masks } from "../node.js";
import type { Lookback, Tensor, WeightsKind } from "../types.js";
import { type Captions, captions, type Language, localeLanguage } from "./captions.js";
import { beside, heatMap, legend, type Matrix, numberTable, totalWidth } from "./heatmap.js";
import { label, printable } from "./printable.js";
import { isChinese, normalNumbers, WordWrap } from "./sentence.js";
import { abbreviate, detectTerminal, heading, type Terminal, widthOf, wrap } from "./terminal.js";

/** Tokens in a heat map: the last ones. */
const SHOWN = 12;
const EXAMPLE_SEED = 7;
const MODELS: Readonly<Record<Language, BundledName>> = { en: "english-prose", zh: "tang-verse" };

const USAGE = `Usage: npm start -- [--tokens N] [--seed N] [text]

A small model that comes with the package goes on with the text: in English, or, where the text is Chinese, as a Tang poem.
  --tokens N   new tokens at most (default 100)
  --seed N     another seed, another text (default 1)
  --help       this text`;

class UsageError extends Error {}

interface Request {
  readonly text: string | undefined;
  readonly tokens: number;
  readonly seed: number;
  readonly help: boolean;
}

function readArguments(args: readonly string[]): Request {
  let parsed: ReturnType<typeof parse>;
  const parse = () =>
    parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        tokens: { type: "string", default: "100" },
        seed: { type: "string", default: "1" },
        help: { type: "boolean", default: false, short: "h" },
      },
    });
  try {
    parsed = parse();
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  const { values, positionals } = parsed;
  const whole = (name: "tokens" | "seed", least: number): number => {
    const value = Number(values[name]);
    if (Number.isSafeInteger(value) && value >= least) return value;
    throw new UsageError(`--${name} takes a whole number ≥ ${least}, not '${values[name]}'`);
  };
  const text = positionals.length > 0 ? positionals.join(" ") : undefined;
  if (text?.trim() === "") throw new UsageError("the text is empty: give at least one word");
  return { text, tokens: whole("tokens", 1), seed: whole("seed", 0), help: values.help };
}

/** Four tokens through one head, every stage as the engine returns it. */
function example(lb: Lookback, text: Captions, terminal: Terminal): string[] {
  const next = normalNumbers(EXAMPLE_SEED);
  const random = (): Tensor => ({ data: Float32Array.from({ length: 16 }, () => 1.4 * next()), dims: [4, 4] });
  const [q, k, v] = [random(), random(), random()];
  const stage = (weights: WeightsKind) => lb.attention(q, k, v, { heads: 1, causal: true, weights }).weights!.data;
  const mask = masks.causal(4).toBias().data;
  const softmax = stage("softmax");

  const matrix = (title: string, values: Float32Array): Matrix => ({
    title,
    values,
    rows: text.exampleTokens,
    columns: text.exampleTokens,
  });
  const stages: [Matrix, { digits: number; weights?: boolean }][] = [
    [matrix(text.scores, stage("scores")), { digits: 2 }],
    [matrix(text.mask, mask), { digits: 0 }],
    [matrix(text.masked, stage("masked")), { digits: 2 }],
    [matrix(text.softmax, softmax), { digits: 2, weights: true }],
  ];
  // All four in one row share the labels of the first; where they do not fit, each has its own.
  const tables = (labelled: (at: number) => boolean) =>
    stages.map(([one, options], at) => numberTable(one, terminal, { ...options, labelled: labelled(at) }));
  const oneRow = tables((at) => at === 0);
  const blocks = totalWidth(oneRow) <= terminal.columns ? oneRow : tables(() => true);
  const future = Array.from(softmax).filter((_, at) => at % 4 > Math.floor(at / 4));
  const sums = [0, 1, 2, 3].map((row) => softmax.slice(4 * row, 4 * row + 4).reduce((sum, weight) => sum + weight, 0));
  return [
    heading(text.exampleTitle, terminal),
    ...wrap(text.exampleIntro, terminal.columns),
    "",
    ...beside(blocks, terminal.columns),
    "",
    ...wrap(text.exampleResult(Math.max(...future), sums.map((sum) => sum.toFixed(6)).join(" ")), terminal.columns),
  ];
}

/** Lets the model go on with the prompt, shows the text as it comes, and gives all of it. */
async function write(model: Model, prompt: string, { tokens, seed }: Request, terminal: Terminal): Promise<string> {
  const lines = new WordWrap(terminal.columns, widthOf);
  const show = (text: string) => void process.stdout.write(lines.push(printable(text)));
  show(prompt);
  let whole = prompt;
  const settings = { maxTokens: tokens, temperature: 0.6, topK: 20, seed };
  for await (const { text } of model.generate(prompt, settings)) {
    whole += text;
    show(text);
  }
  process.stdout.write(`${lines.end()}\n`);
  return whole;
}

/** Heat maps of the last words, for the head that looks most at the token before, and the one that looks most sharply at others still. */
function lastWords(model: Model, whole: string, text: Captions, terminal: Terminal): string[] {
  const ids = model.encode(whole).slice(-model.config.contextLength);
  const attended = model.attend(ids);
  const { tokens, weights } = attended;
  const habits = headHabits(attended);
  const most = (measure: (habit: HeadHabit) => number) => habits.reduce((a, b) => (measure(b) > measure(a) ? b : a));
  const neighbour = most(({ previous }) => previous);
  const far = most(({ self, previous, entropy }) => (1 - self - previous) * Math.exp(-entropy));
  const from = Math.max(0, ids.length - SHOWN);
  const names = tokens.slice(from).map(label);
  const map = ({ layer, head }: HeadHabit, habit: string): Matrix => {
    const { data, dims } = weights[layer]![head]!;
    const rows = names.map((_, row) =>
      Array.from(data.slice((from + row) * dims[1]! + from, (from + row + 1) * dims[1]!)),
    );
    const title = abbreviate(`${text.head(layer, head)}: ${habit}`, terminal.columns);
    return { title, values: rows.flat(), rows: names, columns: names };
  };
  const pair = [
    map(neighbour, text.looksBefore(Math.round(100 * neighbour.previous))),
    map(far, text.looksFar(far.distance.toFixed(1))),
  ];
  const half = Math.floor((terminal.columns - 3) / 2);
  const narrow = pair.some((one) => heatMap(one, terminal, half).width > half);
  return [
    heading(text.lastWordsTitle, terminal),
    ...wrap(text.lastWordsIntro(habits.length), terminal.columns),
    "",
    ...beside(
      pair.map((one) => heatMap(one, terminal, narrow ? terminal.columns : half)),
      terminal.columns,
    ),
    "",
    ...legend(text.legend, terminal),
  ];
}

async function main(): Promise<void> {
  const request = readArguments(process.argv.slice(2));
  if (request.help) return void console.log(USAGE);
  const terminal = detectTerminal();
  const language = request.text !== undefined && isChinese(request.text) ? "zh" : localeLanguage();
  // A text that is not Chinese is for the model that writes English, whatever the words around it.
  const name = MODELS[request.text !== undefined && !isChinese(request.text) ? "en" : language];
  const text = captions[language];
  const lb = await createLookback();
  try {
    const model = await loadDecoder(lb, BUNDLED[name]);
    const prompt = request.text ?? text.prompt;
    const [length, most] = [model.encode(prompt).length, model.config.contextLength];
    if (length >= most) throw new UsageError(`the text has ${length} tokens; the model sees at most ${most}`);
    const show = (lines: readonly string[]) => console.log(`${lines.join("\n")}\n`);
    show([
      ...wrap(`lookback · ${text.tagline}`, terminal.columns).map((line) => terminal.paint.bold(line)),
      ...wrap(text.engine(lb.variant, lb.fused), terminal.columns),
    ]);
    console.log(heading(text.writesTitle(name, model.inspect().parameters), terminal));
    const whole = await write(model, prompt, request, terminal);
    console.log("");
    show(lastWords(model, whole, text, terminal));
    show(example(lb, text, terminal));
    console.log(wrap(text.next, terminal.columns).join("\n"));
  } finally {
    lb.dispose();
  }
}

// A reader that has seen enough (`npm start | head`) is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

main().catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  console.error(error instanceof UsageError ? `${message}\n\n${USAGE}` : `lookback: ${message}`);
  process.exitCode = 1;
});
