/**
 * What `npm start` shows: the stages of causal attention for four tokens, then for each sentence and head its weights as
 * heat maps, causal and unmasked. Every number comes from the engine.
 */
import { parseArgs } from "node:util";
import { createLookback, masks } from "../node.js";
import type { Lookback, Tensor, WeightsKind } from "../types.js";
import { type Captions, captions, localeLanguage } from "./captions.js";
import { beside, heatMap, legend, type Matrix, narrowestWidth, numberTable, totalWidth } from "./heatmap.js";
import { embed, isChinese, normalNumbers, randomLayer, tokenize } from "./sentence.js";
import { abbreviate, detectTerminal, heading, type Terminal, wrap } from "./terminal.js";

const HEAD_DIM = 16;
const MOST_HEADS = 16;
const MOST_TOKENS = 1024;
/** Of the sentence itself, above its maps. */
const MOST_LINES = 3;
const SEED = 7;

const USAGE = `Usage: npm start -- [--heads N] [sentence]

Shows causal and unmasked attention over the sentence as heat maps (default: one sentence in English, one in Chinese).
  --heads N   attention heads, 1 to ${MOST_HEADS} (default 2)
  --help      this text`;

class UsageError extends Error {}

interface Request {
  readonly sentences: readonly string[];
  readonly heads: number;
  readonly help: boolean;
}

function readArguments(args: readonly string[]): Request {
  let parsed: ReturnType<typeof parse>;
  const parse = () =>
    parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { heads: { type: "string", default: "2" }, help: { type: "boolean", default: false, short: "h" } },
    });
  try {
    parsed = parse();
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  const { values, positionals } = parsed;
  const heads = Number(values.heads);
  if (!Number.isInteger(heads) || heads < 1 || heads > MOST_HEADS)
    throw new UsageError(`--heads takes a whole number from 1 to ${MOST_HEADS}, not '${values.heads}'`);
  const sentences = positionals.length > 0 ? [positionals.join(" ")] : [captions.en.sentence, captions.zh.sentence];
  for (const sentence of sentences) {
    const count = tokenize(sentence).length;
    if (count === 0) throw new UsageError("the sentence is empty: give at least one word");
    if (count > MOST_TOKENS)
      throw new UsageError(`the sentence has ${count} tokens; at most ${MOST_TOKENS} can be shown`);
  }
  return { sentences, heads, help: values.help };
}

/** Four tokens through one head, every stage as the engine returns it. */
function example(lb: Lookback, text: Captions, terminal: Terminal): string[] {
  const next = normalNumbers(SEED);
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

/** One sentence through a multi-head layer, causal and unmasked, a pair of heat maps per head. */
function attend(lb: Lookback, sentence: string, heads: number, text: Captions, terminal: Terminal): string[] {
  const tokens = tokenize(sentence);
  const embedDim = heads * HEAD_DIM;
  const layer = lb.multiHeadAttention({ embedDim, heads });
  layer.load(randomLayer(embedDim, SEED));
  const x = embed(tokens, embedDim, SEED);
  const causal = layer.forward(x, { causal: true, weights: "softmax" }).weights!.data;
  const unmasked = layer.forward(x, { weights: "softmax" }).weights!.data;
  layer.dispose();

  const lines = [
    heading(text.sentenceTitle(tokens.length, heads), terminal),
    ...wrap(abbreviate(tokens.join(" "), MOST_LINES * terminal.columns - 20), terminal.columns),
  ];
  const area = tokens.length ** 2;
  for (let head = 0; head < heads; ++head) {
    const matrix = (values: Float32Array, kind: string): Matrix => ({
      title: `${text.head(head)} · ${kind}`,
      values: values.subarray(head * area, (head + 1) * area),
      rows: tokens,
      columns: tokens,
    });
    const pair = [matrix(causal, text.causal), matrix(unmasked, text.unmasked)];
    const half = Math.floor((terminal.columns - 3) / 2);
    const width = narrowestWidth(pair[0]!) <= half ? half : terminal.columns;
    lines.push(
      "",
      ...beside(
        pair.map((one) => heatMap(one, terminal, width)),
        terminal.columns,
      ),
    );
  }
  return lines;
}

async function main(): Promise<void> {
  const { sentences, heads, help } = readArguments(process.argv.slice(2));
  if (help) return void console.log(USAGE);
  const terminal = detectTerminal();
  const text = captions[sentences.length === 1 && isChinese(sentences[0]!) ? "zh" : localeLanguage()];
  const lb = await createLookback();
  try {
    const sections = [
      [
        ...wrap(`lookback · ${text.tagline}`, terminal.columns).map((line) => terminal.paint.bold(line)),
        ...wrap(text.engine(lb.variant, lb.fused), terminal.columns),
      ],
      example(lb, text, terminal),
      ...sentences.map((sentence) => attend(lb, sentence, heads, text, terminal)),
      [...legend(text.legend, terminal), ...wrap(text.untrained, terminal.columns), text.next],
    ];
    console.log(sections.map((lines) => lines.join("\n")).join("\n\n"));
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
