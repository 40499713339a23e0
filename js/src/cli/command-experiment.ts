import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { Presets, SingleBar } from "cli-progress";
import { type Command, Option } from "commander";
import { experimentHeads, HEAD_COUNTS } from "../experiment/heads.js";
import { experimentLeak } from "../experiment/leak.js";
import { lossChart, type Series } from "../experiment/plot.js";
import type { CurvePoint, ExperimentOptions } from "../experiment/shared.js";
import { createLookback, type Lookback } from "../node.js";
import { count, positiveCount, text } from "./arguments.js";
import { headsLines, leakLines } from "./experiment-lines.js";
import { detectTerminal, type Terminal } from "./terminal.js";

interface Options {
  readonly steps: number;
  readonly seed: number;
  readonly plot?: string;
  readonly threads: number | "auto";
  readonly variant: "auto" | "simd" | "relaxed";
  readonly json?: boolean;
}

/** Alice's Adventures in Wonderland (1865), in the public domain. */
const ALICE = fileURLToPath(new URL("../../js/models/alice.txt", import.meta.url));

const EXAMPLES = `
Examples:
  $ lookback experiment leak
  $ lookback experiment heads my-text.txt --steps 600 --plot heads.svg
  $ lookback experiment leak --json > leak.json`;

export function addExperiment(program: Command): Command {
  const command = program
    .command("experiment")
    .description("train small models to see what the mask and the heads do")
    .addHelpText("after", EXAMPLES);
  add(command, "leak", "with the causal mask and without: both losses, and what each model writes", 2, leak);
  add(command, "heads", "1, 2, 4 and 8 heads of equal width in all: the losses, and where each head looks", 4, heads);
  return command;
}

/** What an experiment found: as an object, for people, and its curves. */
interface Findings {
  readonly report: object;
  readonly lines: (terminal: Terminal) => string[];
  readonly title: string;
  readonly series: Series[];
}

type Experiment = (lb: Lookback, options: ExperimentOptions) => Promise<Findings>;

function add(program: Command, name: string, description: string, runs: number, experiment: Experiment): void {
  program
    .command(name)
    .description(description)
    .argument("[corpus]", "a text file (UTF-8); default: Alice's Adventures in Wonderland")
    .option("--steps <n>", "of each model", positiveCount, 400)
    .option("--seed <n>", "of weights, windows and texts", count, 1)
    .option("--plot <file>", "write the loss curves to an SVG file", text)
    .option(
      "--threads <n>",
      "or auto; no bit depends on it",
      (given) => (given === "auto" ? given : positiveCount(given)),
      1,
    )
    .addOption(new Option("--variant <name>", "of the engine").choices(["auto", "simd", "relaxed"]).default("auto"))
    .option("--json", "print one JSON object")
    .addHelpText("after", EXAMPLES)
    .exitOverride()
    .configureOutput({ outputError: () => {} })
    .action((corpus: string | undefined, options: Options) => conduct(experiment, corpus ?? ALICE, runs, options));
}

async function conduct(experiment: Experiment, corpus: string, runs: number, options: Options): Promise<void> {
  const { steps, seed, threads, variant } = options;
  const read = new TextDecoder("utf-8", { fatal: true }).decode(await readFile(corpus));
  const controller = new AbortController();
  const stop = () => controller.abort();
  process.once("SIGINT", stop);
  const bar = new SingleBar(
    {
      format: "{bar} {run}, step {step}",
      clearOnComplete: true,
      hideCursor: true,
      stream: process.stderr,
      barsize: 30,
    },
    Presets.shades_classic,
  );
  const lb = await createLookback({ threads, variant });
  let made = 0;
  const onProgress = (run: string, step: number) => {
    if (!process.stderr.isTTY) return;
    if (!bar.isActive) bar.start(runs * steps, 0, { run, step });
    bar.update(++made, { run, step });
  };
  try {
    const found = await experiment(lb, { text: read, steps, seed, signal: controller.signal, onProgress });
    bar.stop();
    if (options.plot !== undefined) await writeFile(options.plot, lossChart(found.title, found.series));
    if (options.json) console.log(JSON.stringify(found.report));
    else console.log(found.lines(detectTerminal()).join("\n"));
  } finally {
    bar.stop();
    process.removeListener("SIGINT", stop);
    lb.dispose();
  }
}

const training = (curve: readonly CurvePoint[]): (readonly [number, number])[] =>
  curve.map(({ step, loss }) => [step, loss] as const);
const validation = (curve: readonly CurvePoint[]): (readonly [number, number])[] =>
  curve.flatMap(({ step, validation: held }) => (held === undefined ? [] : [[step, held] as const]));

async function leak(lb: Lookback, options: ExperimentOptions): Promise<Findings> {
  const report = await experimentLeak(lb, options);
  const series = report.runs.flatMap(({ mask, curve }, color): Series[] => {
    const name = mask ? "masked" : "no mask";
    return [
      { name: `${name}: training`, points: training(curve), color },
      { name: `${name}: validation`, points: validation(curve), color, dashed: true },
    ];
  });
  return {
    report,
    lines: (terminal) => leakLines(report, terminal),
    title: "With and without the causal mask",
    series,
  };
}

async function heads(lb: Lookback, options: ExperimentOptions): Promise<Findings> {
  const report = await experimentHeads(lb, options);
  const series = report.runs.flatMap(({ heads: number, curve }, color): Series[] => {
    const name = `${number} ${number === 1 ? "head" : "heads"}`;
    return [
      { name: `${name}: training`, points: training(curve), color },
      { name: `${name}: validation`, points: validation(curve), color, dashed: true },
    ];
  });
  const title = `Equal width, ${HEAD_COUNTS.join(", ")} heads`;
  return { report, lines: (terminal) => headsLines(report, terminal), title, series };
}
