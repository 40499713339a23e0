/** The few ways in which the page asks the engine; nothing on the page is calculated anywhere else. */
import { type AttentionOptions, createLookback, type Lookback, type Mask, masks } from "lookback";
import type { MaskChoice } from "../article/state";
import { type Grid, plane } from "./grid";

export type { Lookback };

export function startEngine(): Promise<Lookback> {
  return createLookback();
}

export function tensorOf(matrix: Grid): { data: Float32Array; dims: number[] } {
  return { data: matrix.data, dims: [matrix.rows, matrix.cols] };
}

/** The mask behind a choice. "Off" is the mask that lets everything through: its bias is all zeros. */
export function maskOf(choice: MaskChoice, length: number): Mask {
  const causal = masks.causal(length);
  if (choice === "causal") return causal;
  return choice === "inverted" ? causal.not() : causal.or(causal.not());
}

/** x · wᵀ by the engine: unscaled scores of the rows of x against the rows of a weight [outputs, inputs] are just that product. */
export function project(lb: Lookback, x: Grid, weight: Grid): Grid {
  const values = { data: new Float32Array(weight.rows), dims: [weight.rows, 1] };
  const { weights } = lb.attention(tensorOf(x), tensorOf(weight), values, { heads: 1, scale: 1, weights: "scores" });
  if (!weights) throw new Error("the engine returned no scores");
  return plane(weights, 0);
}

/** One stage of a single head, [Lq, Lk]. */
export function stage(lb: Lookback, q: Grid, k: Grid, v: Grid, options: AttentionOptions): Grid {
  const { weights } = lb.attention(tensorOf(q), tensorOf(k), tensorOf(v), { heads: 1, ...options });
  if (!weights) throw new Error("the engine returned no weights");
  return plane(weights, 0);
}
