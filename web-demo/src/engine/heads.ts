/** Multi-head attention, self and cross, through the engine's layer. */
import { type AttentionOptions, LookbackError } from "lookback";
import type { State } from "../app/state";
import { embed, tokenize } from "./embed";
import { type Lookback, maskOf, project, tensorOf } from "./engine";
import { type Grid, grid, plane } from "./grid";
import { projections, type Story, WIDTH } from "./story";

/** What the engine said instead of a result. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
}

export type Outcome<T> = { readonly value: T; readonly refusal: null } | { readonly value: null; readonly refusal: Refusal };

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

export interface MultiHead {
  readonly heads: number;
  /** Softmax weights of each head, [L, L]. */
  readonly weights: readonly Grid[];
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
      const { output, weights } = layer.forward(tensorOf(story.x), { mask, weights: "softmax" });
      if (!weights) throw new Error("the layer returned no weights");
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
        weights: Array.from({ length: heads }, (_, head) => plane(weights, head)),
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
  /** [L, memory tokens] for each of two heads. */
  readonly weights: readonly Grid[];
}

export const CROSS_HEADS = 2;

export function cross(lb: Lookback, state: State, story: Story): Outcome<Cross> {
  return attempt(() => {
    const memoryTokens = tokenize(state.memory);
    const layer = layerOf(lb, CROSS_HEADS);
    try {
      const { weights } = layer.forward(tensorOf(story.x), {
        memory: tensorOf(embed(memoryTokens, WIDTH)),
        weights: "softmax",
        ...(state.crossCausal ? { causal: true } : {}),
      });
      if (!weights) throw new Error("the layer returned no weights");
      return { memoryTokens, weights: Array.from({ length: CROSS_HEADS }, (_, head) => plane(weights, head)) };
    } finally {
      layer.dispose();
    }
  });
}
