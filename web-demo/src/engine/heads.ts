/** Multi-head attention, self and cross, through the engine's layer. */
import { type AttentionOptions, type LayerForwardOptions, LookbackError, type MultiHeadAttention } from "lookback";
import type { State } from "../article/state";
import { embed, tokenize } from "./embed";
import { type Lookback, maskOf, project, tensorOf } from "./engine";
import { type Grid, grid, plane } from "./grid";
import { projections, type Story, WIDTH } from "./story";

/** What the engine said instead of a result. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
}

export type Outcome<T> =
  | { readonly value: T; readonly refusal: null }
  | { readonly value: null; readonly refusal: Refusal };

function attempt<T>(run: () => T): Outcome<T> {
  try {
    return { value: run(), refusal: null };
  } catch (error) {
    if (!(error instanceof LookbackError)) throw error;
    return { value: null, refusal: { code: error.code, message: error.message } };
  }
}

function layerOf(lb: Lookback, heads: number) {
  const layer = lb.multiHeadAttention({ embedDim: WIDTH, heads, bias: false });
  const { q, k, v, output } = projections();
  const input = new Float32Array(3 * WIDTH * WIDTH);
  [q, k, v].forEach((weight, index) => {
    input.set(weight.data, index * WIDTH * WIDTH);
  });
  layer.load({ in_proj_weight: { data: input, dims: [3 * WIDTH, WIDTH] }, "out_proj.weight": tensorOf(output) });
  return layer;
}

interface Looks {
  readonly weights: readonly Grid[];
  readonly scores: readonly Grid[];
  readonly logSumExp: readonly Float32Array[];
}

/** How each head looks: what it makes of the scores, and the scores themselves. */
function looksOf(layer: MultiHeadAttention, x: Grid, options: LayerForwardOptions, heads: number): Looks {
  const softmax = layer.forward(tensorOf(x), { ...options, weights: "softmax" }).weights;
  const { weights: masked, logSumExp } = layer.forward(tensorOf(x), { ...options, weights: "masked", logSumExp: true });
  if (!softmax || !masked || !logSumExp) throw new Error("the layer returned no weights");
  const each = <T>(make: (head: number) => T) => Array.from({ length: heads }, (_, head) => make(head));
  return {
    weights: each((head) => plane(softmax, head)),
    scores: each((head) => plane(masked, head)),
    logSumExp: each((head) => logSumExp.data.slice(head * x.rows, (head + 1) * x.rows)),
  };
}

export interface MultiHead {
  readonly heads: number;
  /** Softmax weights of each head, the masked scores behind them [L, L], and log Σ exp of each row of those. */
  readonly weights: readonly Grid[];
  readonly scores: readonly Grid[];
  readonly logSumExp: readonly Float32Array[];
  /** The heads' outputs side by side, Wo, and the layer's output. */
  readonly concat: Grid;
  readonly outputWeight: Grid;
  readonly output: Grid;
}

export function multiHead(lb: Lookback, state: State, story: Story): Outcome<MultiHead> {
  return attempt(() => {
    const { heads } = state;
    const layer = layerOf(lb, heads);
    try {
      const mask = maskOf(state.mask, story.tokens.length);
      const look = looksOf(layer, story.x, { mask }, heads);
      const { output } = layer.forward(tensorOf(story.x), { mask });
      const all = projections();
      const options: AttentionOptions = { heads, mask };
      const concat = lb.attention(
        tensorOf(project(lb, story.x, all.q)),
        tensorOf(project(lb, story.x, all.k)),
        tensorOf(project(lb, story.x, all.v)),
        options,
      ).output;
      return {
        heads,
        ...look,
        concat: grid(story.tokens.length, WIDTH, concat.data),
        outputWeight: all.output,
        output: grid(story.tokens.length, WIDTH, output.data),
      };
    } finally {
      layer.dispose();
    }
  });
}

export interface Cross {
  readonly memoryTokens: readonly string[];
  /** [L, memory tokens]: head 1 of two. */
  readonly weights: Grid;
  readonly scores: Grid;
  readonly logSumExp: Float32Array;
}

export const CROSS_HEADS = 2;

export function cross(lb: Lookback, state: State, story: Story): Outcome<Cross> {
  return attempt(() => {
    const memoryTokens = tokenize(state.memory);
    const layer = layerOf(lb, CROSS_HEADS);
    try {
      const options: LayerForwardOptions = { memory: tensorOf(embed(memoryTokens, WIDTH)) };
      if (state.crossCausal) options.causal = true;
      const look = looksOf(layer, story.x, options, CROSS_HEADS);
      const [weights] = look.weights;
      const [scores] = look.scores;
      const [logSumExp] = look.logSumExp;
      if (!weights || !scores || !logSumExp) throw new Error("the layer has no head 1");
      return { memoryTokens, weights, scores, logSumExp };
    } finally {
      layer.dispose();
    }
  });
}
