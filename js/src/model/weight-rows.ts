import type { Slot } from "./slots.js";

/** Kinds of numbers in files, by the names of safetensors, in the order of the core's enum. */
export const FLOAT_TYPES = ["F32", "F16", "BF16"] as const;
export type FloatType = (typeof FLOAT_TYPES)[number];
export const FLOAT_BYTES: Readonly<Record<FloatType, number>> = { F32: 4, F16: 2, BF16: 2 };

/** Rows of a file's tensor that go into a slot. */
export interface WeightRows {
  readonly slot: Slot;
  readonly layer: number;
  /** Of the slot; if transposed its first column. */
  readonly firstRow: number;
  readonly rowCount: number;
  readonly type: FloatType;
  /** Little-endian; row r begins at element from + r · stride. */
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly stride: number;
  readonly transposed: boolean;
}
