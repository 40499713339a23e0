/** What the experiments print for people. */
import type { HeadHabit, HeadsReport } from "../experiment/heads.js";
import type { LeakReport } from "../experiment/leak.js";
import { grouped, printable } from "./printable.js";
import { heading, pad, type Terminal, widthOf, wrap } from "./terminal.js";

const nats = (loss: number): string => loss.toFixed(3);

/** Columns as wide as their widest cell; all but the first are set to the right. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => widthOf(row[column]!))));
  return rows.map((row) =>
    row
      .map((cell, column) => pad(cell, widths[column]!, column === 0 ? "left" : "right"))
      .join("  ")
      .trimEnd(),
  );
}

export function leakLines({ steps, seed, parameters, prompt, runs }: LeakReport, terminal: Terminal): string[] {
  const [masked, unmasked] = runs;
  const named = { masked: "with the mask", unmasked: "without" };
  const rows = [
    ["nats per token", named.masked, named.unmasked],
    ["training loss", nats(masked.trainingLoss), nats(unmasked.trainingLoss)],
    ["validation loss, mask on", nats(masked.validationLoss), nats(unmasked.validationLoss)],
    ["its text, judged by the model with the mask", nats(masked.textLoss), nats(unmasked.textLoss)],
  ];
  const [head, ...body] = table(rows);
  const told =
    `Without the mask the training loss is ${(unmasked.trainingLoss / masked.trainingLoss).toFixed(2)} times that with it, for every ` +
    `token sees the one that it is to predict. When it has to write, there is nothing to copy: its validation loss is ` +
    `${(unmasked.validationLoss / masked.validationLoss).toFixed(2)} times the other's.`;
  return [
    heading(`${grouped(parameters)} parameters, ${steps} steps, seed ${seed}`, terminal),
    terminal.paint.bold(head!),
    ...body,
    "",
    ...wrap(told, terminal.columns),
    ...[masked, unmasked].flatMap(({ mask, text }) => [
      "",
      terminal.paint.bold(mask ? named.masked : named.unmasked),
      ...printable(prompt + text)
        .split("\n")
        .flatMap((line) => wrap(line, terminal.columns)),
    ]),
  ];
}

export function headsLines({ steps, seed, parameters, runs }: HeadsReport, terminal: Terminal): string[] {
  const losses = table([
    ["heads", ...runs.map(({ heads }) => String(heads))],
    ["training loss, nats per token", ...runs.map(({ trainingLoss }) => nats(trainingLoss))],
    ["validation loss", ...runs.map(({ validationLoss }) => nats(validationLoss))],
  ]);
  return [
    heading(`${grouped(parameters)} parameters each, ${steps} steps, seed ${seed}`, terminal),
    terminal.paint.bold(losses[0]!),
    ...losses.slice(1),
    "",
    ...wrap(
      "Where they look, on average over the last tokens of the text: the share of the weight on the token itself, the one before it and " +
        "the first; how many tokens back; and the entropy, 0 where a single token gets all.",
      terminal.columns,
    ),
    ...runs.flatMap(({ heads, habits }) => {
      const [head, ...body] = table([
        [`${heads} ${heads === 1 ? "head" : "heads"}`, "itself", "before", "first", "back", "entropy"],
        ...habits.map(habitRow),
      ]);
      return ["", terminal.paint.bold(head!), ...body];
    }),
  ];
}

const habitRow = ({ layer, head, self, previous, first, distance, entropy }: HeadHabit): string[] => [
  `layer ${layer}, head ${head}`,
  ...[self, previous, first].map((share) => `${Math.round(100 * share)} %`),
  ...[distance, entropy].map((value) => value.toFixed(2)),
];
