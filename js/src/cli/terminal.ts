/** What the terminal can show, and text measured in its columns (a Chinese character takes two). */
import { Chalk, type ChalkInstance, supportsColor } from "chalk";
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
export function detectTerminal(env: NodeJS.ProcessEnv = process.env): Terminal {
  const refused = Boolean(env.NO_COLOR) && env.FORCE_COLOR === undefined;
  const level = refused || supportsColor === false ? 0 : supportsColor.level;
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

/** Breaks at spaces, or between any two graphemes where there are none (Chinese). */
export function wrap(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = "";
  const breakable = new Intl.Segmenter(undefined, { granularity: "word" });
  for (const { segment, isWordLike } of breakable.segment(text)) {
    // Punctuation stays with the word before it.
    const mayBreak = isWordLike || segment.trim() === "";
    if (mayBreak && widthOf(line + segment) > columns) {
      lines.push(line.trimEnd());
      line = segment.trimStart();
    } else line += segment;
  }
  if (line !== "") lines.push(line.trimEnd());
  return lines;
}
