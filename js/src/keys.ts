import { fail, shape } from "./errors.js";
import { readIntegers } from "./lists.js";
import { readMask } from "./mask.js";

// R5: which keys are real. With a cache both options speak of the new tokens.

export const readKeyLengths = (value: unknown, batch: number, length: number): Int32Array =>
  readIntegers(value, "keyLengths", `one per row of the batch of ${batch} (its valid keys)`, [batch], [0, length]);

/** A mask of dims [B, Lk], or its values alone. */
export function readKeyMask(value: unknown, batch: number, length: number): Uint8Array {
  const own = [batch, length];
  const flat = Array.isArray(value) || ArrayBuffer.isView(value);
  const { bits, dims } = readMask(flat ? { data: value, dims: own } : value, "keyMask");
  const fits = shape(dims) === shape(own) || (batch === 1 && shape(dims) === shape([length]));
  if (!fits) {
    fail(
      "mask-shape",
      `keyMask must be ${shape(own)} ([B, Lk]; with a cache Lk is the new tokens); received dims ${shape(dims)}. For masks per query or head there is 'mask'.`,
    );
  }
  return bits;
}
