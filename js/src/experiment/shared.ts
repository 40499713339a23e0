/** What the experiments have in common: a model small enough to be trained while one waits. */
import type { NewTrainerConfig, Trainer, TrainingStep } from "../train/types.js";

export interface ExperimentOptions {
  /** What is trained on; its last twentieth is kept back. */
  readonly text: string;
  readonly steps: number;
  readonly seed: number;
  readonly signal?: AbortSignal | undefined;
  /** Called after every step of every run: which run, and its step. */
  readonly onProgress?: ((run: string, step: number) => void) | undefined;
}

/** A point of a loss curve; the validation loss, always measured with the mask on, stands at some of them. */
export interface CurvePoint {
  readonly step: number;
  readonly loss: number;
  readonly validation?: number;
}

export const WIDTH = 64;
export const HEADS = 4;
const CONTEXT = 64;
const LOOKS = 10;
const BATCH = 16;

/** Two layers with rotary positions: the fewest in which a head can build on what another has found. */
export const experimentConfig = (
  { text, steps, seed }: ExperimentOptions,
  heads: number,
  mask: boolean,
): NewTrainerConfig => ({
  model: { family: "llama", layers: 2, heads, embedDim: WIDTH, contextLength: CONTEXT },
  ...{ text, steps, seed, mask, batch: BATCH, learningRate: 4e-3, warmup: Math.min(20, steps) },
  evaluateEvery: Math.max(1, Math.floor(steps / LOOKS)),
});

/** Trains to the end, and gives the curve. */
export async function trainToEnd(trainer: Trainer, run: string, options: ExperimentOptions): Promise<CurvePoint[]> {
  const { signal, onProgress } = options;
  const curve: CurvePoint[] = [];
  for await (const made of trainer.run(signal ? { signal } : {})) {
    curve.push(pointOf(made));
    onProgress?.(run, made.step);
  }
  return curve;
}

const pointOf = ({ step, loss, validation }: TrainingStep): CurvePoint => ({
  ...{ step, loss },
  ...(validation && { validation: validation.loss }),
});

/** Mean training loss of the last tenth of the steps: single steps see different windows. */
export function finalLoss(curve: readonly CurvePoint[]): number {
  const last = curve.slice(-Math.ceil(curve.length / 10));
  return last.reduce((sum, { loss }) => sum + loss, 0) / last.length;
}
