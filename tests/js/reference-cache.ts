/** R16 in plain arrays: what a cache holds, row by row, and the uncached call that a call with it equals. */
import type { ReferenceOptions, Shape } from "./reference.ts";
import type { Operands } from "./reference-data.ts";

export interface CacheShape {
  batch: number;
  kvHeads: number;
  headDim: number;
  valueDim: number;
}

/** New tokens, keys and values [B, Hkv, count, width]; lengths and mask speak of them. */
export interface Tokens {
  k: Float32Array;
  v: Float32Array;
  count: number;
  keyLengths?: readonly number[] | undefined;
  keyMask?: { data: Uint8Array; dims: number[] } | undefined;
}

interface Token {
  /** [Hkv, headDim] and [Hkv, valueDim]. */
  key: Float32Array;
  value: Float32Array;
  real: number;
}

/** Keeps every token that was ever appended: a rolling cache's window hides those that are gone. */
export class ReferenceCache {
  readonly shape: CacheShape;
  rows: Token[][];

  constructor(shape: CacheShape) {
    this.shape = shape;
    this.rows = Array.from({ length: shape.batch }, () => []);
  }

  get lengths(): number[] {
    return this.rows.map((row) => row.length);
  }

  append({ k, v, count, keyLengths, keyMask }: Tokens): void {
    const { kvHeads, headDim, valueDim } = this.shape;
    const gather = (data: Float32Array, b: number, t: number, width: number) => {
      const token = new Float32Array(kvHeads * width);
      for (let head = 0; head < kvHeads; head++) {
        const from = ((b * kvHeads + head) * count + t) * width;
        token.set(data.subarray(from, from + width), head * width);
      }
      return token;
    };
    this.rows.forEach((row, b) => {
      for (let t = 0; t < (keyLengths?.[b] ?? count); t++) {
        const real = keyMask ? keyMask.data[b * count + t]! : 1;
        row.push({ key: gather(k, b, t, headDim), value: gather(v, b, t, valueDim), real });
      }
    });
  }

  truncate(length: number): void {
    for (const row of this.rows) row.splice(length);
  }

  clone(): ReferenceCache {
    const copy = new ReferenceCache(this.shape);
    copy.rows = this.rows.map((row) => row.slice());
    return copy;
  }

  /** Keys and values [B, Hkv, columns, width] from position `first` on; 0 where a row has no token. */
  table(columns = Math.max(0, ...this.lengths), first = 0) {
    const { batch, kvHeads, headDim, valueDim } = this.shape;
    const k = new Float32Array(batch * kvHeads * columns * headDim);
    const v = new Float32Array(batch * kvHeads * columns * valueDim);
    const keyMask = new Uint8Array(batch * columns);
    this.rows.forEach((row, b) => {
      row.slice(first, first + columns).forEach(({ key, value, real }, j) => {
        keyMask[b * columns + j] = real;
        for (let head = 0; head < kvHeads; head++) {
          const place = (b * kvHeads + head) * columns + j;
          k.set(key.subarray(head * headDim, (head + 1) * headDim), place * headDim);
          v.set(value.subarray(head * valueDim, (head + 1) * valueDim), place * valueDim);
        }
      });
    });
    return { k, v, keyMask: { data: keyMask, dims: [batch, columns] }, columns };
  }

  /**
   * Appends the tokens (if any), and gives the call without a cache that says the same: query row 0 of a batch row stands at its length
   * before, and the columns are positions, `count` more than the longest row had.
   */
  attend(
    q: Float32Array,
    heads: number,
    queryLength: number,
    tokens?: Tokens,
  ): { operands: Operands; options: ReferenceOptions } {
    const before = this.lengths;
    const columns = Math.max(0, ...before) + (tokens?.count ?? 0);
    if (tokens) this.append(tokens);
    const { k, v, keyMask } = this.table(columns);
    const shape: Shape = { ...this.shape, heads, queryLength, keyLength: columns };
    return { operands: { shape, q, k, v }, options: { queryOffset: before, keyLengths: this.lengths, keyMask } };
  }
}
