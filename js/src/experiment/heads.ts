/** What heads are for: the same width is divided among 1, 2, 4 or 8 of them, and each model learns for equally many steps. */
import type { Attended } from "../model/types.js";
import type { Lookback } from "../types.js";
import { type CurvePoint, type ExperimentOptions, experimentConfig, finalLoss, trainToEnd } from "./shared.js";

export const HEAD_COUNTS = [1, 2, 4, 8] as const;

/** Means over the tokens of a text from the third on: the first two have hardly anything to choose from. */
export interface HeadHabit {
  readonly layer: number;
  readonly head: number;
  /** Weight on the token itself, on the one before it, and on the first of all. */
  readonly self: number;
  readonly previous: number;
  readonly first: number;
  /** Tokens back, on average (Σ weight · distance). */
  readonly distance: number;
  /** −Σ weight · ln weight, in nats: 0 looks at one token only. */
  readonly entropy: number;
}

export interface HeadsRun {
  readonly heads: number;
  readonly curve: CurvePoint[];
  readonly trainingLoss: number;
  readonly validationLoss: number;
  readonly habits: HeadHabit[];
}

export interface HeadsReport {
  readonly steps: number;
  readonly seed: number;
  readonly parameters: number;
  /** Whose attention is told. */
  readonly looksAt: string;
  readonly runs: HeadsRun[];
}

export async function experimentHeads(lb: Lookback, options: ExperimentOptions): Promise<HeadsReport> {
  const { text, steps, seed, signal } = options;
  const runs: HeadsRun[] = [];
  let parameters = 0;
  let looksAt = "";
  for (const heads of HEAD_COUNTS) {
    const trainer = await lb.trainer(experimentConfig(options, heads, true));
    try {
      const curve = await trainToEnd(trainer, `${heads} ${heads === 1 ? "head" : "heads"}`, options);
      const { loss: validationLoss } = await trainer.evaluate(signal ? { signal } : {});
      looksAt = [...text].slice(-trainer.config.length).join("");
      const habits = headHabits(trainer.attend(looksAt));
      runs.push({ heads, curve, trainingLoss: finalLoss(curve), validationLoss, habits });
      parameters = trainer.parameters;
    } finally {
      trainer.dispose();
    }
  }
  return { steps, seed, parameters, looksAt, runs };
}

export function headHabits({ layers, heads, weights }: Pick<Attended, "layers" | "heads" | "weights">): HeadHabit[] {
  return layers.flatMap((layer, at) =>
    heads.map((head, place) => {
      const { data, dims } = weights[at]![place]!;
      return { layer, head, ...habitOf(data, dims[0]!) };
    }),
  );
}

function habitOf(weights: ArrayLike<number>, length: number): Omit<HeadHabit, "layer" | "head"> {
  const FROM = 2;
  const sums = { self: 0, previous: 0, first: 0, distance: 0, entropy: 0 };
  for (let query = FROM; query < length; ++query) {
    const row = (key: number) => weights[query * length + key]!;
    sums.self += row(query);
    sums.previous += row(query - 1);
    sums.first += row(0);
    for (let key = 0; key <= query; ++key) {
      const weight = row(key);
      sums.distance += weight * (query - key);
      if (weight > 0) sums.entropy -= weight * Math.log(weight);
    }
  }
  const rows = length - FROM;
  return {
    ...{ self: sums.self / rows, previous: sums.previous / rows, first: sums.first / rows },
    ...{ distance: sums.distance / rows, entropy: sums.entropy / rows },
  };
}
