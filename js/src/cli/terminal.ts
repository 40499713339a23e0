/** What the terminal can show, and text measured in its columns (a Chinese character takes two). */
import { Chalk, type ChalkInstance, type ColorSupportLevel, supportsColor } from "chalk";
import stringWidth from "string-width";

export interface Terminal {
  readonly columns: number;
  readonly paint: ChalkInstance;
  /** Cells are painted with a background colour (256 colours or more); otherwise they are shades. */
  readonly colored: boolean;
  /** Shades from nothing to full, in characters the terminal has. */
  readonly shades: readonly string[];
  readonly symbols: { readonly infinity: string; readonly minus: string; readonly line: string };
}

const DEFAULT_COLUMNS = 100;
const MIN_COLUMNS = 40;

/** FORCE_COLOR beats NO_COLOR, as in Node itself; a pipe or a file gets no colour and 100 columns. */
function colorLevel(env: NodeJS.ProcessEnv): ColorSupportLevel {
  // Exactly the level that is asked for: the library takes it as the least only.
  if (/^[0-3]$/.test(env.FORCE_COLOR ?? "")) return Number(env.FORCE_COLOR) as ColorSupportLevel;
  if (env.NO_COLOR && env.FORCE_COLOR === undefined) return 0;
  return supportsColor === false ? 0 : supportsColor.level;
}

export function detectTerminal(env: NodeJS.ProcessEnv = process.env): Terminal {
  const level = colorLevel(env);
  const plain = env.TERM === "linux" || env.TERM === "dumb";
  return {
    columns: Math.max(MIN_COLUMNS, process.stdout.columns || Number(env.COLUMNS) || DEFAULT_COLUMNS),
    paint: new Chalk({ level }),
    colored: level >= 2,
    shades: plain ? [" ", ".", ":", "+", "#"] : [" ", "░", "▒", "▓", "█"],
    symbols: plain ? { infinity: "inf", minus: "-", line: "-" } : { infinity: "∞", minus: "−", line: "─" },
  };
}

export const widthOf = (text: string): number => stringWidth(text);

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** The longest beginning that fits, with … where something was cut off. Never splits a character. */
export function abbreviate(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  if (width < 2) return width === 1 ? "…" : "";
  let kept = "";
  for (const { segment } of graphemes.segment(text)) {
    if (widthOf(kept + segment) > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

export function pad(text: string, width: number, align: "left" | "right" = "left"): string {
  const space = " ".repeat(Math.max(0, width - widthOf(text)));
  return align === "left" ? text + space : space + text;
}

/** A heading on a line that runs through. */
export function heading(text: string, terminal: Terminal): string {
  const { line } = terminal.symbols;
  const title = abbreviate(text, terminal.columns - 8);
  const rest = Math.max(2, Math.min(terminal.columns, DEFAULT_COLUMNS) - widthOf(title) - 4);
  return `${terminal.paint.dim(line.repeat(2))} ${terminal.paint.bold(title)} ${terminal.paint.dim(line.repeat(rest))}`;
}

/** Breaks at spaces, and between words where there are none (Chinese); punctuation stays with the word before it. */
export function wrap(text: string, columns: number): string[] {
  const units: string[] = [];
  for (const { segment, isWordLike } of new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)) {
    const starts = isWordLike || segment.trim() === "" || units.length === 0;
    if (starts) units.push(segment);
    else units[units.length - 1] += segment;
  }
  const lines = [""];
  for (const unit of units) {
    const line = lines[lines.length - 1]!;
    if (widthOf(line + unit.trimEnd()) <= columns) lines[lines.length - 1] = line + unit;
    else lines.push(...splitWide(unit.trimStart(), columns));
  }
  return lines.map((line) => line.trimEnd()).filter((line) => line !== "");
}

/** A word wider than the line goes on in the next. */
function splitWide(word: string, columns: number): string[] {
  const parts = [""];
  for (const { segment } of graphemes.segment(word)) {
    if (widthOf(parts[parts.length - 1]! + segment) > columns) parts.push("");
    parts[parts.length - 1] += segment;
  }
  return parts;
}
