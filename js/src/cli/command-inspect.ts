import type { Command } from "commander";
import type { Model, ModelInfo } from "../model/node.js";
import { positiveCount } from "./arguments.js";
import { type ModelOptions, weightOption, withModel } from "./open-model.js";
import { bytes, grouped } from "./printable.js";
import { detectTerminal, heading, pad, type Terminal } from "./terminal.js";

interface Options extends ModelOptions {
  readonly context?: number;
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  $ lookback inspect ./gpt2
  $ lookback inspect ./Qwen3-0.6B --context 4096
  $ lookback inspect stories.bin --tokenizer tok.bin --json`;

export const addInspect = (program: Command): Command =>
  program
    .command("inspect")
    .description("show a model's sizes, tensors and memory")
    .argument(
      "<model>",
      "a folder with config.json, a .bin file of llama2.c, a URL, or english-prose, tang-verse: they come with the package",
    )
    .option("--tokenizer <file>", "the tokenizer of a .bin file")
    .addOption(weightOption())
    .option("--context <n>", "tokens to tell the memory for (default: the model's context)", positiveCount)
    .option("--json", "print one JSON object")
    .addHelpText("after", EXAMPLES)
    .action((model: string, options: Options) =>
      withModel(model, options, async (opened) => inspect(opened.model, options)),
    );

function inspect(model: Model, { context, json }: Options): void {
  const info = model.inspect(context === undefined ? {} : { context });
  console.log(json ? JSON.stringify(info) : describe(info, detectTerminal()).join("\n"));
}

function describe(info: ModelInfo, terminal: Terminal): string[] {
  const { config, memory, tensors } = info;
  const positions = config.learnedPositions ? "learned" : `rotary, base ${config.rotary?.base}`;
  const scaling = config.rotary?.scaling ? `, ${config.rotary.scaling.type} × ${config.rotary.scaling.factor}` : "";
  const facts: [string, string][] = [
    ["family", config.family],
    ["parameters", grouped(info.parameters)],
    ["vocabulary", grouped(config.vocabSize)],
    ["layers", String(config.layers)],
    ["heads", `${config.heads} of ${config.headDim}, ${config.kvHeads} for keys and values`],
    ["width", `${config.embedDim}, inside the MLP ${config.hiddenDim}`],
    ["positions", positions + scaling],
    ["context", `${grouped(config.contextLength)} tokens${config.window ? `, windows of ${config.window}` : ""}`],
  ];
  const sizes: [string, string][] = [
    ["weights", bytes(memory.weights)],
    [`${grouped(info.context)} tokens, cache f32`, bytes(memory.f32)],
    [`${grouped(info.context)} tokens, cache int8`, bytes(memory.int8)],
  ];
  const shapes = tensors.map(({ name, dims, count }): [string, string] => [
    name,
    `[${dims.join(", ")}]${count > 1 ? ` × ${count}` : ""}`,
  ]);
  return [
    ...[heading(info.name, terminal), ...columns(facts)],
    ...["", heading("memory", terminal), ...columns(sizes)],
    ...["", heading("tensors", terminal), ...columns(shapes)],
  ];
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${pad(name, width)}  ${value}`);
}
