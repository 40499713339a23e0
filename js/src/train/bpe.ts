/** Learns the merges of a byte-level BPE (Sennrich, Haddow and Birch 2016; bytes as in GPT-2). */

/** How GPT-2 cuts a text into words; a merge never crosses their borders. As ByteLevel does in tokenizer.json. */
const WORDS = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;
export const BYTES = 256;

/** GPT-2's visible stand-ins of the 256 bytes. */
export const BYTE_CHARACTERS: readonly string[] = (() => {
  const visible = (byte: number) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let others = 0;
  return Array.from({ length: BYTES }, (_, byte) => String.fromCharCode(visible(byte) ? byte : BYTES + others++));
})();

/** A word as it stands in the text: its tokens now, and how often it comes. */
interface Word {
  tokens: number[];
  readonly count: number;
}

/** What is known of a pair of neighbouring tokens. */
interface Pair {
  readonly left: number;
  readonly right: number;
  count: number;
  /** Words that have, or had, the pair. */
  readonly words: Set<Word>;
}

export interface LearntMerges {
  /** Every token in visible bytes; the first 256 are the bytes. */
  readonly tokens: string[];
  /** Which two tokens make the 257th, the 258th, … */
  readonly merges: (readonly [number, number])[];
}

/**
 * Joins the most frequent pair of neighbours, again and again, until there are `size` tokens or no pair comes twice. Of equally frequent
 * pairs the one of older tokens is taken: the result depends on the texts alone.
 */
export function learnMerges(texts: readonly string[], size: number): LearntMerges {
  const pairs = new Map<number, Pair>();
  for (const word of wordsOf(texts)) countPairs(pairs, word, 1);
  const tokens = [...BYTE_CHARACTERS];
  const merges: [number, number][] = [];
  while (tokens.length < size) {
    const best = mostFrequent(pairs.values());
    if (!best) break;
    const merged = tokens.length;
    tokens.push(tokens[best.left]! + tokens[best.right]!);
    merges.push([best.left, best.right]);
    for (const word of best.words) {
      if (!hasPair(word, best)) continue;
      countPairs(pairs, word, -1);
      word.tokens = joined(word.tokens, best, merged);
      countPairs(pairs, word, 1);
    }
  }
  return { tokens, merges };
}

function wordsOf(texts: readonly string[]): Word[] {
  const counts = new Map<string, number>();
  for (const text of texts) for (const [word] of text.matchAll(WORDS)) counts.set(word, (counts.get(word) ?? 0) + 1);
  const encoder = new TextEncoder();
  return Array.from(counts, ([word, count]) => ({ tokens: Array.from(encoder.encode(word)), count }));
}

/** Of at most 2¹⁶ tokens. */
const keyOf = (left: number, right: number): number => left * 65536 + right;

function countPairs(pairs: Map<number, Pair>, word: Word, sign: 1 | -1): void {
  for (let i = 0; i + 1 < word.tokens.length; i++) {
    const [left, right] = [word.tokens[i]!, word.tokens[i + 1]!];
    const key = keyOf(left, right);
    let pair = pairs.get(key);
    if (!pair) {
      pair = { left, right, count: 0, words: new Set() };
      pairs.set(key, pair);
    }
    pair.count += sign * word.count;
    if (sign > 0) pair.words.add(word);
    if (pair.count === 0) pairs.delete(key);
  }
}

function mostFrequent(pairs: Iterable<Pair>): Pair | undefined {
  let best: Pair | undefined;
  for (const pair of pairs) {
    if (pair.count < 2 || (best && pair.count < best.count)) continue;
    const isOlder = !best || keyOf(pair.left, pair.right) < keyOf(best.left, best.right);
    if (!best || pair.count > best.count || isOlder) best = pair;
  }
  return best;
}

const hasPair = ({ tokens }: Word, { left, right }: Pair): boolean =>
  tokens.some((token, i) => token === left && tokens[i + 1] === right);

/** From left to right, as an encoder does it: of three equal tokens the first two. */
function joined(tokens: readonly number[], { left, right }: Pair, merged: number): number[] {
  const result: number[] = [];
  for (let i = 0; i < tokens.length; i++) {
    const meets = tokens[i] === left && tokens[i + 1] === right;
    result.push(meets ? merged : tokens[i]!);
    if (meets) i++;
  }
  return result;
}
