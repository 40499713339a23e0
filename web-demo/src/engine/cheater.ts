/**
 * A head built by hand to cheat: the query at position i asks for the key at position i + 1, whose value is that token. It is what
 * training without a mask rewards, since the token at i + 1 is the answer at i.
 */
import type { MaskChoice } from "../article/state";
import { type Lookback, maskOf, tensorOf } from "./engine";
import { at, type Grid, grid } from "./grid";

/** How loudly it asks: exp(8) against exp(0) leaves the others under a thousandth each. */
const LOUDNESS = 8;

function oneHot(length: number, width: number, shift: number, value: number): Grid {
  const data = new Float32Array(length * width);
  for (let i = 0; i < length; i++) if (i + shift < width) data[i * width + i + shift] = value;
  return grid(length, width, data);
}

/** What it expects after each of `length` tokens: row i gives each position's share. */
function guesses(lb: Lookback, length: number, width: number, mask: MaskChoice): Grid {
  const asks = oneHot(length, width, 1, LOUDNESS);
  const is = oneHot(length, width, 0, 1);
  const { output } = lb.attention(tensorOf(asks), tensorOf(is), tensorOf(is), {
    heads: 1,
    scale: 1,
    mask: maskOf(mask, length),
  });
  return grid(length, width, output.data);
}

export interface Cheater {
  /** For each token but the last: the share it gives to the true next token, in training. */
  readonly training: readonly number[];
  /** What it writes when it has to go on from the first token alone, one token a step. */
  readonly writing: readonly string[];
}

export function cheat(lb: Lookback, tokens: readonly string[], mask: MaskChoice): Cheater {
  const width = tokens.length;
  const seen = guesses(lb, width, width, mask);
  const training = Array.from({ length: Math.max(0, width - 1) }, (_, i) => at(seen, i, i + 1));
  const writing = tokens.slice(0, 1);
  while (writing.length > 0 && writing.length < width) {
    // Each written token keeps its own slot; the next one does not exist yet, so there is nothing to copy.
    const last = guesses(lb, writing.length, width, mask);
    let best = 0;
    for (let j = 1; j < writing.length; j++)
      if (at(last, writing.length - 1, j) > at(last, writing.length - 1, best)) best = j;
    writing.push(writing[best] ?? "");
  }
  return { training, writing };
}
