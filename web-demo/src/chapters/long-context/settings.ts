/** What the reader asks for, and its place in the address: len=4096&pos=rotary&win=256&row=900 */
import { LENGTHS } from "./inputs";

export const POSITIONS = ["none", "rotary", "alibi"] as const;
export type Positions = (typeof POSITIONS)[number];
export const WINDOWS = [0, 1024, 256] as const;

export interface Settings {
  readonly length: number;
  readonly positions: Positions;
  /** How many of the last words can be seen, the word itself counted; 0 = all. */
  readonly window: number;
  /** The word whose look is spelled out. */
  readonly row: number;
}

/** Of the whole text the word 4968 is “whale”. */
const START: Settings = { length: 8192, positions: "none", window: 0, row: 4968 };

const startRow = (length: number) => Math.min(START.row, length - 1);

export function readSettings(given: URLSearchParams): Settings {
  const length = LENGTHS.find((each) => String(each) === given.get("len")) ?? START.length;
  const row = Number(given.get("row") ?? Number.NaN);
  return {
    length,
    positions: POSITIONS.find((each) => each === given.get("pos")) ?? START.positions,
    window: WINDOWS.find((each) => String(each) === given.get("win")) ?? START.window,
    row: Number.isInteger(row) && row >= 0 && row < length ? row : startRow(length),
  };
}

export function writeSettings({ length, positions, window, row }: Settings): URLSearchParams {
  const out = new URLSearchParams();
  if (length !== START.length) out.set("len", String(length));
  if (positions !== START.positions) out.set("pos", positions);
  if (window !== START.window) out.set("win", String(window));
  if (row !== startRow(length)) out.set("row", String(row));
  return out;
}
