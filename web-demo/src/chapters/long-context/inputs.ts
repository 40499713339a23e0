/**
 * Queries and keys of a text for four heads whose meaning is known, so that their pictures can be understood: made from the text alone, not
 * learned. Every word has a random direction that is its own; directions of different words are nearly orthogonal.
 */
import { normal, splitTokens } from "../../engine/embed.js";

export const HEADS = ["same", "next", "passage", "place"] as const;
export type Head = (typeof HEADS)[number];

/** Numbers per head. */
export const WIDTH = 32;
/** Dot products are at most 1 here; this many times them the softmax is sharp enough to choose, and soft enough to mix. */
export const SCALE = 14;
/** Words to each side that a passage is made of. */
export const REACH = 48;
export const LENGTHS = [1024, 2048, 4096, 8192] as const;
export const SHORTEST = 16;

export interface Inputs {
  readonly tokens: readonly string[];
  /** [L, HEADS · WIDTH], heads side by side. */
  readonly q: Float32Array;
  readonly k: Float32Array;
  /** [L, HEADS]: each word's place, so that the output is the mean place that is looked at. */
  readonly v: Float32Array;
}

export function tokensOf(text: string, most: number): string[] {
  return splitTokens(text).slice(0, most);
}

function unit(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector);
  return length > 0 ? vector.map((value) => value / length) : vector;
}

/** One direction per word, whatever its case. */
function wordVectors(tokens: readonly string[]): Float32Array[] {
  const known = new Map<string, Float32Array>();
  return tokens.map((token) => {
    const word = token.toLowerCase();
    const vector = known.get(word) ?? unit(normal(`word ${word}`, WIDTH, 1));
    known.set(word, vector);
    return vector;
  });
}

/** The mean of each word's surroundings less that of the whole text: which words are frequent here, and not elsewhere. */
function passages(vectors: readonly Float32Array[]): Float32Array[] {
  const length = vectors.length;
  const sums = new Float64Array((length + 1) * WIDTH);
  vectors.forEach((vector, i) => {
    for (let d = 0; d < WIDTH; d++) sums[(i + 1) * WIDTH + d] = (sums[i * WIDTH + d] ?? 0) + (vector[d] ?? 0);
  });
  return vectors.map((_, i) => {
    const from = Math.max(0, i - REACH);
    const to = Math.min(length, i + REACH + 1);
    return unit(
      Float32Array.from({ length: WIDTH }, (_each, d) => {
        const here = ((sums[to * WIDTH + d] ?? 0) - (sums[from * WIDTH + d] ?? 0)) / (to - from);
        return here - (sums[length * WIDTH + d] ?? 0) / length;
      }),
    );
  });
}

export function inputsOf(tokens: readonly string[]): Inputs {
  const length = tokens.length;
  const words = wordVectors(tokens);
  const around = passages(words);
  const even = new Float32Array(WIDTH).fill(1 / Math.sqrt(WIDTH));
  const nothing = new Float32Array(WIDTH);
  const row = HEADS.length * WIDTH;
  const q = new Float32Array(length * row);
  const k = new Float32Array(length * row);
  const v = new Float32Array(length * HEADS.length);
  for (let i = 0; i < length; i++) {
    const word = words[i] ?? nothing;
    const passage = around[i] ?? nothing;
    [word, word, passage, even].forEach((vector, head) => {
      q.set(vector, i * row + head * WIDTH);
    });
    [word, words[i - 1] ?? nothing, passage, even].forEach((vector, head) => {
      k.set(vector, i * row + head * WIDTH);
    });
    v.fill(i, i * HEADS.length, (i + 1) * HEADS.length);
  }
  return { tokens, q, k, v };
}
