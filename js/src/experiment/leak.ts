/**
 * Why there is a causal mask: the same small model is trained with it and without. Without, a token's vector sees the very token that it is to
 * predict; the training loss falls, and nothing was learnt that helps to write.
 */
import type { Lookback } from "../types.js";
import { type CurvePoint, type ExperimentOptions, experimentConfig, finalLoss, HEADS, trainToEnd } from "./shared.js";

export interface LeakRun {
  readonly mask: boolean;
  readonly curve: CurvePoint[];
  /** In nats per token, of the last tenth of the steps. */
  readonly trainingLoss: number;
  /** Of the text that was kept back, with the mask on, as it is when a model writes. */
  readonly validationLoss: number;
  /** What it writes behind `prompt`. */
  readonly text: string;
  /** What the model that was trained with the mask thinks of that: nats per token of prompt and text. */
  readonly textLoss: number;
}

export interface LeakReport {
  readonly steps: number;
  readonly seed: number;
  readonly parameters: number;
  readonly prompt: string;
  /** With the mask, and without. */
  readonly runs: readonly [LeakRun, LeakRun];
}

/** New tokens of the samples. */
const SAMPLE_TOKENS = 160;
const PIECE = 32;

export async function experimentLeak(lb: Lookback, options: ExperimentOptions): Promise<LeakReport> {
  const { steps, seed, signal } = options;
  const masked = await lb.trainer(experimentConfig(options, HEADS, true));
  try {
    const unmasked = await lb.trainer(experimentConfig(options, HEADS, false));
    try {
      const prompt = masked.config.samplePrompt;
      const run = async (trainer: typeof masked, mask: boolean): Promise<LeakRun> => {
        const curve = await trainToEnd(trainer, mask ? "with the mask" : "without", options);
        const { loss: validationLoss } = await trainer.evaluate(signal ? { signal } : {});
        const text = await write(trainer, prompt, options);
        const { loss: textLoss } = await masked.evaluate({ on: { text: prompt + text } });
        return { mask, curve, trainingLoss: finalLoss(curve), validationLoss, text, textLoss };
      };
      const runs = [await run(masked, true), await run(unmasked, false)] as const;
      return { steps, seed, parameters: masked.parameters, prompt, runs };
    } finally {
      unmasked.dispose();
    }
  } finally {
    masked.dispose();
  }
}

/** A text longer than the context: each piece follows the end of what there is. */
async function write(
  trainer: Awaited<ReturnType<Lookback["trainer"]>>,
  prompt: string,
  { seed, signal }: ExperimentOptions,
): Promise<string> {
  let whole = prompt;
  for (let made = 0; made < SAMPLE_TOKENS; made += PIECE) {
    const before = [...whole].slice(-PIECE).join("");
    const settings = { maxTokens: PIECE, temperature: 0.8, seed: seed + made, ...(signal && { signal }) };
    whole += await trainer.generate(before, settings).text();
  }
  return whole.slice(prompt.length);
}
