/** A matrix on few pixels: each is the strongest of the cells that it stands for, so that one strong weight among a thousand is seen. */
import type { AttentionKind } from "../data.js";
import { stronger } from "../looks.js";

export interface Thumbnail {
  readonly rows: number;
  readonly columns: number;
  readonly data: Float32Array;
}

/** At most `most` rows and columns, no more than the matrix has; one cell is in exactly one pixel. */
export function thumbnailOf(
  matrix: Float32Array,
  rows: number,
  columns: number,
  kind: AttentionKind,
  most: number,
): Thumbnail {
  const height = Math.min(rows, most);
  const width = Math.min(columns, most);
  if (height === rows && width === columns) return { rows, columns, data: matrix };
  const data = new Float32Array(height * width).fill(kind === "scores" ? Number.NEGATIVE_INFINITY : 0);
  const columnOf = Int32Array.from({ length: columns }, (_, column) => Math.floor((column * width) / columns));
  const signed = kind === "scores";
  for (let row = 0; row < rows; row++) {
    const to = Math.floor((row * height) / rows) * width;
    const from = row * columns;
    for (let column = 0; column < columns; column++) {
      const value = matrix[from + column]!;
      const at = to + columnOf[column]!;
      if (signed) data[at] = stronger(data[at]!, value);
      else if (value > data[at]! || Number.isNaN(value)) data[at] = value;
    }
  }
  return { rows: height, columns: width, data };
}
