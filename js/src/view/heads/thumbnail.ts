/** A matrix on few pixels: each is the strongest of the cells that it stands for, so that one strong weight among a thousand is seen. */
import type { AttentionKind } from "../data.js";
import { stronger } from "../looks.js";
import type { Shades } from "../map/shades.js";

export interface Thumbnail {
  readonly rows: number;
  readonly columns: number;
  readonly data: Float32Array;
}

/** At most so many rows and columns, no more than the matrix has; one cell is in exactly one pixel. */
export function thumbnailOf(
  matrix: Float32Array,
  rows: number,
  columns: number,
  kind: AttentionKind,
  mostRows: number,
  mostColumns: number,
): Thumbnail {
  const height = Math.min(rows, mostRows);
  const width = Math.min(columns, mostColumns);
  if (height === rows && width === columns) return { rows, columns, data: matrix };
  const signed = kind === "scores";
  const data = new Float32Array(height * width);
  if (signed) data.fill(Number.NEGATIVE_INFINITY);
  /** The first column of each pixel, and the end. */
  const starts = new Int32Array(width + 1);
  for (let x = 0; x <= width; x++) starts[x] = Math.ceil((x * columns) / width);
  if (signed) poolScores(matrix, rows, starts, data, height);
  else poolWeights(matrix, rows, starts, data, height);
  return { rows: height, columns: width, data };
}

/**
 * The bits of a float32 without its sign, as a whole number, are in the order of the sizes that they mean, with NaN above all: the largest of
 * whole numbers is found in half the time, above all before engines know the code well.
 */
function poolWeights(matrix: Float32Array, rows: number, starts: Int32Array, data: Float32Array, height: number): void {
  const width = starts.length - 1;
  const bits = new Int32Array(matrix.buffer, matrix.byteOffset, matrix.length);
  const most = new Int32Array(data.buffer);
  let i = 0;
  for (let row = 0; row < rows; row++) {
    const first = row * starts[width]!;
    const to = Math.floor((row * height) / rows) * width;
    for (let x = 0; x < width; x++) {
      let strongest = most[to + x]!;
      for (const end = first + starts[x + 1]!; i < end; i++) strongest = Math.max(strongest, bits[i]! & 0x7fffffff);
      most[to + x] = strongest;
    }
  }
}

function poolScores(matrix: Float32Array, rows: number, starts: Int32Array, data: Float32Array, height: number): void {
  const width = starts.length - 1;
  let i = 0;
  for (let row = 0; row < rows; row++) {
    const first = row * starts[width]!;
    const to = Math.floor((row * height) / rows) * width;
    for (let x = 0; x < width; x++) {
      let most = data[to + x]!;
      for (const end = first + starts[x + 1]!; i < end; i++) most = stronger(most, matrix[i]!);
      data[to + x] = most;
    }
  }
}

/** Colours it into so many pixels, `stride` of which are a row of the whole: each of its cells becomes one, or a rectangle of them. */
export function paintThumbnail(
  { rows, columns, data }: Thumbnail,
  shades: Shades,
  height: number,
  width: number,
  pixels: Uint32Array,
  stride: number,
): void {
  if (height === rows && width === columns) {
    shades.paint(data, columns, [0, 0, rows, columns], pixels, stride);
    return;
  }
  const colours = new Uint32Array(rows * columns);
  shades.paint(data, columns, [0, 0, rows, columns], colours, columns);
  for (let y = 0; y < height; y++) {
    const row = Math.floor((y * rows) / height) * columns;
    for (let x = 0; x < width; x++) pixels[y * stride + x] = colours[row + Math.floor((x * columns) / width)]!;
  }
}
