/**
 * A matrix at falling resolutions: a cell of level n is made of 2ⁿ × 2ⁿ cells. What is shown from afar is the strongest of them ('max': one
 * strong weight among a thousand stays visible) or their mean.
 */
import type { AttentionKind } from "../data.js";
import { extentOf } from "./filter.js";

export type Pooling = "max" | "mean";
export const POOLINGS: readonly Pooling[] = ["max", "mean"];

/** A level of so many cells is looked through in no time. */
const FEW = 65_536;

export interface Level {
  readonly rows: number;
  readonly columns: number;
  readonly data: Float32Array;
}

export class Pyramid {
  readonly #levels: Level[];
  readonly #pooling: Pooling;
  readonly #kind: AttentionKind;

  constructor(data: Float32Array, rows: number, columns: number, pooling: Pooling, kind: AttentionKind) {
    this.#levels = [{ rows, columns, data }];
    this.#pooling = pooling;
    this.#kind = kind;
  }

  /** The largest magnitude of all; a pyramid of maxima has it at its upper levels, too. */
  extent(): number {
    let level = 0;
    if (this.#pooling === "max") while (this.level(level).data.length > FEW) level++;
    return extentOf(this.level(level).data);
  }

  /** Made when it is asked for. */
  level(n: number): Level {
    while (this.#levels.length <= n) {
      const finer = this.#levels[this.#levels.length - 1]!;
      if (this.#pooling === "mean") this.#levels.push(means(finer, this.#levels[0]!, 2 ** (this.#levels.length - 1)));
      else this.#levels.push(this.#kind === "scores" ? extremes(finer) : maxima(finer));
    }
    return this.#levels[n]!;
  }
}

/** Weights: the largest of four; NaN is never lost. At odd ends a cell stands for itself. */
function maxima({ rows, columns, data }: Level): Level {
  const half = { rows: (rows + 1) >> 1, columns: (columns + 1) >> 1 };
  const pooled = new Float32Array(half.rows * half.columns);
  let to = 0;
  for (let row = 0; row < rows; row += 2) {
    const start = row * columns;
    const down = row + 1 < rows ? columns : 0;
    for (let column = 0; column < columns; column += 2) {
      const at = start + column;
      const right = column + 1 < columns ? 1 : 0;
      pooled[to++] = Math.max(data[at]!, data[at + right]!, data[at + down]!, data[at + down + right]!);
    }
  }
  return { ...half, data: pooled };
}

/** Scores: the one farthest from 0; −∞, which is masked, gives way to any other. */
function strongest(a: number, b: number): number {
  if (a === Number.NEGATIVE_INFINITY || Number.isNaN(b)) return b;
  if (b === Number.NEGATIVE_INFINITY || Number.isNaN(a)) return a;
  return Math.abs(a) >= Math.abs(b) ? a : b;
}

function extremes({ rows, columns, data }: Level): Level {
  const half = { rows: (rows + 1) >> 1, columns: (columns + 1) >> 1 };
  const pooled = new Float32Array(half.rows * half.columns).fill(Number.NEGATIVE_INFINITY);
  for (let row = 0, at = 0; row < rows; row++)
    for (let column = 0; column < columns; column++, at++) {
      const to = (row >> 1) * half.columns + (column >> 1);
      pooled[to] = strongest(pooled[to]!, data[at]!);
    }
  return { ...half, data: pooled };
}

/** Means of what is there: at the ends a cell is made of fewer. Masked scores (−∞) are left out. `size`: cells of `full` along one of `finer`. */
function means({ rows, columns, data }: Level, full: Level, size: number): Level {
  const half = { rows: (rows + 1) >> 1, columns: (columns + 1) >> 1 };
  const sums = new Float64Array(half.rows * half.columns);
  const counts = new Float64Array(sums.length);
  const share = (index: number, of: number) => Math.min(size, of - index * size);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const value = data[row * columns + column]!;
      if (value === Number.NEGATIVE_INFINITY) continue;
      const to = (row >> 1) * half.columns + (column >> 1);
      const count = share(row, full.rows) * share(column, full.columns);
      sums[to]! += value * count;
      counts[to]! += count;
    }
  const pooled = Float32Array.from(sums, (sum, at) =>
    counts[at] === 0 ? Number.NEGATIVE_INFINITY : sum / counts[at]!,
  );
  return { ...half, data: pooled };
}
