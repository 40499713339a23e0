/** Texts as tokens, and the windows of them that a model sees. */
import { fail } from "../errors.js";
import type { TextTokenizer } from "../model/tokenizer.js";
import { drawBelow, halvesOf, hash32 } from "./random.js";
import { characterCount } from "./text.js";

/** One part of the text. */
export interface TokenPart {
  readonly ids: Int32Array;
  /** Code points of its text. */
  readonly characters: number;
}

/** Documents one after the other; the end token stands before each and behind the last. */
export function encodeDocuments(
  documents: readonly string[],
  tokenizer: TextTokenizer,
  endId: number | undefined,
): TokenPart {
  const end = endId === undefined ? [] : [endId];
  const parts = documents.map((text) => Int32Array.from(tokenizer.encode(text, false)));
  const ids = new Int32Array(parts.reduce((sum, part) => sum + end.length + part.length, end.length));
  let at = 0;
  for (const part of [...parts, []]) {
    ids.set(end, at);
    ids.set(part, at + end.length);
    at += end.length + part.length;
  }
  return { ids, characters: characterCount(documents) };
}

/** 64 bits of tokens, in hexadecimal: the same for the same texts and tokenizer. */
export function fingerprint(...parts: readonly Int32Array[]): string {
  const lanes = [0, 1].map((lane) => {
    let hash = lane;
    for (const part of parts) {
      hash = hash32(hash, part.length);
      for (let at = 0; at < part.length; at += 64) hash = hash32(hash, ...part.subarray(at, at + 64));
    }
    return hash.toString(16).padStart(8, "0");
  });
  return lanes.join("");
}

/** What one call of the core takes: inputs [batch, length] and what follows each of them. */
export interface WindowBatch {
  readonly tokens: Int32Array;
  /** −1 = not counted. */
  readonly targets: Int32Array;
}

export function refuseShort(part: TokenPart, length: number, what: string, cure: string): void {
  if (part.ids.length <= length)
    fail(
      "text-too-short",
      `trainer: ${what} has ${part.ids.length} tokens; windows of ${length} need at least ${length + 1}. ${cure}`,
    );
}

/** `batch` windows of the text, at places that depend on seed, step, micro-batch and row alone. */
export function sampleWindows(
  { ids }: TokenPart,
  { batch, length }: { batch: number; length: number },
  { seed, step, micro }: { seed: number; step: number; micro: number },
): WindowBatch {
  const tokens = new Int32Array(batch * length);
  const targets = new Int32Array(batch * length);
  for (let row = 0; row < batch; row++) {
    const start = drawBelow(ids.length - length, ...halvesOf(seed), step, micro, row);
    tokens.set(ids.subarray(start, start + length), row * length);
    targets.set(ids.subarray(start + 1, start + length + 1), row * length);
  }
  return { tokens, targets };
}

/** A stretch of a text: tokens from `start` on, of whose predictions those from `counted` on are counted. */
export interface Window {
  readonly start: number;
  readonly counted: number;
}

/**
 * Windows that cover a text; each begins `stride` tokens after the one before, and counts what that one has not. At most `most` of them,
 * evenly chosen.
 */
export function coveringWindows(tokens: number, length: number, stride: number, most: number): Window[] {
  const windows: Window[] = [{ start: 0, counted: 0 }];
  for (let start = stride; start + length - stride < tokens - 1; start += stride)
    windows.push({ start, counted: length - stride });
  if (windows.length <= most) return windows;
  return Array.from({ length: most }, (_, n) => windows[Math.floor((n * windows.length) / most)]!);
}

/** Some windows as a batch; rows that are left over count nothing. */
export function windowBatch(
  ids: Int32Array,
  windows: readonly Window[],
  { batch, length }: { batch: number; length: number },
): WindowBatch {
  const tokens = new Int32Array(batch * length);
  const targets = new Int32Array(batch * length).fill(-1);
  windows.forEach(({ start, counted }, row) => {
    tokens.set(ids.subarray(start, Math.min(start + length, ids.length)), row * length);
    const from = start + counted + 1;
    targets.set(ids.subarray(from, start + length + 1), row * length + counted);
  });
  return { tokens, targets };
}
