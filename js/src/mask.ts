import { broadcastStrides } from "./broadcast.js";
import { fail, kindOf, refuse, shape, show } from "./errors.js";
import { checkBytes } from "./heap.js";
import { checkAttached, checkLength, product, readTensor } from "./tensors.js";
import type { Mask, MaskTensor, Tensor } from "./types.js";
import { isWasmTensor } from "./wasm-tensor.js";

const PICTURE_ROWS = 24;
const PICTURE_COLUMNS = 48;
const ACCEPTED = "a Mask of masks.*, or { data, dims } with data of 0 and 1 (1 = may attend)";
const BITS = ["Uint8Array", "Array", "Int32Array", "BigInt64Array"];
/** Kinds of float data, which is no mask but where another system says what it means. */
export const FLOATS = ["Float32Array", "Float16Array", "Float64Array"];

class VisibilityMask implements Mask {
  readonly dims: readonly number[];
  readonly #bits: Uint8Array;
  #copy: Uint8Array | undefined;

  constructor(bits: Uint8Array, dims: readonly number[]) {
    this.#bits = bits;
    this.dims = Object.freeze([...dims]);
  }

  static bitsOf(value: unknown): Uint8Array | undefined {
    return typeof value === "object" && value !== null && #bits in value ? (value as VisibilityMask).#bits : undefined;
  }

  /** A copy, so that nobody can change the mask itself. */
  get data(): Uint8Array {
    this.#copy ??= this.#bits.slice();
    return this.#copy;
  }

  and(other: Mask | MaskTensor): Mask {
    return this.#combine(other, (a, b) => a & b);
  }

  or(other: Mask | MaskTensor): Mask {
    return this.#combine(other, (a, b) => a | b);
  }

  not(): Mask {
    return new VisibilityMask(
      this.#bits.map((bit) => 1 - bit),
      this.dims,
    );
  }

  visible(...index: number[]): boolean {
    const inside = (i: unknown, axis: number) =>
      Number.isInteger(i) && (i as number) >= 0 && (i as number) < this.dims[axis]!;
    if (index.length !== this.dims.length || !index.every(inside)) {
      fail("bad-option", `visible: ${show(index)} is no place in a mask of dims ${shape(this.dims)}.`);
    }
    return this.#bits[index.reduce((at, i, axis) => at * this.dims[axis]! + i, 0)] === 1;
  }

  toBias(): Tensor {
    checkBytes(this.#bits.length * 4, "The bias");
    return { data: Float32Array.from(this.#bits, (bit) => (bit ? 0 : -Infinity)), dims: [...this.dims] };
  }

  toString(): string {
    const columns = this.dims.at(-1) ?? 1;
    const rows = columns > 0 ? this.#bits.length / columns : 0;
    const perPicture = this.dims.at(-2) ?? 1;
    const lines: string[] = [];
    for (let row = 0; row < Math.min(rows, PICTURE_ROWS); row++) {
      if (row > 0 && row % perPicture === 0) lines.push("");
      const start = row * columns;
      const drawn = Array.from(this.#bits.subarray(start, start + Math.min(columns, PICTURE_COLUMNS)), (bit) =>
        bit ? "■" : "·",
      );
      lines.push(drawn.join(" ") + (columns > PICTURE_COLUMNS ? " …" : ""));
    }
    if (rows > PICTURE_ROWS) lines.push("⋮");
    return lines.join("\n") || `(empty mask ${shape(this.dims)})`;
  }

  #combine(other: unknown, both: (a: number, b: number) => number): Mask {
    const { bits, dims } = readMask(other, "mask");
    const rank = Math.max(dims.length, this.dims.length);
    const padded = [this.dims, dims].map((own) => [...new Array<number>(rank - own.length).fill(1), ...own]);
    const target = padded[0]!.map((dim, i) => (dim === 1 ? padded[1]![i]! : dim));
    const ours = broadcastStrides(this.dims, target);
    const theirs = broadcastStrides(dims, target);
    if (!ours || !theirs) {
      return fail("mask-shape", `Masks of dims ${shape(this.dims)} and ${shape(dims)} cannot be combined.`);
    }
    checkBytes(product(target), "The combined mask");
    const result = new Uint8Array(product(target));
    const walk = (axis: number, at: number, a: number, b: number) => {
      if (axis === rank) {
        result[at] = both(this.#bits[a]!, bits[b]!);
        return;
      }
      const size = target[axis]!;
      for (let i = 0; i < size; i++) walk(axis + 1, at * size + i, a + i * ours[axis]!, b + i * theirs[axis]!);
    };
    walk(0, 0, 0, 0);
    return new VisibilityMask(result, target);
  }
}

/** 0 / 1 per place in row-major order, and the dims. */
export interface Bits {
  readonly bits: Uint8Array;
  readonly dims: readonly number[];
}

/** Keeps `bits`, which nobody else may change. */
export const makeMask = (bits: Uint8Array, dims: readonly number[]): Mask => new VisibilityMask(bits, dims);

/** Whether `value` was made by masks.*, and so knows its meaning. */
export const isMask = (value: unknown): value is Mask => VisibilityMask.bitsOf(value) !== undefined;

/** A mask given to a call. */
export function readMask(value: unknown, where: string): Bits {
  const known = VisibilityMask.bitsOf(value);
  if (known) return { bits: known, dims: (value as Mask).dims };
  if (isWasmTensor(value)) maskIsFloat(where, "a wasm tensor (float32)");
  const { data, dims } = readTensor(value, where, "not-a-mask", ACCEPTED);
  return { bits: readBits(data, dims, where), dims };
}

function maskIsFloat(where: string, received: string): never {
  fail(
    "mask-is-float",
    `${where}: received ${received}. A mask, or a bias? Visibility is a Uint8Array or boolean[] (1 = may attend); ` +
      "numbers to add to the scores (0 and −∞) go in 'bias'.",
  );
}

export const toBit = (value: unknown): number => {
  if (value === 1 || value === true || value === 1n) return 1;
  return value === 0 || value === false || value === 0n ? 0 : 2;
};

/** Every value is 0 or 1, or it is something else than a mask (255, −10000, …) that had better be looked at. */
export function readBits(data: unknown, dims: readonly number[], where: string): Uint8Array {
  const kind = kindOf(data);
  if (FLOATS.includes(kind)) maskIsFloat(where, `a ${kind}`);
  if (!BITS.includes(kind))
    refuse("not-a-mask", `${where}: data`, "a Uint8Array, boolean[], Int32Array or BigInt64Array", data);
  if (ArrayBuffer.isView(data)) checkAttached(data, where);
  const values = data as ArrayLike<unknown>;
  checkLength(values.length, dims, where);
  const bits = kind === "Uint8Array" ? (data as Uint8Array) : Uint8Array.from(values, toBit);
  // Without a branch per place: a mask of L² places is looked at in every call.
  let all = 0;
  for (let i = 0; i < bits.length; i++) all |= bits[i]!;
  if (all > 1) {
    const i = bits.findIndex((bit) => bit > 1);
    fail("bad-values", `${where}: a mask holds 0 and 1 (1 = may attend) only; data[${i}] is ${show(values[i])}.`);
  }
  return bits;
}
