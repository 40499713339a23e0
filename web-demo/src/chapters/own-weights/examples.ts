/** Attention as other programs write it, computed by the engine when it is asked for. */
import type { Lookback } from "lookback";
import { embed, tokenize } from "../../engine/embed";

export const EXAMPLES = ["heads", "bertviz", "table"] as const;
export type Example = (typeof EXAMPLES)[number];

const DIM = 16;
const HEADS = 4;

const rounded = (value: number) => Number(value.toFixed(4));

/** Two layers of heads over a sentence: [layer][head][query][key]. */
function layersOf(lb: Lookback, tokens: readonly string[], causal: boolean): number[][][][] {
  let x = { data: embed(tokens, DIM).data, dims: [tokens.length, DIM] };
  return [1, 2].map((seed) => {
    const layer = lb.multiHeadAttention({ embedDim: DIM, heads: HEADS, seed });
    try {
      const { output, weights } = layer.forward(x, { causal, weights: "softmax" });
      x = { data: output.data.map((value, index) => value + (x.data[index] ?? 0)), dims: output.dims };
      const length = tokens.length;
      return Array.from({ length: HEADS }, (_, head) =>
        Array.from({ length }, (_row, query) => {
          const from = (head * length + query) * length;
          return Array.from(weights.data.subarray(from, from + length), rounded);
        }),
      );
    } finally {
      layer.dispose();
    }
  });
}

/** As tokenizers of language models have them: a word's space is its own. */
const spaced = (tokens: readonly string[]) =>
  tokens.map((token, index) => (index > 0 && /^\w/.test(token) ? ` ${token}` : token));

export function exampleText(lb: Lookback, example: Example, sentence: string): string {
  const tokens = tokenize(sentence);
  const layers = layersOf(lb, tokens, example !== "bertviz");
  if (example === "heads") return JSON.stringify({ tokens: spaced(tokens), weights: layers });
  if (example === "bertviz") return JSON.stringify({ attn: layers, left_text: tokens, right_text: tokens });
  const matrix = layers[0]?.[0] ?? [];
  return [["", ...tokens], ...matrix.map((row, query) => [tokens[query] ?? "", ...row])]
    .map((cells) => cells.join(","))
    .join("\n");
}

/** What an error shows as a model. */
export const SHORT_EXAMPLE = `{
  "tokens": ["I", "see"],
  "weights": [
    [[1, 0], [0.4, 0.6]]
  ]
}`;
