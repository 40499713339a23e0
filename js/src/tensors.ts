import { type ErrorCode, fail, kindOf, refuse, shape, show } from "./errors.js";
import type { Block, Heap, Source } from "./heap.js";
import { MAX_SIZE } from "./options.js";
import type { Tensor } from "./types.js";
import { blockOf, isWasmTensor } from "./wasm-tensor.js";

/** A float operand after its checks: `source` has exactly product(dims) values. */
export interface Operand {
  readonly source: Source | Block;
  readonly dims: readonly number[];
}

const FLOATS = ["Float32Array", "Float16Array"];
const ACCEPTED = "{ data: Float32Array, dims: number[] } or a tensor of lb.tensor()";

export const product = (dims: readonly number[]): number => dims.reduce((total, dim) => total * dim, 1);

/** The checked copy of `dims`: integers from 0 to 2³¹ − 1. */
export function readDims(dims: unknown, where: string): number[] {
  const list = dims as ArrayLike<unknown>;
  if ((!Array.isArray(dims) && !ArrayBuffer.isView(dims)) || typeof list.length !== "number") {
    refuse("bad-dims", `${where}: dims`, "an array of integers, such as [2, 4, 64]", dims);
  }
  const copy = Array.from(list);
  if (!copy.every((dim) => Number.isInteger(dim) && (dim as number) >= 0 && (dim as number) <= MAX_SIZE)) {
    refuse("bad-dims", `${where}: every dim`, `an integer from 0 to ${MAX_SIZE}`, copy);
  }
  return copy as number[];
}

/** Throws where `dims` do not describe exactly `length` values. */
export function checkLength(length: number, dims: readonly number[], where: string): void {
  const expected = product(dims);
  if (length === expected) return;
  fail("dims-data-mismatch", `${where}: dims ${shape(dims)} describe ${expected} values, but data holds ${length}.`);
}

/** A transferred (or shrunk) buffer leaves views of length 0 behind: say so rather than complain about the length. */
export function checkAttached(data: ArrayBufferView, where: string): void {
  if (data.byteLength > 0) return;
  try {
    new Uint8Array(data.buffer, data.byteOffset);
  } catch (error) {
    fail("detached-buffer", `${where}: the array's buffer is detached (transferred to a worker?). Pass a copy.`, error);
  }
}

/** The data and dims of something tensor-like; either may be a getter or come through a proxy, so each is read once. */
export function readTensor(
  value: unknown,
  where: string,
  code: ErrorCode,
  accepted: string,
): { data: unknown; dims: number[] } {
  const no = (received: string): never => fail(code, `${where} must be ${accepted}; received ${received}.`);
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return no(show(value));
  if (ArrayBuffer.isView(value) || Array.isArray(value)) return no(`${show(value)} without dims`);
  const { data, dims } = value as { data?: unknown; dims?: unknown };
  if (data === undefined || dims === undefined) {
    return no(`${show(value)} with the keys ${Object.keys(value).slice(0, 6).join(", ") || "(none)"}`);
  }
  return { data, dims: readDims(dims, where) };
}

/** A float tensor that enters a calculation of `heap`. */
export function readFloats(
  value: unknown,
  where: string,
  heap: Heap,
  code: "not-float" | "bias-is-mask" = "not-float",
): Operand {
  return isWasmTensor(value)
    ? { source: blockOf(value, heap, where), dims: value.dims }
    : readArray(value, where, code);
}

/** The values of a float tensor outside of any call; those of a wasm tensor, of whatever instance, are copied out. */
export const readValues = (value: unknown, where: string): { source: Source; dims: readonly number[] } =>
  isWasmTensor(value) ? { source: value.read(), dims: value.dims } : readArray(value, where, "not-float");

function readArray(value: unknown, where: string, code: "not-float" | "bias-is-mask") {
  const { data, dims } = readTensor(value, where, "not-a-tensor", ACCEPTED);
  const kind = kindOf(data);
  if (!FLOATS.includes(kind)) {
    if (code === "bias-is-mask" && /^(Uint8|Int32|BigInt64)/.test(kind)) {
      fail(
        code,
        `${where}: a bias is float and is added to the scores; ${kind} looks like a mask. Give it as 'mask' (1 = may attend).`,
      );
    }
    fail(
      "not-float",
      `${where}: data must be a Float32Array or Float16Array; received ${show(data)}. Try Float32Array.from(data).`,
    );
  }
  checkAttached(data as ArrayBufferView, where);
  checkLength((data as Source).length, dims, where);
  return { source: data as Source, dims };
}

/** What `out` may name: the array or block to write into. */
export function readTarget(value: unknown, dims: readonly number[], where: string, heap: Heap): Float32Array | Block {
  const accepted = `a Float32Array of ${product(dims)} values, or a tensor with dims ${shape(dims)}`;
  const no = (received: string): never => fail("bad-out", `${where} must be ${accepted}; received ${received}.`);
  const checkDims = (other: readonly number[]) => shape(other) === shape(dims) || no(`dims ${shape(other)}`);
  if (isWasmTensor(value)) {
    const block = blockOf(value, heap, where);
    checkDims(value.dims);
    return block;
  }
  let array = value as Float32Array;
  if (kindOf(value) !== "Float32Array") {
    const tensor = readTensor(value, where, "bad-out", accepted);
    checkDims(tensor.dims);
    array = tensor.data as Float32Array;
    if (kindOf(array) !== "Float32Array") no(`data of ${show(array)}`);
  }
  checkAttached(array, where);
  return array.length === product(dims) ? array : no(`${array.length} values`);
}

export const tensorOf = (data: Float32Array, dims: readonly number[]): Tensor => ({ data, dims: [...dims] });
