/** Draws a map: model, layout and view in, pixels out. */
import type { Attention } from "../data.js";
import { formatNumber } from "../format.js";
import type { Look } from "../styles.js";
import { runsRightToLeft, type Token } from "../tokens.js";
import type { Bars } from "./filter.js";
import {
  boldFont,
  LABEL_PITCH,
  LABEL_SIZE,
  type Layout,
  labelFont,
  numbered,
  STRIP,
  STRIP_GAP,
  tickStep,
} from "./layout.js";
import type { Picture } from "./picture.js";
import { type Box, boxOf, type Cell, type Frame, seen, type View } from "./viewport.js";

export type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

/** Where and how a picture is drawn. */
export interface Scene {
  readonly layout: Layout;
  readonly view: View;
  readonly look: Look;
  readonly density: number;
  readonly numbers: boolean;
}

const LINES_FROM = 9;
const NUMBERS_FROM = 27;
const UPRIGHT = 30;

/** Returns whether everything was there; else draw again in the next frame. */
export function drawMap(context: Context, picture: Picture, scene: Scene, patient: boolean): boolean {
  const { layout, view, look, density, numbers } = scene;
  context.save();
  context.setTransform(density, 0, 0, density, 0, 0);
  context.fillStyle = look.paper;
  context.fillRect(0, 0, layout.width, layout.height);
  const { left, top, frame } = layout;
  const complete = picture.tiles.draw(context, frame, view, [left, top], density, patient);
  context.save();
  context.beginPath();
  context.rect(left, top, frame.width, frame.height);
  context.clip();
  context.translate(left, top);
  drawHatches(context, picture, layout, view, look);
  drawLines(context, layout, view, look);
  if (numbers) drawNumbers(context, picture, layout, view, look);
  context.restore();
  context.strokeStyle = look.line;
  context.lineWidth = 1;
  context.strokeRect(left - 0.5, top - 0.5, frame.width + 1, frame.height + 1);
  drawLabels(context, picture.attention, layout, view, look);
  if (picture.bars) drawBars(context, picture.bars, layout, view, look);
  context.restore();
  return complete;
}

const HATCH_FROM = 13;
export const isHatched = ({ aspect }: Frame, cell: number): boolean => Math.min(cell, cell * aspect) >= HATCH_FROM;

/** Masked cells are hatched where they are large enough: nobody has to tell them by a colour. */
function drawHatches(context: Context, picture: Picture, layout: Layout, view: View, look: Look): void {
  const { frame } = layout;
  if (!isHatched(frame, view.cell)) return;
  const { rows, columns } = seen(frame, view);
  context.save();
  context.beginPath();
  for (let query = rows[0]; query < rows[1]; query++)
    for (let key = columns[0]; key < columns[1]; key++) {
      if (!picture.shades.isMasked(picture.shown[query * frame.columns + key]!)) continue;
      const from = key;
      while (key + 1 < columns[1] && picture.shades.isMasked(picture.shown[query * frame.columns + key + 1]!)) key++;
      const { x, y, width, height } = boxOf(frame, view, { query, key: from });
      context.rect(x, y, width * (key - from + 1), height);
    }
  context.clip();
  context.strokeStyle = look.hatch;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = -frame.height; at < frame.width; at += 6) {
    context.moveTo(at, frame.height);
    context.lineTo(at + frame.height, 0);
  }
  context.stroke();
  context.restore();
}

function drawLines(context: Context, layout: Layout, view: View, look: Look): void {
  const { frame } = layout;
  if (Math.min(view.cell, view.cell * frame.aspect) < LINES_FROM) return;
  const { rows, columns } = seen(frame, view);
  context.fillStyle = look.paper;
  for (let query = rows[0] + 1; query < rows[1]; query++)
    context.fillRect(0, boxOf(frame, view, { query, key: 0 }).y - 0.5, frame.width, 1);
  for (let key = columns[0] + 1; key < columns[1]; key++)
    context.fillRect(boxOf(frame, view, { query: 0, key }).x - 0.5, 0, 1, frame.height);
}

function drawNumbers(context: Context, picture: Picture, layout: Layout, view: View, look: Look): void {
  const { frame } = layout;
  const size = Math.min(view.cell, view.cell * frame.aspect * 1.6);
  if (size < NUMBERS_FROM) return;
  const { rows, columns } = seen(frame, view);
  context.font = `500 ${size >= 40 ? 12 : 10.5}px ${look.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let query = rows[0]; query < rows[1]; query++)
    for (let key = columns[0]; key < columns[1]; key++) {
      const at = query * frame.columns + key;
      const { x, y, width, height } = boxOf(frame, view, { query, key });
      const value = picture.matrix[at]!;
      context.fillStyle = picture.shades.isMasked(value) ? look.muted : picture.shades.ink(picture.shown[at]!);
      context.fillText(cellText(value, size), x + width / 2, y + height / 2 + 0.5, width - 2);
    }
}

/** ".31" where there is no room for "0.312". */
export function cellText(value: number, size: number): string {
  const text = formatNumber(value, size >= 46 ? 3 : 2);
  return size < 36 ? text.replace(/^(−?)0\./, "$1.") : text;
}

function clipped(context: Context, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  const letters = [...text];
  while (letters.length > 1 && context.measureText(`${letters.join("")}…`).width > width) letters.pop();
  return `${letters.join("")}…`;
}

/** One label, its direction its own, at the end (of rows) or over the middle (of columns). */
export function drawLabel(
  context: Context,
  token: Token,
  axis: "query" | "key",
  box: Box,
  layout: Layout,
  slanted: boolean,
): void {
  context.save();
  context.direction = runsRightToLeft(token.label) ? "rtl" : "ltr";
  context.textBaseline = "middle";
  if (axis === "query") {
    context.textAlign = "right";
    context.fillText(
      clipped(context, token.label, layout.left - 10),
      layout.left - 6,
      layout.top + box.y + box.height / 2,
    );
  } else {
    context.translate(layout.left + box.x + box.width / 2, layout.top - 5);
    if (slanted) context.rotate(-Math.PI / 4);
    context.textAlign = slanted ? "left" : "center";
    context.fillText(clipped(context, token.label, layout.keyLabel + 1), 0, slanted ? 0 : -LABEL_SIZE / 2);
  }
  context.restore();
}

function drawLabels(context: Context, attention: Attention, layout: Layout, view: View, look: Look): void {
  const { frame } = layout;
  const { rows, columns } = seen(frame, view);
  context.font = labelFont(look.font);
  context.fillStyle = look.muted;
  const rowHeight = view.cell * frame.aspect;
  const inside = (at: number, size: number, from: number, to: number) =>
    at + size / 2 > from - 1 && at + size / 2 < to + 1;
  const sparse = (cell: number) => cell < LABEL_PITCH;
  const slanted = isSlanted(layout, view);
  const rowStep = sparse(rowHeight) ? tickStep(rowHeight, 32) : 1;
  for (let query = Math.ceil(rows[0] / rowStep) * rowStep; query < rows[1]; query += rowStep) {
    const box = boxOf(frame, view, { query, key: 0 });
    const token = attention.queryTokens[query];
    if (token && inside(box.y, box.height, 0, frame.height))
      drawLabel(context, rowStep > 1 ? numbered(token) : token, "query", box, layout, false);
  }
  const columnStep = sparse(view.cell) ? tickStep(view.cell, 48) : 1;
  for (let key = Math.ceil(columns[0] / columnStep) * columnStep; key < columns[1]; key += columnStep) {
    const box = boxOf(frame, view, { query: 0, key });
    const token = attention.keyTokens[key];
    if (token && inside(box.x, box.width, 0, frame.width))
      drawLabel(context, columnStep > 1 ? numbered(token) : token, "key", box, layout, slanted && columnStep === 1);
  }
}

/** Column labels stand upright where all of them have room. */
export const isSlanted = (layout: Layout, view: View): boolean => layout.keyLabel > view.cell - layout.keyGap;

function drawBars(context: Context, bars: Bars, layout: Layout, view: View, look: Look): void {
  const { left, top, frame } = layout;
  const { rows, columns } = seen(frame, view);
  const length = STRIP - 2;
  context.fillStyle = look.muted;
  context.globalAlpha = 0.55;
  drawStrip(
    bars.queries,
    rows,
    (index) => boxOf(frame, view, { query: index, key: 0 }).y,
    view.cell * frame.aspect,
    frame.height,
    (at, size, share) => context.fillRect(left + frame.width + STRIP_GAP, top + at, share * length, size),
  );
  drawStrip(
    bars.keys,
    columns,
    (index) => boxOf(frame, view, { query: 0, key: index }).x,
    view.cell,
    frame.width,
    (at, size, share) => context.fillRect(left + at, top + frame.height + STRIP_GAP, size, share * length),
  );
}

/** Bars of a strip; where several share a pixel the longest is seen. */
function drawStrip(
  shares: Float64Array | null,
  [from, to]: readonly [number, number],
  placeOf: (index: number) => number,
  cell: number,
  end: number,
  bar: (at: number, size: number, share: number) => void,
): void {
  if (!shares) return;
  const step = Math.max(1, Math.ceil(1 / cell));
  const gap = cell >= 6 ? 1 : 0;
  for (let index = Math.floor(from / step) * step; index < to; index += step) {
    let share = 0;
    for (let each = index; each < Math.min(index + step, to); each++) share = Math.max(share, shares[each]!);
    const start = Math.max(0, placeOf(index) + gap / 2);
    const size = Math.min(end, placeOf(index + step) - gap / 2) - start;
    if (size > 0 && share > 0) bar(start, size, share);
  }
}

/** What is pointed at: its row and column, the cell, and its labels. */
export function drawPointer(
  context: Context,
  attention: Attention,
  { layout, view, look, density }: Scene,
  cell: Cell,
  locked: boolean,
): void {
  context.save();
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, layout.width, layout.height);
  const { left, top, frame } = layout;
  const box = boxOf(frame, view, cell);
  context.save();
  context.beginPath();
  context.rect(left - 1, top - 1, frame.width + 2, frame.height + 2);
  context.clip();
  context.translate(left, top);
  context.strokeStyle = look.accent;
  context.lineWidth = 1;
  context.globalAlpha = 0.75;
  context.strokeRect(-2, box.y, frame.width + 4, box.height);
  context.strokeRect(box.x, -2, box.width, frame.height + 4);
  context.globalAlpha = 1;
  const grown = growing(box);
  context.strokeStyle = look.paper;
  context.lineWidth = locked ? 6 : 4.5;
  context.strokeRect(grown.x, grown.y, grown.width, grown.height);
  context.strokeStyle = look.accent;
  context.lineWidth = locked ? 3.5 : 2;
  context.strokeRect(grown.x, grown.y, grown.width, grown.height);
  context.restore();
  drawPointedLabel(context, attention.queryTokens[cell.query], "query", box, layout, look, isSlanted(layout, view));
  drawPointedLabel(context, attention.keyTokens[cell.key], "key", box, layout, look, isSlanted(layout, view));
  context.restore();
}

/** A cell too small to be seen is marked by a box around it. */
function growing({ x, y, width, height }: Box): Box {
  const w = Math.max(0, 7 - width) / 2;
  const h = Math.max(0, 7 - height) / 2;
  return { x: x - w, y: y - h, width: width + 2 * w, height: height + 2 * h };
}

/** In front of the other labels, which it may hide. */
function drawPointedLabel(
  context: Context,
  token: Token | undefined,
  axis: "query" | "key",
  box: Box,
  layout: Layout,
  look: Look,
  slanted: boolean,
): void {
  const { left, top, frame } = layout;
  const middle = axis === "query" ? box.y + box.height / 2 : box.x + box.width / 2;
  if (!token || middle < 0 || middle > (axis === "query" ? frame.height : frame.width)) return;
  context.font = boldFont(look.font);
  // What has room stands upright, though its neighbours may not.
  const leans = slanted && context.measureText(token.label).width > UPRIGHT;
  context.fillStyle = look.paper;
  if (axis === "query") context.fillRect(0, top + middle - 9, left - 2, 18);
  else {
    context.save();
    context.translate(left + middle, top - 5);
    if (leans) context.rotate(-Math.PI / 4);
    const width = Math.min(context.measureText(token.label).width, layout.keyLabel) + 6;
    if (leans) context.fillRect(-3, -9, width, 18);
    else context.fillRect(-width / 2, -LABEL_SIZE - 5, width, LABEL_SIZE + 8);
    context.restore();
  }
  context.fillStyle = look.accent;
  drawLabel(context, token, axis, box, layout, leans);
}
