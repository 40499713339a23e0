/**
 * A matrix at falling resolutions: a cell of level n is made of 2ⁿ × 2ⁿ cells. What is shown from afar is the strongest of them ('max': one
 * strong weight among a thousand stays visible) or their mean.
 */
import type { AttentionKind } from "../data.js";
import { stronger } from "../looks.js";
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

export type Part = readonly [row: number, column: number, rows: number, columns: number];

/** Levels 0, 2, 4 … are kept, each made of the one before when it is first asked for; of those between only the parts that are looked at are made. */
export class Pyramid {
  readonly #kept: Level[];
  readonly #pooling: Pooling;
  readonly #kind: AttentionKind;

  constructor(data: Float32Array, rows: number, columns: number, pooling: Pooling, kind: AttentionKind) {
    this.#kept = [{ rows, columns, data }];
    this.#pooling = pooling;
    this.#kind = kind;
  }

  /** The largest magnitude of all; a pyramid of maxima has it at its upper levels, too. */
  extent(): number {
    let level = 0;
    if (this.#pooling === "max") while (this.level(level).data.length > FEW) level += 2;
    return extentOf(this.level(level).data);
  }

  sizeOf(n: number): { rows: number; columns: number } {
    const { rows, columns } = this.#kept[0]!;
    return { rows: Math.ceil(rows / 2 ** n), columns: Math.ceil(columns / 2 ** n) };
  }

  level(n: number): Level {
    if (n % 2 === 1) {
      const { rows, columns } = this.sizeOf(n);
      return this.#made(n, [0, 0, rows, columns]);
    }
    for (let next = 2 * this.#kept.length; next <= n; next += 2) {
      const { rows, columns } = this.sizeOf(next);
      this.#kept.push(this.#made(next, [0, 0, rows, columns]));
    }
    return this.#kept[n / 2]!;
  }

  /** A matrix that has a part of level n in it, and where. */
  part(n: number, part: Part): { level: Level; part: Part } {
    return n % 2 === 0
      ? { level: this.level(n), part }
      : { level: this.#made(n, part), part: [0, 0, part[2], part[3]] };
  }

  #made(n: number, part: Part): Level {
    const below = n % 2 === 0 ? n - 2 : n - 1;
    const finer = this.level(below);
    if (this.#pooling === "mean") return means(finer, 2 ** (n - below), part, this.#kept[0]!, 2 ** below);
    return strongest(finer, 2 ** (n - below), part, this.#kind === "scores" ? poolScores : poolWeights);
  }
}

/** Pools `count` numbers of a row into those that are there. Called row by row: engines make fast code of what is called often. */
type PoolRow = (
  data: Float32Array,
  from: number,
  count: number,
  factor: number,
  pooled: Float32Array,
  to: number,
) => void;

/** `factor` × `factor` cells become one; at the ends a cell is made of fewer. */
function strongest(finer: Level, factor: number, [top, left, rows, columns]: Part, poolRow: PoolRow): Level {
  const data = new Float32Array(rows * columns).fill(Number.NEGATIVE_INFINITY);
  const count = Math.min(columns * factor, finer.columns - left * factor);
  const last = Math.min((top + rows) * factor, finer.rows);
  for (let row = top * factor; row < last; row++)
    poolRow(
      finer.data,
      row * finer.columns + left * factor,
      count,
      factor,
      data,
      (Math.floor(row / factor) - top) * columns,
    );
  return { rows, columns, data };
}

/** Weights: the largest; NaN is never lost. */
const poolWeights: PoolRow = (data, from, count, factor, pooled, to) => {
  const end = from + count;
  let at = from;
  let place = to;
  // The long way down to the level that is seen first, without a loop within the loop.
  if (factor === 4)
    for (; at + 4 <= end; at += 4, place++) {
      const a = data[at]!;
      const b = data[at + 1]!;
      const c = data[at + 2]!;
      const d = data[at + 3]!;
      let most = pooled[place]!;
      if (a > most || Number.isNaN(a)) most = a;
      if (b > most || Number.isNaN(b)) most = b;
      if (c > most || Number.isNaN(c)) most = c;
      if (d > most || Number.isNaN(d)) most = d;
      pooled[place] = most;
    }
  for (; at < end; place++) {
    let most = pooled[place]!;
    for (const stop = Math.min(end, at + factor); at < stop; at++) {
      const value = data[at]!;
      if (value > most || Number.isNaN(value)) most = value;
    }
    pooled[place] = most;
  }
};

/** Scores: the one farthest from 0; −∞, which is masked, gives way to any other. */
const poolScores: PoolRow = (data, from, count, factor, pooled, to) => {
  for (let i = 0; i < count; i++) {
    const place = to + Math.floor(i / factor);
    pooled[place] = stronger(pooled[place]!, data[from + i]!);
  }
};

/** Means of what is there. Masked scores (−∞) are left out. `size`: cells of `full` along one of `finer`. */
function means(finer: Level, factor: number, [top, left, rows, columns]: Part, full: Level, size: number): Level {
  const sums = new Float64Array(rows * columns);
  const counts = new Float64Array(sums.length);
  const share = (index: number, of: number) => Math.min(size, of - index * size);
  const lastRow = Math.min((top + rows) * factor, finer.rows);
  const lastColumn = Math.min((left + columns) * factor, finer.columns);
  for (let row = top * factor; row < lastRow; row++)
    for (let column = left * factor; column < lastColumn; column++) {
      const value = finer.data[row * finer.columns + column]!;
      if (value === Number.NEGATIVE_INFINITY) continue;
      const to = (Math.floor(row / factor) - top) * columns + Math.floor(column / factor) - left;
      const count = share(row, full.rows) * share(column, full.columns);
      sums[to]! += value * count;
      counts[to]! += count;
    }
  const data = Float32Array.from(sums, (sum, at) => (counts[at] === 0 ? Number.NEGATIVE_INFINITY : sum / counts[at]!));
  return { rows, columns, data };
}
