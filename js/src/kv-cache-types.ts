/// <reference lib="esnext.disposable" preserve="true" />
import type { FloatTensor, MaskData, MaskTensor, Tensor, TypedTensor } from "./types.js";

export interface KvCacheConfig {
  batch: number;
  kvHeads: number;
  headDim: number;
  /** Default `headDim`. */
  valueDim?: number;
  /** Tokens per batch row; the memory is taken at once and never grows. */
  capacity: number;
  /**
   * 'int8' takes a quarter of the memory: one scale per key row, value row and head. Of normal numbers, 64 wide and 512 long, outputs are
   * off by 0.07 % of max|V| at most, 0.9 % of their norm. Up to 8 queries at once meet it as 16-bit integers, and so do their weights: that adds
   * less than 0.01 % of max|V|. Default 'f32'.
   */
  dtype?: "f32" | "int8";
  /** The oldest tokens make room for new ones; calls then need `window.left` below the capacity. Default false. */
  rolling?: boolean;
}

export interface KvCacheAppendOptions {
  /** Valid new tokens of each row: only these are stored. */
  keyLengths?: readonly number[] | Int32Array | BigInt64Array | TypedTensor;
  /** [B, new tokens], 1 = a real token; remembered. */
  keyMask?: MaskTensor | MaskData | readonly number[];
}

/** Keys and values of the tokens so far, in wasm memory. Give it as `cache` to attention or to a layer. After an error nothing has changed. */
export interface KvCache {
  readonly config: Readonly<Required<KvCacheConfig>>;
  readonly capacity: number;
  /** Tokens that each row has seen, forgotten ones included; a copy. */
  readonly lengths: number[];
  /** The largest of `lengths`. */
  readonly length: number;
  /** The position of column 0 of masks, weights and read(): above 0 where a rolling cache has forgotten tokens. */
  readonly firstPosition: number;
  readonly disposed: boolean;
  /** k [B, kvHeads, L, headDim] or [B, L, kvHeads·headDim], v likewise, without attending. */
  append(k: FloatTensor, v: FloatTensor, options?: KvCacheAppendOptions): void;
  /** [B, kvHeads, length − firstPosition, …] as float32; 0 where a row has no token. */
  read(): { keys: Tensor; values: Tensor };
  /** Forgets the tokens from position `length` on, of every row. */
  truncate(length: number): void;
  /** Forgets everything. */
  reset(): void;
  /** A cache of its own with the same tokens. */
  clone(): KvCache;
  /** The tokens as bytes, for load() of a cache with the same config. */
  save(): Uint8Array;
  load(bytes: Uint8Array | ArrayBuffer): void;
  dispose(): void;
  [Symbol.dispose](): void;
}
