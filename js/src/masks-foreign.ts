/** Masks of other systems, taken by the meaning they have there. */
import { fail, kindOf, refuse, shape } from "./errors.js";
import { checkBytes } from "./heap.js";
import { type Bits, FLOATS, isMask, makeMask, readBits, readMask } from "./mask.js";
import { later, positiveInteger, readOptions } from "./options.js";
import { checkAttached, checkLength, product, readTensor } from "./tensors.js";
import type { Mask, MaskTensor, TensorLike } from "./types.js";

/** 0 / 1, or the additive form of it: floats 0 and −∞. */
export type ForeignMask = MaskTensor | TensorLike<Float32Array>;

/**
 * The masks of torch.nn.MultiheadAttention, where true = hidden (or float: 0 and −∞): `attn_mask` [Lq, Lk] or [B·heads, Lq, Lk], and, as
 * an option, `key_padding_mask` [B, Lk] or [Lk]. Either may be null. `heads` tells a 3-D attn_mask's batch from its heads where no
 * keyPaddingMask does. (The mask of scaled_dot_product_attention means what masks mean here: `masks.from`.)
 */
export function fromTorch(
  attnMask: ForeignMask | null,
  options?: { heads?: number; keyPaddingMask?: ForeignMask | null },
): Mask {
  const where = "masks.fromTorch";
  const table = { heads: positiveInteger, keyPaddingMask: later<ForeignMask>() };
  const { heads, keyPaddingMask } = readOptions(options, table, where);
  const hidden = (value: unknown, name: string): Bits => {
    if (isMask(value)) fail("not-a-mask", `${name} is a Mask already (1 = may attend); use it as it is.`);
    const { data, dims } = readTensor(value, name, "not-a-mask", "{ data, dims }");
    if (FLOATS.includes(kindOf(data))) return { bits: readAdditive(data as Float32Array, dims, name), dims };
    return { bits: readBits(data, dims, name).map((bit) => 1 - bit), dims };
  };
  let padding: Bits | undefined;
  if (keyPaddingMask !== undefined) {
    padding = hidden(keyPaddingMask, `${where}: keyPaddingMask`);
    if (padding.dims.length === 2) padding = { ...padding, dims: [padding.dims[0]!, 1, 1, padding.dims[1]!] };
    else if (padding.dims.length !== 1) wrongDims(`${where}: keyPaddingMask`, padding.dims, "[B, Lk] or [Lk]");
    if (attnMask === null || attnMask === undefined) return makeMask(padding.bits, padding.dims);
  }
  let { bits, dims } = hidden(attnMask, where);
  if (dims.length === 3 && (heads !== undefined || padding)) {
    const [lead, rows, columns] = dims as [number, number, number];
    const batch = heads === undefined ? (padding!.dims.at(-4) ?? 1) : lead / heads;
    if (!Number.isInteger(lead / batch) || !Number.isInteger(batch)) {
      const reason = heads === undefined ? `keyPaddingMask's batch ${batch}` : `heads ${heads}`;
      fail(
        "mask-shape",
        `${where}: dims ${shape(dims)} should be [B·H, Lq, Lk], but ${lead} is no multiple of ${reason}.`,
      );
    }
    dims = [batch, lead / batch, rows, columns];
  }
  return combine(makeMask(bits, dims), padding);
}

/**
 * The masks of keras.layers.MultiHeadAttention, where 1 = may attend: `attention_mask` [T, S], [B, T, S] (for every head) or
 * [B, heads, T, S], and, as options, the padding masks [B, T] of the query and [B, S] of the value and of the key; all of them apply, and
 * any of them may be null. `use_causal_mask` is the call's `causal: true, queryOffset: "start"`. A query that is padding sees nothing: it
 * gives 0 here, and in Keras numbers that nobody is meant to use.
 */
export function fromKeras(
  attentionMask: Mask | ForeignMask | null,
  options?: { queryMask?: ForeignMask | null; valueMask?: ForeignMask | null; keyMask?: ForeignMask | null },
): Mask {
  const where = "masks.fromKeras";
  const table = { queryMask: later<unknown>(), valueMask: later<unknown>(), keyMask: later<unknown>() };
  const masks = { attentionMask, ...readOptions(options, table, where) };
  let result: Mask | undefined;
  for (const [name, value] of Object.entries(masks)) {
    if (value === undefined || value === null) continue;
    const { bits, dims } = readFlags(value, `${where}: ${name}`);
    let placed: readonly number[] = dims;
    if (name !== "attentionMask") {
      if (dims.length !== 2) wrongDims(`${where}: ${name}`, dims, name === "queryMask" ? "[B, T]" : "[B, S]");
      placed = name === "queryMask" ? [dims[0]!, 1, dims[1]!, 1] : [dims[0]!, 1, 1, dims[1]!];
    } else if (dims.length === 3) placed = [dims[0]!, 1, dims[1]!, dims[2]!];
    else if (dims.length !== 2 && dims.length !== 4) {
      wrongDims(`${where}: attentionMask`, dims, "[T, S], [B, T, S] or [B, heads, T, S]");
    }
    const mask = makeMask(bits.slice(), placed);
    result = result ? result.and(mask) : mask;
  }
  return result ?? refuse("not-a-mask", where, "given at least one mask", attentionMask);
}

/**
 * The `attn_mask` of ONNX's Attention, where true = may attend (or float: 0 and −∞; other numbers are a bias). With `keyLength` (past +
 * new keys) a mask of fewer columns hides the rest, as from opset 24 on: a single column, too, which would broadcast otherwise.
 */
export function fromONNX(mask: ForeignMask, options?: { keyLength?: number }): Mask {
  const where = "masks.fromONNX";
  const { keyLength } = readOptions(options, { keyLength: positiveInteger }, where);
  const { data, dims } = readTensor(mask, where, "not-a-mask", "{ data, dims }");
  const floats = FLOATS.includes(kindOf(data));
  const bits = floats ? readAdditive(data as Float32Array, dims, where) : readBits(data, dims, where).slice();
  const columns = dims.at(-1);
  if (keyLength === undefined || columns === keyLength || columns === undefined) return makeMask(bits, dims);
  if (columns > keyLength)
    fail("mask-shape", `${where}: dims ${shape(dims)} have more columns than keyLength ${keyLength}.`);
  const padded = [...dims.slice(0, -1), keyLength];
  checkBytes(product(padded), "The mask");
  const wide = new Uint8Array(product(padded));
  for (let row = 0; row * columns < bits.length; row++) {
    wide.set(bits.subarray(row * columns, (row + 1) * columns), row * keyLength);
  }
  return makeMask(wide, padded);
}

const combine = (mask: Mask, other: Bits | undefined): Mask =>
  other ? mask.and(makeMask(other.bits, other.dims)) : mask;

function wrongDims(where: string, dims: readonly number[], accepted: string): never {
  fail("mask-shape", `${where} must have dims ${accepted}; received ${shape(dims)}.`);
}

/** 1 where a float mask holds 0, 0 where it holds −∞. */
function readAdditive(values: Float32Array, dims: readonly number[], where: string): Uint8Array {
  checkAttached(values, where);
  checkLength(values.length, dims, where);
  return Uint8Array.from(values, (value) => {
    if (value !== 0 && value !== -Infinity) {
      fail(
        "bad-values",
        `${where}: a float mask holds 0 and −Infinity only; found ${value}. Other numbers belong in 'bias'.`,
      );
    }
    return value === 0 ? 1 : 0;
  });
}

/** 0 / 1 of any type, floats too, which Keras casts to bool. */
function readFlags(value: unknown, where: string): Bits {
  const { data } = value as { data?: unknown };
  if (!FLOATS.includes(kindOf(data))) return readMask(value, where);
  const { dims } = readTensor(value, where, "not-a-mask", "{ data, dims }");
  return { bits: readBits(Array.from(data as Float32Array), dims, where), dims };
}
