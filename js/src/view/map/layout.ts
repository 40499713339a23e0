/** Where the parts of a map go: labels left and above, sums right and below. */
import type { Attention } from "../data.js";
import type { Token } from "../tokens.js";
import { type Frame, frameFor } from "./viewport.js";

export const LABEL_SIZE = 12;
const MOST_LABEL = 108;
const SPARSE_LABEL = 56;
/** Room of a strip of sums, with its distance from the matrix. */
export const STRIP = 30;
export const STRIP_GAP = 5;
const EDGE = 2;
/** Rows and columns thinner than this have no room for words. */
export const LABEL_PITCH = 12;
/** So many labels are measured at most; the rest is not wider, or is cut. */
const SAMPLES = 400;

export interface Layout {
  /** Of the whole picture. */
  readonly width: number;
  readonly height: number;
  /** Of the matrix's window. */
  readonly left: number;
  readonly top: number;
  readonly frame: Frame;
  /** Widest column label. */
  readonly keyLabel: number;
  /** What lies between two upright column labels at least; single characters stand as in running text. */
  readonly keyGap: number;
  readonly slanted: boolean;
  readonly strips: boolean;
}

export type Measure = (text: string) => number;

function widest(tokens: readonly Token[], measure: Measure, most: number): number {
  const step = Math.max(1, Math.floor(tokens.length / SAMPLES));
  let width = 0;
  for (let i = 0; i < tokens.length; i += step) width = Math.max(width, measure(tokens[i]?.label ?? ""));
  return Math.min(most, Math.ceil(width));
}

export const labelFont = (font: string): string => `500 ${LABEL_SIZE}px ${font}`;
/** Of the labels that are pointed at; room is kept for them. */
export const boldFont = (font: string): string => `700 ${LABEL_SIZE}px ${font}`;

/** `room`: width there is; `height`: the most the picture may have. */
export function layoutMap(
  attention: Attention,
  room: number,
  height: number,
  density: number,
  measure: Measure,
  strips: boolean,
): Layout {
  const most = Math.min(MOST_LABEL, Math.round(room / 4));
  const strip = strips ? STRIP + STRIP_GAP : EDGE;
  const keyGap = attention.keyTokens.every(({ label }) => [...label].length < 2) ? 0 : 4;
  const fit = (slanted: boolean, queryLabel: number, keyLabel: number): Layout => {
    const left = queryLabel + 10;
    const top = (slanted ? Math.ceil(keyLabel * 0.71 + 14) : LABEL_SIZE + 10) + EDGE;
    // The last slanted label leans out over the right edge.
    const lean = slanted ? Math.ceil(Math.min(keyLabel * 0.71, 70)) : 0;
    const right = Math.max(strip, lean);
    const frame = frameFor(
      attention.queryLength,
      attention.keyLength,
      room - left - right,
      height - top - strip,
      density,
    );
    return {
      width: Math.ceil(left + frame.width + right),
      height: Math.ceil(top + frame.height + strip),
      left,
      top,
      frame,
      keyLabel,
      keyGap,
      slanted,
      strips,
    };
  };
  let queryLabel = widest(attention.queryTokens, measure, most);
  let widestKey = widest(attention.keyTokens, measure, most);
  const first = fit(false, queryLabel, widestKey).frame;
  // Where tokens have no room, numbers stand in their places.
  const numbersOf = (tokens: readonly Token[]) => widest(tokens.slice(-1).map(numbered), measure, most);
  if (first.fit * first.aspect < LABEL_PITCH) queryLabel = Math.max(queryLabel, numbersOf(attention.queryTokens));
  if (first.fit < LABEL_PITCH) widestKey = Math.max(widestKey, numbersOf(attention.keyTokens));
  const upright = fit(false, queryLabel, widestKey);
  if (widestKey <= upright.frame.fit - keyGap) return upright;
  // Where labels are seen only after zooming in they must do with less.
  const slanted = fit(
    true,
    queryLabel,
    upright.frame.fit < LABEL_PITCH ? Math.min(widestKey, SPARSE_LABEL) : widestKey,
  );
  if (first.fit < LABEL_PITCH || slanted.frame.fit >= LABEL_PITCH) return slanted;
  // Leaning they take room, and then there is none for words.
  const [queries, keys] = [attention.queryTokens, attention.keyTokens].map(numbersOf);
  return fit(true, Math.max(queryLabel, queries!), Math.max(Math.min(widestKey, SPARSE_LABEL), keys!));
}

const NUMBER = /^\p{Nd}[\p{Nd}\s.,’']*$/u;

/** A token with its place as its label, for an axis whose labels have no room; what is a number itself keeps its own. */
export const numbered = (token: Token): Token =>
  NUMBER.test(token.label) ? token : { ...token, label: String(token.position) };

/** Numbers on an axis whose labels have no room: 0, 500, 1000 …, at least `pitch` pixels apart. */
export function tickStep(cell: number, pitch: number): number {
  for (let power = 1; ; power *= 10)
    for (const factor of [1, 2, 5]) if (factor * power * cell >= pitch) return factor * power;
}
