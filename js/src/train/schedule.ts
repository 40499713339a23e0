import { cosineOfTurn } from "./random.js";

/** How the learning rate changes over a run. */
export interface Schedule {
  readonly learningRate: number;
  readonly minLearningRate: number;
  readonly warmup: number;
  readonly steps: number;
}

/**
 * The learning rate of step 1, 2, …: it grows evenly to `learningRate` within `warmup` steps, then falls along half a cosine
 * (Loshchilov and Hutter 2016, arXiv:1608.03983) to `minLearningRate` at the last step, and stays there.
 */
export function learningRateOf(step: number, { learningRate, minLearningRate, warmup, steps }: Schedule): number {
  if (step <= warmup) return learningRate * (step / warmup);
  const done = steps > warmup ? Math.min(1, (step - warmup) / (steps - warmup)) : 1;
  const high = (1 + cosineOfTurn(done)) / 2;
  return high * learningRate + (1 - high) * minLearningRate;
}
