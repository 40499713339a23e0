/** A map as text that others open: CSV, SVG, HTML. */
import type { Attention } from "../data.js";
import { escaped } from "../dom.js";
import { formatNumber } from "../format.js";
import type { Look } from "../styles.js";
import { runsRightToLeft, type Token } from "../tokens.js";
import type { Bars } from "./filter.js";
import { LABEL_SIZE, type Layout, numbered, STRIP, STRIP_GAP, tickStep } from "./layout.js";
import type { Shades } from "./shades.js";

export interface ExportSource {
  readonly attention: Attention;
  readonly matrix: Float32Array;
  readonly shown: Float32Array;
  readonly shades: Shades;
  readonly bars: Bars | null;
  readonly look: Look;
  /** What it is called. */
  readonly title: string;
  readonly numbers: boolean;
  /** What the hatching is called: drawings that share a page need different names. */
  readonly pattern: string;
}

/** Nine digits give a float32 back exactly. */
const exactly = (value: number): string =>
  Number.isFinite(value) ? String(Number(value.toPrecision(9))) : String(value);

const csvField = (text: string): string => (/[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

const keysLine = ({ keyTokens }: Attention): string[] => ["", ...keyTokens.map(({ label }) => csvField(label))];

function queryLines({ queryTokens, keyLength }: Attention, matrix: Float32Array): string[][] {
  return queryTokens.map(({ label }, query) => [
    csvField(label),
    ...Array.from(matrix.subarray(query * keyLength, (query + 1) * keyLength), exactly),
  ]);
}

const csvLines = (lines: readonly string[][]): string => lines.map((cells) => `${cells.join(",")}\r\n`).join("");

/** RFC 4180: a line of keys, then a line per query, its token first. */
export const csvOf = (attention: Attention, matrix: Float32Array): string =>
  csvLines([keysLine(attention), ...queryLines(attention, matrix)]);

/** Several matrices of the same tokens: the name of each in the first column. */
export function csvOfSteps(steps: readonly (readonly [name: string, Attention, Float32Array])[]): string {
  const lines = steps.flatMap(([name, attention, matrix]) =>
    queryLines(attention, matrix).map((cells) => [name, ...cells]),
  );
  return csvLines([...steps.slice(0, 1).map(([, attention]) => ["", ...keysLine(attention)]), ...lines]);
}

/** More cells than this are one picture within the SVG. */
const MOST_RECTS = 16_384;

const at = (value: number): string => String(Math.round(value * 100) / 100);

function label(token: Token, x: number, y: number, anchor: "end" | "middle" | "start", turned: boolean): string {
  const direction = runsRightToLeft(token.label);
  // In a line that runs to the left its start is at the right.
  const side = direction && anchor !== "middle" ? (anchor === "end" ? "start" : "end") : anchor;
  const transform = turned ? ` transform="rotate(-45 ${at(x)} ${at(y)})"` : "";
  const turn = direction ? ' direction="rtl" unicode-bidi="isolate"' : "";
  return `<text x="${at(x)}" y="${at(y)}" text-anchor="${side}" dominant-baseline="central"${turn}${transform}>${escaped(token.label)}</text>`;
}

function svgCells(
  { attention, shown, shades, matrix, look, numbers, pattern }: ExportSource,
  { frame }: Layout,
): string {
  const { fit, aspect, rows, columns } = frame;
  const height = fit * aspect;
  const cells: string[] = [];
  const texts: string[] = [];
  for (let query = 0; query < rows; query++)
    for (let key = 0; key < columns; key++) {
      const value = shown[query * columns + key]!;
      const masked = shades.isMasked(value);
      const gap = fit >= 9 ? 0.5 : 0;
      const x = key * fit + gap;
      const y = query * height + gap;
      const fill = masked && fit >= 14 ? `url(#${pattern})` : shades.css(value);
      cells.push(
        `<rect x="${at(x)}" y="${at(y)}" width="${at(fit - 2 * gap)}" height="${at(height - 2 * gap)}" fill="${fill}" data-query="${query}" data-key="${key}" data-value="${exactly(matrix[query * columns + key]!)}"/>`,
      );
      if (numbers && fit >= 27)
        texts.push(
          `<text x="${at((key + 0.5) * fit)}" y="${at((query + 0.5) * height)}" fill="${masked ? look.muted : shades.ink(value)}">${formatNumber(matrix[query * columns + key]!, 2)}</text>`,
        );
    }
  const numbersGroup = texts.length
    ? `<g font-size="10.5" text-anchor="middle" dominant-baseline="central">${texts.join("")}</g>`
    : "";
  return `<g shape-rendering="crispEdges" role="presentation" aria-label="${escaped(attention.kind)}">${cells.join("")}</g>${numbersGroup}`;
}

function svgLabels({ attention, look }: ExportSource, { frame, left, top, slanted }: Layout): string {
  const { fit, aspect, rows, columns } = frame;
  const height = fit * aspect;
  const rowStep = height < 12 ? tickStep(height, 32) : 1;
  const columnStep = fit < 12 ? tickStep(fit, 48) : 1;
  const texts: string[] = [];
  for (let query = 0; query < rows; query += rowStep) {
    const token = attention.queryTokens[query]!;
    texts.push(label(rowStep > 1 ? numbered(token) : token, left - 6, top + (query + 0.5) * height, "end", false));
  }
  for (let key = 0; key < columns; key += columnStep) {
    const token = attention.keyTokens[key]!;
    const turned = slanted && columnStep === 1;
    const y = turned ? top - 5 : top - 5 - LABEL_SIZE / 2;
    texts.push(
      label(columnStep > 1 ? numbered(token) : token, left + (key + 0.5) * fit, y, turned ? "start" : "middle", turned),
    );
  }
  return `<g fill="${look.muted}" font-size="${LABEL_SIZE}" font-weight="500">${texts.join("")}</g>`;
}

function svgBars({ bars, look }: ExportSource, { frame, left, top }: Layout): string {
  if (!bars) return "";
  const { fit, aspect } = frame;
  const height = fit * aspect;
  const gap = fit >= 6 ? 0.5 : 0;
  const rows = Array.from(
    bars.queries ?? [],
    (share, query) =>
      `<rect x="${at(left + frame.width + STRIP_GAP)}" y="${at(top + query * height + gap)}" width="${at(share * (STRIP - 2))}" height="${at(height - 2 * gap)}"/>`,
  );
  const columns = Array.from(
    bars.keys ?? [],
    (share, key) =>
      `<rect x="${at(left + key * fit + gap)}" y="${at(top + frame.height + STRIP_GAP)}" width="${at(fit - 2 * gap)}" height="${at(share * (STRIP - 2))}"/>`,
  );
  return `<g fill="${look.muted}" fill-opacity="0.55">${rows.join("")}${columns.join("")}</g>`;
}

/** The whole matrix as drawing. `picture` is the cells' address where there are too many to be drawn one by one. */
export function svgOf(source: ExportSource, layout: Layout, picture: () => string): string {
  const { look, title, shades, pattern } = source;
  const { width, height, left, top, frame } = layout;
  const many = frame.rows * frame.columns > MOST_RECTS;
  const cells = many
    ? `<image width="${at(frame.width)}" height="${at(frame.height)}" preserveAspectRatio="none" image-rendering="pixelated" href="${picture()}"/>`
    : svgCells(source, layout);
  const masked = shades.css(shades.kind === "scores" ? Number.NEGATIVE_INFINITY : 0);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" font-family="${escaped(look.font)}">`,
    `<title>${escaped(title)}</title>`,
    `<defs><pattern id="${pattern}" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" fill="${masked}"/><path d="M-1 7L7 -1M-1 1L1 -1M5 7L7 5" stroke="${look.hatch}"/></pattern></defs>`,
    `<rect width="${width}" height="${height}" fill="${look.paper}"/>`,
    `<g transform="translate(${at(left)} ${at(top)})">${cells}</g>`,
    svgLabels(source, layout),
    svgBars(source, layout),
    "</svg>",
  ].join("\n");
}

/** More cells than this are a picture in the HTML as well. */
const MOST_TABLE = 4096;

/** Markup that stands alone: a table with coloured cells, or the picture. */
export function htmlOf(source: ExportSource, svg: () => string): string {
  const { attention, matrix, shown, shades, title, look } = source;
  const { queryTokens, keyTokens, keyLength } = attention;
  const caption = escaped(title);
  if (matrix.length > MOST_TABLE) return `<figure>\n${svg()}\n<figcaption>${caption}</figcaption>\n</figure>\n`;
  const head = keyTokens.map((token) => `<th scope="col"><bdi dir="auto">${escaped(token.label)}</bdi></th>`).join("");
  const rows = queryTokens.map((token, query) => {
    const cells = Array.from({ length: keyLength }, (_, key) => {
      const index = query * keyLength + key;
      const value = matrix[index]!;
      const ink = shades.isMasked(shown[index]!) ? look.muted : shades.ink(shown[index]!);
      return `<td title="${exactly(value)}" style="background:${shades.css(shown[index]!)};color:${ink}">${formatNumber(value)}</td>`;
    });
    return `<tr><th scope="row"><bdi dir="auto">${escaped(token.label)}</bdi></th>${cells.join("")}</tr>`;
  });
  const style = `border-collapse:collapse;font:12px ${look.font};background:${look.paper};color:${look.ink};text-align:center`;
  return [
    `<table style="${escaped(style)}">`,
    `<caption>${caption}</caption>`,
    `<thead><tr><td></td>${head}</tr></thead>`,
    `<tbody>`,
    ...rows,
    `</tbody>`,
    "</table>",
    "",
  ].join("\n");
}
