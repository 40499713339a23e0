import { fail } from "../errors.js";
import { MergeQueue } from "./merge-queue.js";
import type { TextStream, TextTokenizer } from "./tokenizer.js";

/** SentencePiece's numbers, which llama2.c has fixed. */
export const BOS = 1;
export const EOS = 2;
/** Byte b is token b + 3. */
const FIRST_BYTE = 3;
const BYTES = 256;

/** Bytes as a string of as many characters, for maps. */
const keyOf = (bytes: Uint8Array): string => {
  let key = "";
  for (const byte of bytes) key += String.fromCharCode(byte);
  return key;
};

/** How many bytes the UTF-8 character has that starts with this one. */
const characterLength = (first: number): number => (first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4);

/**
 * llama2.c's tokenizer.bin: int32 longest token, then per token float32 score, int32 length, bytes. Encodes as its run.c does: characters, or
 * bytes where the vocabulary has no such character, whose neighbours are merged, the best score first (Sennrich et al. 2016, by scores).
 */
export class Llama2cTokenizer implements TextTokenizer {
  readonly #pieces: readonly Uint8Array[];
  readonly #scores: readonly number[];
  readonly #ids = new Map<string, number>();

  constructor(bytes: Uint8Array, name: string) {
    const { pieces, scores } = readVocabulary(bytes, name);
    this.#pieces = pieces;
    this.#scores = scores;
    pieces.forEach((piece, id) => {
      const key = keyOf(piece);
      if (!this.#ids.has(key)) this.#ids.set(key, id);
    });
  }

  get size(): number {
    return this.#pieces.length;
  }

  encode(text: string, special: boolean): number[] {
    const start = special ? [BOS] : [];
    // As in SentencePiece's training, a text begins with a space.
    return text === "" ? start : [...start, ...this.#merge(this.#characters(new TextEncoder().encode(` ${text}`)))];
  }

  decode(ids: readonly number[], special: boolean): string {
    const parts = ids.map((id, i) => (isControl(id) && !special ? new Uint8Array(0) : this.#bytes(id, ids[i - 1])));
    const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return newDecoder().decode(whole);
  }

  raw(id: number): string {
    const text = newDecoder().decode(this.#pieces[id]);
    return isControl(id) ? text.trim() : text;
  }

  stream(context: readonly number[]): TextStream {
    const decoder = newDecoder();
    let previous = context.at(-1);
    // The context may end within a character, which is told when it is complete.
    const tail = context.slice(-MOST_CHARACTER_BYTES);
    for (const [i, id] of tail.entries()) decoder.decode(this.#bytes(id, tail[i - 1]), { stream: true });
    return {
      push: (id) => {
        const bytes = isControl(id) ? new Uint8Array(0) : this.#bytes(id, previous);
        previous = id;
        return decoder.decode(bytes, { stream: true });
      },
      end: () => decoder.decode(),
    };
  }

  /** The text's first space is not the user's. */
  #bytes(id: number, previous: number | undefined): Uint8Array {
    const piece = this.#pieces[id] ?? new Uint8Array(0);
    if (previous === BOS && piece[0] === 0x20) return piece.subarray(1);
    const byte = /^<0x([0-9A-F]{2})>$/.exec(piece.length === 6 ? keyOf(piece) : "");
    return byte ? Uint8Array.of(Number.parseInt(byte[1]!, 16)) : piece;
  }

  #characters(bytes: Uint8Array): number[] {
    const ids: number[] = [];
    for (let at = 0; at < bytes.length; ) {
      const character = bytes.subarray(at, at + characterLength(bytes[at]!));
      const id = this.#ids.get(keyOf(character));
      if (id !== undefined) ids.push(id);
      else for (const byte of character) ids.push(byte + FIRST_BYTE);
      at += character.length;
    }
    return ids;
  }

  #merge(symbols: number[]): number[] {
    const next = symbols.map((_, i) => i + 1);
    const before = symbols.map((_, i) => i - 1);
    const keys = symbols.map((id) => keyOf(this.#pieces[id]!));
    const queue = new MergeQueue();
    const offer = (left: number, right: number) => {
      if (left < 0 || right >= symbols.length) return;
      const id = this.#ids.get(keys[left]! + keys[right]!);
      if (id === undefined) return;
      queue.push({ left, right, id, score: this.#scores[id]!, leftId: symbols[left]!, rightId: symbols[right]! });
    };
    for (let i = 0; i + 1 < symbols.length; i++) offer(i, i + 1);
    for (let best = queue.pop(); best; best = queue.pop()) {
      const { left, right, id } = best;
      if (symbols[left] !== best.leftId || symbols[right] !== best.rightId || next[left] !== right) continue;
      symbols[left] = id;
      symbols[right] = GONE;
      keys[left] = keys[left]! + keys[right]!;
      next[left] = next[right]!;
      if (next[left]! < symbols.length) before[next[left]!] = left;
      offer(before[left]!, left);
      offer(left, next[left]!);
    }
    return symbols.filter((id) => id !== GONE);
  }
}

const GONE = -1;
const MOST_CHARACTER_BYTES = 4;
const isControl = (id: number): boolean => id === BOS || id === EOS;
/** A byte-order mark is a character like others. */
const newDecoder = () => new TextDecoder("utf-8", { ignoreBOM: true });

function readVocabulary(bytes: Uint8Array, name: string): { pieces: Uint8Array[]; scores: number[] } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const no = (problem: string): never =>
    fail("invalid-tokenizer", `${name} is no tokenizer.bin of llama2.c: ${problem}.`);
  if (bytes.length < 4) no(`it has ${bytes.length} bytes`);
  const longest = view.getInt32(0, true);
  const pieces: Uint8Array[] = [];
  const scores: number[] = [];
  for (let at = 4; at < bytes.length; ) {
    const token = `token ${pieces.length}`;
    if (at + 8 > bytes.length) no(`it ends within ${token}`);
    const score = view.getFloat32(at, true);
    const length = view.getInt32(at + 4, true);
    if (!Number.isFinite(score)) no(`${token} has score ${score}`);
    if (length < 0 || length > longest) no(`${token} has ${length} bytes, and the longest ${longest}`);
    if (at + 8 + length > bytes.length) no(`${token} has ${length} bytes, and only ${bytes.length - at - 8} are left`);
    pieces.push(bytes.slice(at + 8, at + 8 + length));
    scores.push(score);
    at += 8 + length;
  }
  const needed = FIRST_BYTE + BYTES;
  if (pieces.length < needed)
    no(`it has ${pieces.length} tokens, of which the first ${needed} are special ones and bytes`);
  return { pieces, scores };
}
