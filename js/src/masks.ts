/**
 * Makes masks; 1 (■ in their picture) = may attend. Dims are [Lq, Lk], or broadcast from the right to [B, H, Lq, Lk] where batch rows
 * differ: [B, 1, Lq, Lk], [B, 1, 1, Lk]. All of them combine by `and`, `or` and `not`.
 */
import { fail, refuse, show } from "./errors.js";
import { checkBytes } from "./heap.js";
import { makeMask, readMask, toBit } from "./mask.js";
import { queryOffsets } from "./offset.js";
import { later, type OptionTable, positiveInteger, readOptions } from "./options.js";
import { checkAttached, checkLength, product, readDims, readTensor } from "./tensors.js";
import type { Mask, MaskTensor, QueryOffset, TensorLike } from "./types.js";
import { SIDES } from "./window.js";

export { fromKeras, fromONNX, fromTorch } from "./masks-foreign.js";

/** Whole numbers: document ids, lengths. */
export type Integers = readonly number[] | readonly bigint[] | Int32Array | BigInt64Array;

/** Where the queries of a mask stand among the keys. */
export interface MaskPlacement {
  /** Default: the number of queries. */
  keyLength?: number;
  /** As the option of `lb.attention`; a list, one offset per batch row, gives a mask [B, 1, Lq, Lk]. */
  queryOffset?: QueryOffset;
}

export interface MaskWindow {
  /** How many keys before the query's own position are visible; default Infinity. */
  left?: number;
  /** How many keys after it; default Infinity. */
  right?: number;
}

/** Key j is visible to query i iff j ≤ i + offset. Lengths that differ need the offset: 'start', 'end' or a number. */
export function causal(queryLength: number, keyLength: number = queryLength, offset?: QueryOffset): Mask {
  return paint("masks.causal", queryLength, { keyLength, queryOffset: offset }, undefined, (row, position) =>
    fill(row, 0, position + 1),
  );
}

/** Visible iff i + offset − left ≤ j ≤ i + offset + right. The position itself is not counted. */
export function window(queryLength: number, sides: MaskWindow & MaskPlacement): Mask {
  const where = "masks.window";
  const { left = Infinity, right = Infinity, ...placement } = readOptions(sides, { ...SIDES, ...PLACEMENT }, where);
  return paint(where, queryLength, placement, undefined, (row, position) =>
    fill(row, position - left, position + right + 1),
  );
}

/**
 * Every `step`-th key, counted from the query's own position, within a window if `left` or `right` are given (they count positions, not
 * steps): visible iff (i + offset − j) is a multiple of step.
 */
export function dilated(queryLength: number, pattern: { step: number } & MaskWindow & MaskPlacement): Mask {
  const where = "masks.dilated";
  const options = readOptions(pattern, { step: positiveInteger, ...SIDES, ...PLACEMENT }, where);
  const { step, left = Infinity, right = Infinity, ...placement } = options;
  if (step === undefined) return refuse("bad-option", `${where}: step`, "an integer ≥ 1", step);
  return paint(where, queryLength, placement, undefined, (row, position) => {
    const first = Math.max(0, position - left);
    const skip = (((position - first) % step) + step) % step;
    for (let j = first + skip; j < row.length && j <= position + right; j += step) row[j] = 1;
  });
}

/**
 * Prefix language model: the first `prefixLength` keys are visible to every query, the others causally. A list of lengths, one per batch
 * row, gives a mask [B, 1, Lq, Lk].
 */
export function prefix(queryLength: number, prefixLength: number | Integers, placement?: MaskPlacement): Mask {
  const where = "masks.prefix";
  const many = typeof prefixLength !== "number";
  const lengths = readIntegers(many ? prefixLength : [prefixLength], `${where}: prefixLength`, 0);
  const batch = many ? lengths.length : undefined;
  return paint(where, queryLength, readOptions(placement, PLACEMENT, where), batch, (row, position, b) =>
    fill(row, 0, Math.max(position + 1, lengths[many ? b : 0]!)),
  );
}

/**
 * Packed sequences: a query sees the keys of its own document. Ids are whole numbers, one per position, as a list or as { data, dims:
 * [B, L] } for a mask [B, 1, Lq, Lk]. For a causal one: `masks.documents(ids).and(masks.causal(ids.length))`.
 */
export function documents(ids: Integers | TensorLike<Integers>, keyIds: Integers | TensorLike<Integers> = ids): Mask {
  const where = "masks.documents";
  const queries = readRows(ids, `${where}: ids`);
  const keys = readRows(keyIds, `${where}: keyIds`);
  if (queries.batch !== keys.batch) {
    fail("mask-shape", `${where}: ids have batch ${show(queries.batch)}, keyIds ${show(keys.batch)}.`);
  }
  return draw(
    [...(queries.batch === undefined ? [] : [queries.batch, 1]), queries.length, keys.length],
    (row, line) => {
      const start = Math.floor(line / queries.length) * keys.length;
      for (let j = 0; j < row.length; j++) row[j] = Number(queries.values[line] === keys.values[start + j]);
    },
  );
}

/**
 * Hides padding, [B, 1, 1, Lk]. Either the number of real tokens of each batch row, a list (`keyLength`: default the largest), or, for
 * padding anywhere, { data, dims: [B, Lk] } of 0 and 1 (1 = a real token: what tokenizers call attention_mask).
 */
export function padding(tokens: Integers | MaskTensor, keyLength?: number): Mask {
  const where = "masks.padding";
  if (!isList(tokens)) {
    const { bits, dims } = readMask(tokens, where);
    if (dims.length > 2 || dims.length < 1 || (keyLength ?? dims.at(-1)) !== dims.at(-1)) {
      fail(
        "mask-shape",
        `${where}: dims must be [B, ${keyLength ?? "Lk"}] or [${keyLength ?? "Lk"}]; received ${show(dims)}.`,
      );
    }
    return makeMask(bits.slice(), [dims.length === 2 ? dims[0]! : 1, 1, 1, dims.at(-1)!]);
  }
  const lengths = readIntegers(tokens, `${where}: a length (for 0 and 1 per token give { data, dims: [B, Lk] })`, 0);
  const [columns] = readDims([keyLength ?? lengths.reduce((most, length) => Math.max(most, length), 0)], where);
  const longest = lengths.findIndex((length) => length > columns!);
  if (longest >= 0)
    fail("mask-shape", `${where}: length ${lengths[longest]} of row ${longest} exceeds keyLength ${columns}.`);
  return draw([lengths.length, 1, 1, columns!], (row, b) => fill(row, 0, lengths[b]!));
}

/** 0 / 1 data that means 1 = may attend, as in PyTorch's scaled_dot_product_attention, ONNX, Keras and JAX. */
export function from(mask: Mask | MaskTensor): Mask;
/** Asks for every place, by one index per dim: `masks.from([4, 4], (i, j) => j <= i)`. */
export function from(dims: readonly number[], visible: (...index: number[]) => boolean): Mask;
export function from(given: Mask | MaskTensor | readonly number[], visible?: (...index: number[]) => boolean): Mask {
  const where = "masks.from";
  if (visible === undefined) {
    const { bits, dims } = readMask(given, where);
    return makeMask(bits.slice(), dims); // a copy: the caller's array may change
  }
  if (typeof visible !== "function") refuse("bad-option", `${where}: the second argument`, "a function", visible);
  const dims = readDims(given, where);
  if (dims.length < 1) refuse("bad-dims", `${where}: dims`, "at least one length", dims);
  return draw(dims, (row, line) => {
    const index: number[] = new Array(dims.length);
    for (let axis = dims.length - 2, rest = line; axis >= 0; axis--) {
      index[axis] = rest % dims[axis]!;
      rest = Math.floor(rest / dims[axis]!);
    }
    for (let j = 0; j < row.length; j++) {
      index[dims.length - 1] = j;
      const answer: unknown = visible(...index);
      row[j] = toBit(answer);
      if (row[j]! > 1)
        refuse("bad-values", `${where}: the function's answer at ${show(index)}`, "true or false", answer);
    }
  });
}

const PLACEMENT = { keyLength: later<number>(), queryOffset: later<QueryOffset>() } satisfies OptionTable;

/** Sets row[from … end), whatever of it exists. */
const fill = (row: Uint8Array, from: number, end: number): Uint8Array =>
  row.fill(1, Math.max(0, Math.min(from, row.length)), Math.max(0, Math.min(end, row.length)));

/** A mask whose rows of keys are set one by one; `line` counts them. */
function draw(dims: readonly number[], set: (row: Uint8Array, line: number) => void): Mask {
  checkBytes(product(dims), "The mask");
  const bits = new Uint8Array(product(dims));
  const columns = dims.at(-1)!;
  for (let line = 0; line * columns < bits.length; line++)
    set(bits.subarray(line * columns, (line + 1) * columns), line);
  return makeMask(bits, dims);
}

/** A mask by positions: [Lq, Lk], or [B, 1, Lq, Lk] where there is something per batch row. */
function paint(
  where: string,
  queryLength: number,
  { keyLength = queryLength, queryOffset }: { [Name in keyof MaskPlacement]: MaskPlacement[Name] | undefined },
  batch: number | undefined,
  set: (row: Uint8Array, position: number, b: number) => void,
): Mask {
  const [rows, columns] = readDims([queryLength, keyLength], where) as [number, number];
  const listed = isList(queryOffset) ? (queryOffset as ArrayLike<number>).length : undefined;
  const offsets = queryOffsets(queryOffset, where, {
    batch: batch ?? listed ?? 1,
    queryLength: rows,
    keyLength: columns,
  });
  const lead = batch ?? listed;
  return draw([...(lead === undefined ? [] : [lead, 1]), rows, columns], (row, line) => {
    const b = Math.floor(line / rows);
    set(row, (line % rows) + offsets[b]!, b);
  });
}

const isList = (value: unknown): boolean => Array.isArray(value) || ArrayBuffer.isView(value);

function readIntegers(list: unknown, where: string, least = -Infinity): number[] {
  if (!isList(list)) refuse("bad-values", where, "a list of whole numbers", list);
  if (ArrayBuffer.isView(list)) checkAttached(list, where);
  return Array.from(list as ArrayLike<unknown>, (value) => {
    const number = typeof value === "bigint" ? Number(value) : value;
    if (Number.isSafeInteger(number) && (number as number) >= least) return number as number;
    return refuse("bad-values", where, least === 0 ? "a whole number ≥ 0" : "a whole number", value);
  });
}

/** Numbers per position, [L] or [B, L]; a plain list has no batch. */
function readRows(value: unknown, where: string): { values: number[]; batch: number | undefined; length: number } {
  if (isList(value)) {
    const values = readIntegers(value, where);
    return { values, batch: undefined, length: values.length };
  }
  const { data, dims } = readTensor(value, where, "bad-values", "a list of whole numbers, or { data, dims: [B, L] }");
  const values = readIntegers(data, where);
  checkLength(values.length, dims, where);
  if (dims.length < 1 || dims.length > 2) refuse("bad-values", `${where}: dims`, "[B, L] or [L]", dims);
  return { values, batch: dims.length === 2 ? dims[0]! : undefined, length: dims.at(-1)! };
}
