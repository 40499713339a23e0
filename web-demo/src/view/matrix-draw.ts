/** Draws one matrix on its canvas: state and layout in, pixels out. */
import { at, type Grid, largest } from "../engine/grid";
import { formatNumber } from "./format";
import { LABEL_SIZE, MAX_LABEL, type MatrixLayout } from "./matrix-layout";
import { inkOn, type Palette, type ScaleKind } from "./palette";

export interface Highlight {
  readonly row?: number;
  readonly col?: number;
}

export interface MatrixPicture {
  readonly grid: Grid;
  readonly rows: readonly string[];
  readonly cols: readonly string[];
  readonly scale: ScaleKind;
  /** Largest magnitude of the colour scale; default the matrix's own. */
  readonly extent?: number;
  /** Columns per group: a fine line parts the groups. */
  readonly groups?: number;
  /** Cells to be pointed out, such as a future that leaks in. */
  readonly marked?: (row: number, col: number) => boolean;
}

export function labelFont(palette: Palette): string {
  return `500 ${LABEL_SIZE}px ${palette.sans}`;
}

function clipped(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  const letters = [...text];
  while (letters.length > 1 && context.measureText(`${letters.join("")}…`).width > width) letters.pop();
  return `${letters.join("")}…`;
}

function hatch(context: CanvasRenderingContext2D, x: number, y: number, size: number, palette: Palette): void {
  context.save();
  context.beginPath();
  context.roundRect(x, y, size, size, Math.min(4, size / 5));
  context.clip();
  context.fillStyle = palette.hatchPaper;
  context.fillRect(x, y, size, size);
  context.strokeStyle = palette.hatch;
  context.lineWidth = 1;
  context.beginPath();
  for (let offset = -size; offset < size; offset += 6) {
    context.moveTo(x + offset, y + size);
    context.lineTo(x + offset + size, y);
  }
  context.stroke();
  context.restore();
}

function drawLabels(
  context: CanvasRenderingContext2D,
  layout: MatrixLayout,
  picture: MatrixPicture,
  highlights: readonly Highlight[],
  palette: Palette,
): void {
  const { cell, left, top } = layout;
  const lit = (kind: "row" | "col", index: number) => highlights.some((highlight) => highlight[kind] === index);
  context.font = labelFont(palette);
  context.textBaseline = "middle";
  context.textAlign = "right";
  picture.rows.forEach((label, row) => {
    context.fillStyle = lit("row", row) ? palette.ink : palette.muted;
    context.fillText(clipped(context, label, MAX_LABEL), left - 13, top + (row + 0.5) * cell);
  });
  picture.cols.forEach((label, col) => {
    context.fillStyle = lit("col", col) ? palette.ink : palette.muted;
    const text = clipped(context, label, MAX_LABEL);
    context.save();
    context.translate(left + (col + 0.5) * cell, top - 9);
    if (layout.slanted) {
      context.rotate(-Math.PI / 4);
      context.textAlign = "left";
      context.fillText(text, 0, -1);
    } else {
      context.textAlign = "center";
      context.fillText(text, 0, -2);
    }
    context.restore();
  });
}

function drawBrackets(context: CanvasRenderingContext2D, layout: MatrixLayout, palette: Palette): void {
  const { left, top, cell, rows, cols } = layout;
  const tick = 5;
  context.strokeStyle = palette.muted;
  context.lineWidth = 1.25;
  for (const [x, inward] of [
    [left - 4.5, tick],
    [left + cols * cell + 4.5, -tick],
  ] as const) {
    context.beginPath();
    context.moveTo(x + inward, top - 1.5);
    context.lineTo(x, top - 1.5);
    context.lineTo(x, top + rows * cell + 1.5);
    context.lineTo(x + inward, top + rows * cell + 1.5);
    context.stroke();
  }
}

function drawGroups(context: CanvasRenderingContext2D, layout: MatrixLayout, groups: number, palette: Palette): void {
  const { left, top, cell, rows, cols } = layout;
  context.strokeStyle = palette.ink;
  context.lineWidth = 1.5;
  for (let col = groups; col < cols; col += groups) {
    context.beginPath();
    context.moveTo(left + col * cell, top + 1);
    context.lineTo(left + col * cell, top + rows * cell - 1);
    context.stroke();
  }
}

function drawCell(
  context: CanvasRenderingContext2D,
  layout: MatrixLayout,
  picture: MatrixPicture,
  colour: (value: number) => string,
  row: number,
  col: number,
  palette: Palette,
): void {
  const { cell, gap, left, top, digits, fontSize } = layout;
  const value = at(picture.grid, row, col);
  const size = cell - gap;
  const x = left + col * cell + gap / 2;
  const y = top + row * cell + gap / 2;
  const masked = value === Number.NEGATIVE_INFINITY;
  const ground = masked ? palette.hatchPaper : colour(value);
  if (masked) hatch(context, x, y, size, palette);
  else {
    context.fillStyle = ground;
    context.beginPath();
    context.roundRect(x, y, size, size, Math.min(4, size / 5));
    context.fill();
  }
  if (picture.marked?.(row, col)) {
    context.strokeStyle = palette.leak;
    context.lineWidth = size >= 24 ? 2.5 : 1.5;
    context.beginPath();
    context.roundRect(x + 1.5, y + 1.5, size - 3, size - 3, Math.min(3, size / 6));
    context.stroke();
    // A corner flag, for those who cannot tell the outline's colour.
    const flag = Math.min(9, size / 3);
    context.fillStyle = palette.leak;
    context.beginPath();
    context.moveTo(x + size - 0.5, y + 0.5);
    context.lineTo(x + size - 0.5 - flag, y + 0.5);
    context.lineTo(x + size - 0.5, y + 0.5 + flag);
    context.fill();
  }
  if (digits === null && !(masked && size >= 18)) return;
  context.fillStyle = masked ? palette.muted : inkOn(ground, palette);
  context.font = `${masked ? 600 : 500} ${fontSize}px ${palette.sans}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(formatNumber(value, digits ?? 1), x + size / 2, y + size / 2 + 0.5);
}

function drawHighlights(
  context: CanvasRenderingContext2D,
  layout: MatrixLayout,
  highlights: readonly Highlight[],
  locked: boolean,
  palette: Palette,
): void {
  const { cell, left, top, rows, cols } = layout;
  for (const { row, col } of highlights) {
    const x = col === undefined ? left : left + col * cell;
    const y = row === undefined ? top : top + row * cell;
    const width = col === undefined ? cols * cell : cell;
    const height = row === undefined ? rows * cell : cell;
    context.strokeStyle = palette.paper;
    context.lineWidth = 4.5;
    context.beginPath();
    context.roundRect(x, y, width, height, 5);
    context.stroke();
    context.strokeStyle = palette.focus;
    context.lineWidth = locked && row !== undefined && col !== undefined ? 3.5 : 2.25;
    context.stroke();
  }
}

export function drawMatrix(
  canvas: HTMLCanvasElement,
  layout: MatrixLayout,
  picture: MatrixPicture,
  highlights: readonly Highlight[],
  locked: boolean,
  palette: Palette,
): void {
  const density = Math.max(1, window.devicePixelRatio);
  canvas.width = Math.round(layout.width * density);
  canvas.height = Math.round(layout.height * density);
  canvas.style.width = `${layout.width}px`;
  canvas.style.height = `${layout.height}px`;
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(density, density);
  context.clearRect(0, 0, layout.width, layout.height);
  const signed = palette.signed(picture.extent ?? (largest(picture.grid) || 1));
  const colour = (value: number): string => (picture.scale === "weight" ? palette.weight(value) : signed(value));
  for (let row = 0; row < layout.rows; row++)
    for (let col = 0; col < layout.cols; col++) drawCell(context, layout, picture, colour, row, col, palette);
  if (picture.groups) drawGroups(context, layout, picture.groups, palette);
  drawBrackets(context, layout, palette);
  drawLabels(context, layout, picture, highlights, palette);
  drawHighlights(context, layout, highlights, locked, palette);
}
