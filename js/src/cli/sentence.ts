/** A sentence as attention sees it: tokens, embedded in numbers, and the parameters of an untrained layer. */
import type { StateDict, Tensor } from "../types.js";

/** Words, punctuation marks and, where the language writes without spaces, the words of its dictionary. */
export function tokenize(sentence: string): string[] {
  const words = new Intl.Segmenter(isChinese(sentence) ? "zh" : "en", { granularity: "word" });
  // Control characters would reach the terminal as commands.
  const printable = sentence.replace(/\p{Cc}+/gu, " ").normalize("NFC");
  return Array.from(words.segment(printable), ({ segment }) => segment.trim()).filter((token) => token !== "");
}

export const isChinese = (text: string): boolean => /\p{Script=Han}/u.test(text);

/**
 * Normally distributed numbers from a seed: mulberry32 (Tommy Ettinger, public domain), a 32-bit counter put through a
 * mixing function, made normal by Box and Muller. Written here because the picture must never change with a dependency.
 */
export function normalNumbers(seed: number): () => number {
  let counter = seed >>> 0;
  const uniform = () => {
    counter = (counter + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(counter ^ (counter >>> 15), counter | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** FNV-1a over UTF-16 units: a token has the same numbers in every sentence. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; ++i) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}

/** [tokens, width]: normal numbers seeded by the token, plus the sinusoidal position of "Attention Is All You Need". */
export function embed(tokens: readonly string[], width: number, seed: number): Tensor {
  const data = new Float32Array(tokens.length * width);
  tokens.forEach((token, position) => {
    const next = normalNumbers(hash(token.toLowerCase()) ^ seed);
    for (let d = 0; d < width; ++d) {
      const angle = position / 10000 ** ((d - (d % 2)) / width);
      data[position * width + d] = next() + (d % 2 === 0 ? Math.sin(angle) : Math.cos(angle));
    }
  });
  return { data, dims: [tokens.length, width] };
}

/**
 * Random parameters of a multi-head layer by PyTorch's names. The spread keeps scores about ±1.5, so that a row of
 * weights is neither flat nor a single spike.
 */
export function randomLayer(embedDim: number, seed: number): StateDict {
  const next = normalNumbers(seed);
  const filled = (dims: number[], spread: number) => ({
    data: Float32Array.from({ length: dims.reduce((product, n) => product * n, 1) }, () => next() * spread),
    dims,
  });
  const spread = 1 / Math.sqrt(embedDim);
  return {
    in_proj_weight: filled([3 * embedDim, embedDim], spread),
    in_proj_bias: filled([3 * embedDim], 0),
    "out_proj.weight": filled([embedDim, embedDim], spread),
    "out_proj.bias": filled([embedDim], 0),
  };
}
