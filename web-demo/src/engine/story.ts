/** Every intermediate matrix of one attention head, each returned by the engine. */
import type { MaskChoice, State } from "../article/state";
import { embed, normal, tokenize } from "./embed";
import { type Lookback, maskOf, project, stage, tensorOf } from "./engine";
import { type Grid, grid, rowsOf } from "./grid";

/** Width of a token's vector, and of the head that chapters 1 to 5 follow: head 1 of 2. */
export const WIDTH = 8;
export const HEAD_WIDTH = 4;

/** Spread of the projections, chosen so that scores after /√d spread by about 1.5: neither flat nor one-sided. */
const SPREAD = 0.44;

export interface Projections {
  /** [WIDTH outputs, WIDTH inputs] each, as torch.nn.MultiheadAttention keeps them. */
  readonly q: Grid;
  readonly k: Grid;
  readonly v: Grid;
  readonly output: Grid;
}

export function projections(): Projections {
  const make = (name: string) => grid(WIDTH, WIDTH, normal(`weight ${name}`, WIDTH * WIDTH, SPREAD));
  return { q: make("query"), k: make("key"), v: make("value"), output: make("output") };
}

export interface Story {
  readonly tokens: readonly string[];
  readonly mask: MaskChoice;
  readonly x: Grid;
  /** The head's rows of Wq, Wk, Wv: [HEAD_WIDTH, WIDTH]. */
  readonly weight: { readonly q: Grid; readonly k: Grid; readonly v: Grid };
  readonly q: Grid;
  readonly k: Grid;
  readonly v: Grid;
  /** QKᵀ, QKᵀ/√d, M, QKᵀ/√d + M, softmax of it, and the weighted sum of V. */
  readonly raw: Grid;
  readonly scaled: Grid;
  readonly bias: Grid;
  readonly masked: Grid;
  readonly weights: Grid;
  /** log Σ exp of each row of `masked`, from which a weight is exp(score − it). */
  readonly logSumExp: Float32Array;
  readonly output: Grid;
}

export function tellStory(lb: Lookback, state: State): Story {
  const tokens = tokenize(state.text);
  const x = embed(tokens, WIDTH);
  const all = projections();
  const weight = {
    q: rowsOf(all.q, 0, HEAD_WIDTH),
    k: rowsOf(all.k, 0, HEAD_WIDTH),
    v: rowsOf(all.v, 0, HEAD_WIDTH),
  };
  const q = project(lb, x, weight.q);
  const k = project(lb, x, weight.k);
  const v = project(lb, x, weight.v);
  const mask = maskOf(state.mask, tokens.length);
  const result = lb.attention(tensorOf(q), tensorOf(k), tensorOf(v), { heads: 1, mask, logSumExp: true });
  if (!result.logSumExp) throw new Error("the engine returned no logSumExp");
  return {
    tokens,
    mask: state.mask,
    x,
    weight,
    q,
    k,
    v,
    raw: stage(lb, q, k, v, { scale: 1, weights: "scores" }),
    scaled: stage(lb, q, k, v, { weights: "scores" }),
    bias: grid(tokens.length, tokens.length, mask.toBias().data),
    masked: stage(lb, q, k, v, { mask, weights: "masked" }),
    weights: stage(lb, q, k, v, { mask, weights: "softmax" }),
    logSumExp: result.logSumExp.data,
    output: grid(tokens.length, HEAD_WIDTH, result.output.data),
  };
}

/** A token that gives weight to one that comes after it. */
export interface Leak {
  readonly query: number;
  readonly key: number;
  readonly weight: number;
}

export function leaksOf(weights: Grid): Leak[] {
  const leaks: Leak[] = [];
  for (let query = 0; query < weights.rows; query++)
    for (let key = query + 1; key < weights.cols; key++) {
      const weight = weights.data[query * weights.cols + key] ?? 0;
      if (weight > 0) leaks.push({ query, key, weight });
    }
  return leaks.sort((a, b) => b.weight - a.weight);
}
