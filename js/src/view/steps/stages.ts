/** The four stages of a calculation: from four given matrices, or from q and k by lookback itself. */
import type { AttentionOptions, FloatTensor, Lookback } from "lookback";
import type { Attention } from "../data.js";
import { isObject, isTensor, refuse, show } from "../numbers.js";
import { type AttentionInput, type Numbers, type ReadOptions, readAttention } from "../read.js";

export const STAGES = ["raw", "scaled", "masked", "weights"] as const;
export type Stage = (typeof STAGES)[number];
export type Stages = Record<Stage, Attention>;

/** Either all four matrices, or q and k with the options of `lb.attention`. */
export interface StepsInput extends Omit<AttentionInput, "kind" | "steps"> {
  /** q · kᵀ. */
  readonly raw?: Numbers;
  /** scale · q · kᵀ. */
  readonly scaled?: Numbers;
  /** With −∞ where a query may not look. */
  readonly masked?: Numbers;
  /** How `lb.attention` is called: heads, causal, mask, window, scale … */
  readonly options?: AttentionOptions;
}

export type Engine = Pick<Lookback, "attention">;

const ACCEPTED =
  "{ raw, scaled, masked, weights, tokens }, or { q, k, tokens, options } with the property lb = await createLookback()";

export function readStages(input: unknown, options: ReadOptions, lb: Engine | null): Stages {
  if (!isObject(input)) return refuse(`the steps must be ${ACCEPTED}; received ${show(input)}.`);
  const given = input as StepsInput;
  const matrices = given.raw !== undefined || given.scaled !== undefined || given.masked !== undefined;
  const all = matrices ? given : computed(given, lb);
  const stages = Object.fromEntries(
    STAGES.map((stage) => {
      const weights = all[stage];
      if (weights === undefined) return refuse(`'${stage}' is missing. Accepted: ${ACCEPTED}.`);
      const kind = stage === "weights" ? "weights" : "scores";
      return [stage, readAttention({ ...all, weights, kind } as AttentionInput, options)];
    }),
  ) as Stages;
  for (const stage of STAGES)
    for (const size of ["layers", "heads", "queryLength", "keyLength"] as const)
      if (stages[stage][size] !== stages.weights[size])
        refuse(`'${stage}' has ${size} ${stages[stage][size]}, but 'weights' has ${stages.weights[size]}.`);
  return stages;
}

/** Each stage as `lb.attention` gives it (R12); raw scores are those with scale 1. */
function computed(given: StepsInput, lb: Engine | null): StepsInput {
  const { q, k } = given;
  if (!isTensor(q) || !isTensor(k)) return refuse(`the steps must be ${ACCEPTED}; received ${show(given)}.`);
  if (!lb)
    return refuse("q and k need an engine: set the property lb = await createLookback(), or give all four matrices.");
  const v = isTensor(given.v) ? (given.v as FloatTensor) : (k as FloatTensor);
  const options = { ...given.options, ...(given.scale !== undefined && { scale: given.scale }) };
  const run = (kind: "scores" | "masked" | "softmax", more: AttentionOptions = {}): Numbers =>
    lb.attention(q as FloatTensor, k as FloatTensor, v, { ...options, ...more, weights: kind }).weights as Numbers;
  const scale = options.scale;
  return {
    ...given,
    ...(scale !== undefined && { scale }),
    raw: run("scores", { scale: 1 }),
    scaled: run("scores"),
    masked: run("masked"),
    weights: run("softmax"),
  };
}
