import type { Command } from "commander";
import type { Attended } from "../model/node.js";
import { choice } from "./arguments.js";
import { beside, heatMap, legend, type Matrix, narrowestWidth } from "./heatmap.js";
import { type ModelOptions, type Opened, weightOption, withModel } from "./open-model.js";
import { label } from "./printable.js";
import { detectTerminal } from "./terminal.js";

interface Options extends ModelOptions {
  readonly layer: "all" | number[];
  readonly head: "all" | number[];
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  $ lookback attend ./gpt2 "The cat sat on the mat" --layer 3
  $ lookback attend stories.bin --tokenizer tok.bin "Once upon a time" --layer 0 --head 2,5
  $ lookback attend ./gpt2 "The cat sat" --layer all --head all --json > maps.json`;

export const addAttend = (program: Command): Command =>
  program
    .command("attend")
    .description("show who looks at whom in a text, as heat maps")
    .argument(
      "<model>",
      "a folder with config.json, a .bin file of llama2.c, a URL, or english-prose, tang-verse: they come with the package",
    )
    .argument("<text>", "the text to look at")
    .option("--tokenizer <file>", "the tokenizer of a .bin file")
    .addOption(weightOption())
    .option("--layer <n>", "a layer, several (0,2), or all", choice, [0])
    .option("--head <n>", "a head, several (0,2), or all", choice, "all")
    .option("--json", "print one JSON object: weights[layer][head][query][key]")
    .addHelpText("after", EXAMPLES)
    .action((model: string, text: string, options: Options) =>
      withModel(model, options, async (opened) => attend(opened, text, options)),
    );

function attend({ model, letGo }: Opened, text: string, { layer, head, json }: Options): void {
  letGo();
  const attended = model.attend(text, { layers: layer, heads: head });
  console.log(json ? asJson(text, attended) : pictures(attended).join("\n"));
}

/** float32 has seven digits. */
const written = (weight: number): number => Number(weight.toPrecision(7));

function asJson(text: string, { ids, tokens, layers, heads, weights }: Attended): string {
  const length = ids.length;
  const rows = (data: Float32Array) =>
    Array.from({ length }, (_, row) => Array.from(data.subarray(row * length, (row + 1) * length), written));
  const maps = weights.map((layer) => layer.map(({ data }) => rows(data)));
  return JSON.stringify({ text, ids, tokens, layers, heads, weights: maps });
}

function pictures({ tokens, layers, heads, weights }: Attended): string[] {
  const terminal = detectTerminal();
  const labels = tokens.map(label);
  const maps = layers.flatMap((layer, l) =>
    heads.map((head, h): Matrix => {
      const title = `layer ${layer} · head ${head}`;
      return { title, values: weights[l]![h]!.data, rows: labels, columns: labels };
    }),
  );
  // Two beside each other where both fit with every token.
  const half = Math.floor((terminal.columns - 3) / 2);
  const width = narrowestWidth(maps[0]!) <= half ? half : terminal.columns;
  const blocks = maps.map((map) => heatMap(map, terminal, width));
  return [...beside(blocks, terminal.columns), "", ...legend("Weights in percent:", terminal)];
}
