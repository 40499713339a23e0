/** Matrices as terminal pictures: heat maps of weights and tables of numbers, set side by side where they fit. */
import { abbreviate, pad, type Terminal, widthOf } from "./terminal.js";

/** Lines of one visible width, ready to be set beside others. */
export interface Block {
  readonly lines: readonly string[];
  readonly width: number;
}

export interface Matrix {
  readonly title: string;
  /** Row-major, [rows.length, columns.length]. */
  readonly values: ArrayLike<number>;
  readonly rows: readonly string[];
  readonly columns: readonly string[];
}

type Paint = (text: string, weight: number) => string;

const GAP = 3;
const LABEL_WIDTH = 10;
const WIDEST_CELL = 5;
const NARROWEST_CELL = 2;
/** More rows or columns than this say nothing at a glance: the middle is left out. */
const MOST_SHOWN = 48;
/** Stands for the rows or columns that are left out. */
const ELLIPSIS = -1;

/** Viridis, sampled evenly: readable without colour vision, and in greyscale. */
const COLORS = [
  [68, 1, 84],
  [65, 68, 135],
  [42, 120, 142],
  [34, 168, 132],
  [122, 209, 81],
  [253, 231, 37],
] as const;

/** Weights spread over many keys are small, so tones follow the square root. */
const tone = (weight: number): number => Math.sqrt(Math.min(1, Math.max(0, weight)));

function painter(terminal: Terminal): Paint {
  return (text, weight) => {
    const place = tone(weight) * (COLORS.length - 1);
    const from = Math.min(Math.floor(place), COLORS.length - 2);
    const mix = (channel: 0 | 1 | 2) => {
      const [low, high] = [COLORS[from]![channel], COLORS[from + 1]![channel]];
      return Math.round(low + (high - low) * (place - from));
    };
    const [r, g, b] = [mix(0), mix(1), mix(2)];
    const onBright = 0.2126 * r + 0.7152 * g + 0.0722 * b > 110;
    const background = terminal.paint.bgRgb(r, g, b);
    return onBright ? background.rgb(0, 0, 0)(text) : background.rgb(255, 255, 255)(text);
  };
}

/** One weight in `width` columns. A weight of exactly 0 is a dot, so that "masked" and "small" differ. */
function weightCell(weight: number, width: number, terminal: Terminal, paint: Paint): string {
  const percent = String(Math.round(weight * 100));
  if (weight === 0) return terminal.paint.dim(pad("·", width, "right"));
  if (terminal.colored) return paint(width > NARROWEST_CELL ? pad(percent, width, "right") : " ".repeat(width), weight);
  const shade =
    terminal.shades[Math.min(terminal.shades.length - 1, Math.round(tone(weight) * terminal.shades.length))]!;
  if (width === NARROWEST_CELL) return shade.repeat(width);
  const text = shade + pad(percent, 2, "right");
  return pad(widthOf(text) > width ? percent : text, width, "right");
}

/** Which of `count` to show in `room` places: all, or both ends around an ellipsis. */
function shownIndices(count: number, room: number): number[] {
  const all = Array.from({ length: count }, (_, i) => i);
  if (count <= room) return all;
  const head = Math.ceil((room - 1) / 2);
  return [...all.slice(0, head), ELLIPSIS, ...all.slice(count - (room - 1 - head))];
}

/** Numbers above the columns: each where it does not touch the one before. */
function indexHeader(shown: readonly number[], cellWidth: number): string {
  let line = "";
  shown.forEach((index, place) => {
    const text = index === ELLIPSIS ? "…" : String(index);
    const start = Math.max(place * cellWidth, (place + 1) * cellWidth - text.length);
    if (line !== "" && start <= line.length) return;
    if (start + text.length > shown.length * cellWidth) return;
    line = line.padEnd(start) + text;
  });
  return line.padEnd(shown.length * cellWidth);
}

const rowLabel = (token: string, index: number | undefined, digits: number): string =>
  (index === undefined ? "" : `${pad(String(index), digits, "right")} `) + token;

interface Layout {
  readonly cellWidth: number;
  readonly shownRows: readonly number[];
  readonly shownColumns: readonly number[];
  /** Whether columns are named by number, and the row labels carry the same numbers. */
  readonly numbered: boolean;
  readonly labelWidth: number;
}

/** The widest cells that fit; if even the narrowest do not, the middle tokens are left out. */
function layOut(matrix: Matrix, maxWidth: number): Layout {
  const { rows, columns } = matrix;
  const digits = String(Math.max(rows.length, columns.length) - 1).length;
  const widestRow = Math.max(1, ...rows.map(widthOf));
  const widestColumn = Math.max(1, ...columns.map(widthOf));
  for (let cellWidth = WIDEST_CELL; ; --cellWidth) {
    const numbered = widestColumn > Math.max(NARROWEST_CELL, cellWidth - 1);
    const labelWidth = Math.min(widestRow, LABEL_WIDTH) + (numbered ? digits + 1 : 0);
    const room = Math.min(MOST_SHOWN, Math.floor((maxWidth - labelWidth - 1) / cellWidth));
    if (columns.length <= room || cellWidth === NARROWEST_CELL) {
      const shownRows = shownIndices(rows.length, Math.max(3, columns.length <= room ? MOST_SHOWN : room));
      return {
        cellWidth,
        numbered,
        labelWidth,
        shownRows,
        shownColumns: shownIndices(columns.length, Math.max(3, room)),
      };
    }
  }
}

/** The columns a heat map needs to show every token, with the narrowest cells. */
export function narrowestWidth(matrix: Matrix): number {
  const { labelWidth } = layOut(matrix, 0);
  return labelWidth + 1 + Math.min(matrix.columns.length, MOST_SHOWN) * NARROWEST_CELL;
}

/** Attention weights (0…1) as a heat map: a row per query, a column per key, cells in percent where there is room. */
export function heatMap(matrix: Matrix, terminal: Terminal, maxWidth: number = terminal.columns): Block {
  const { cellWidth, shownRows, shownColumns, numbered, labelWidth } = layOut(matrix, maxWidth);
  const digits = String(Math.max(matrix.rows.length, matrix.columns.length) - 1).length;
  const paint = painter(terminal);
  const header = numbered
    ? indexHeader(shownColumns, cellWidth)
    : shownColumns.map((j) => pad(j === ELLIPSIS ? "…" : matrix.columns[j]!, cellWidth, "right")).join("");
  const body = shownRows.map((i) => {
    if (i === ELLIPSIS) return pad("…", labelWidth);
    const label = rowLabel(abbreviate(matrix.rows[i]!, LABEL_WIDTH), numbered ? i : undefined, digits);
    const cells = shownColumns.map((j) => {
      if (j === ELLIPSIS) return pad("…", cellWidth, "right");
      return weightCell(matrix.values[i * matrix.columns.length + j]!, cellWidth, terminal, paint);
    });
    return `${pad(label, labelWidth)} ${cells.join("")}`;
  });
  return block(terminal.paint.bold(matrix.title), [`${" ".repeat(labelWidth)} ${header}`, ...body]);
}

/** A small matrix as numbers, `digits` after the point. `weights` are painted, and an exact 0 among them is just 0. */
export function numberTable(
  matrix: Matrix,
  terminal: Terminal,
  { digits, weights = false, labelled = true }: { digits: number; weights?: boolean; labelled?: boolean },
): Block {
  const { rows, columns, values } = matrix;
  const paint = painter(terminal);
  const written = Array.from(values, (value) => writeNumber(value, weights && value === 0 ? 0 : digits, terminal));
  const cellWidth = 1 + Math.max(...written.map(widthOf), ...columns.map((token) => Math.min(widthOf(token), 5)));
  const labelWidth = labelled ? Math.max(...rows.map(widthOf)) + 1 : 0;
  const header = columns.map((token) => pad(abbreviate(token, cellWidth - 1), cellWidth, "right")).join("");
  const body = rows.map((token, i) => {
    const cells = columns.map((_, j) => {
      const value = values[i * columns.length + j]!;
      const text = pad(written[i * columns.length + j]!, cellWidth, "right");
      if (value === Number.NEGATIVE_INFINITY || (weights && value === 0)) return terminal.paint.dim(text);
      return weights && terminal.colored ? paint(text, value) : text;
    });
    return (labelled ? pad(token, labelWidth) : "") + cells.join("");
  });
  return block(terminal.paint.bold(matrix.title), [" ".repeat(labelWidth) + header, ...body]);
}

function writeNumber(value: number, digits: number, terminal: Terminal): string {
  if (Number.isNaN(value)) return "NaN";
  const { minus, infinity } = terminal.symbols;
  return (value < 0 ? minus : "") + (Number.isFinite(value) ? Math.abs(value).toFixed(digits) : infinity);
}

/** The tones of a heat map with their percents, behind a caption or below it. */
export function legend(caption: string, terminal: Terminal): string[] {
  const paint = painter(terminal);
  const steps = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1];
  const tones = steps.map((weight) => weightCell(weight, WIDEST_CELL, terminal, paint)).join("");
  return widthOf(caption) + 1 + widthOf(tones) <= terminal.columns ? [`${caption} ${tones}`] : [caption, tones];
}

function block(title: string, lines: readonly string[]): Block {
  const width = Math.max(widthOf(title), ...lines.map(widthOf));
  return { lines: [title, ...lines].map((line) => pad(line, width)), width };
}

/** The columns that blocks take when they stand beside each other. */
export const totalWidth = (blocks: readonly Block[]): number =>
  blocks.reduce((sum, { width }) => sum + width + GAP, -GAP);

/** Sets blocks beside each other, as many to a row as fit, in rows of even length. */
export function beside(blocks: readonly Block[], columns: number): string[] {
  let perRow = blocks.length;
  while (perRow > 1 && chunk(blocks, perRow).some((row) => totalWidth(row) > columns)) --perRow;
  const rows = chunk(blocks, Math.ceil(blocks.length / Math.ceil(blocks.length / perRow)));
  return rows.flatMap((row, place) => {
    const height = Math.max(...row.map(({ lines }) => lines.length));
    const lines = Array.from({ length: height }, (_, line) =>
      row
        .map((one) => one.lines[line] ?? " ".repeat(one.width))
        .join(" ".repeat(GAP))
        .trimEnd(),
    );
    return place === 0 ? lines : ["", ...lines];
  });
}

function chunk<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}
