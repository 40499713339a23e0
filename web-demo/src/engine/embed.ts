/** Tokens and fixed pseudo-random numbers: the same word always gets the same vector, on every machine. */
import { type Grid, grid } from "./grid.js";

export const MAX_TOKENS = 12;

/** A token is a word, a single Chinese or Japanese character, or a punctuation mark. */
const SINGLE = "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}]";
const TOKEN = new RegExp(`${SINGLE}|(?:(?!${SINGLE})[\\p{L}\\p{M}\\p{N}_'’])+|\\S`, "gu");

export function splitTokens(text: string): string[] {
  return text.normalize("NFC").match(TOKEN) ?? [];
}

/** As many as a figure of the article has room for. */
export function tokenize(text: string): string[] {
  return splitTokens(text).slice(0, MAX_TOKENS);
}

function seedOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/** mulberry32: uniform in [0, 1). */
function uniform(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Normally distributed numbers (Box and Muller) that `seed` fixes. */
export function normal(seed: string, count: number, deviation: number): Float32Array {
  const next = uniform(seedOf(seed));
  return Float32Array.from({ length: count }, () => {
    const radius = Math.sqrt(-2 * Math.log(1 - next()));
    return radius * Math.cos(2 * Math.PI * next()) * deviation;
  });
}

/** One row per token, [tokens, width]. */
export function embed(tokens: readonly string[], width: number): Grid {
  const data = new Float32Array(tokens.length * width);
  tokens.forEach((token, row) => {
    data.set(normal(`token ${token.toLowerCase()}`, width, 1), row * width);
  });
  return grid(tokens.length, width, data);
}
