/** Numbers of any shape, as blocks of float32: tensors of several libraries, and nested arrays. */
import { LookbackError } from "lookback";

/** A checked block of numbers: `values` has product(dims) of them, and makes them float32 where it must, once. */
export interface Block {
  readonly dims: readonly number[];
  slice(from: number, to: number): Float32Array;
}

export function refuse(message: string): never {
  throw new LookbackError("invalid-attention", message);
}

export const kindOf = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1);

/** A value as a message shows it. */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value !== "object" || value === null) return String(value);
  const kind = kindOf(value);
  if (kind !== "Object") return `${/^[AEIO]/.test(kind) ? "an" : "a"} ${kind}`;
  const keys = Object.keys(value);
  return keys.length === 0
    ? "an empty object"
    : `an object with the keys ${keys.slice(0, 8).join(", ")}${keys.length > 8 ? ", …" : ""}`;
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

/** Typed arrays are told by their tag: another realm's are as good as ours. */
const FLOATS = /^(Float(16|32|64)|Int(8|16|32)|Uint(8|16|32)|Uint8Clamped)Array$/;

export const isTensor = (value: unknown): value is { dims: unknown; data: unknown } =>
  isObject(value) && !ArrayBuffer.isView(value) && "dims" in value;

const isNumbers = (value: unknown): boolean => ArrayBuffer.isView(value) || Array.isArray(value);

function halfToFloat(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function readData(tensor: { dims: unknown; data: unknown; type?: unknown }, where: string): ArrayLike<number> {
  let data: unknown;
  try {
    data = tensor.data;
  } catch (error) {
    refuse(`${where}: its numbers cannot be read (${(error as Error).message}). Download the tensor first.`);
  }
  if (kindOf(data) === "Uint16Array" && tensor.type === "float16")
    return Float32Array.from(data as Uint16Array, halfToFloat);
  // JSON.stringify writes a typed array as { "0": …, "1": … }.
  if (kindOf(data) === "Object") return Object.values(data as object) as number[];
  if (Array.isArray(data) || FLOATS.test(kindOf(data))) return data as ArrayLike<number>;
  return refuse(`${where}: data must be a Float32Array or an array of numbers; received ${show(data)}.`);
}

export function readTensor(tensor: { dims: unknown; data: unknown }, where: string): Block {
  const dims = isNumbers(tensor.dims) ? Array.from(tensor.dims as ArrayLike<number>) : [];
  if (dims.length === 0 || !dims.every((dim) => Number.isInteger(dim) && dim >= 0))
    refuse(`${where}: dims must be whole numbers such as [1, 12, 64, 64]; received ${show(tensor.dims)}.`);
  const data = readData(tensor, where);
  const size = dims.reduce((product, dim) => product * dim, 1);
  if (data.length !== size)
    refuse(`${where}: dims [${dims.join(", ")}] describe ${size} numbers, but data holds ${data.length}.`);
  if (Array.isArray(data)) checkNumbers(data, where);
  return {
    dims,
    slice: (from, to) =>
      kindOf(data) === "Float32Array"
        ? (data as Float32Array).subarray(from, to)
        : Float32Array.from({ length: to - from }, (_, i) => numberOf(data[from + i])),
  };
}

/** JSON has no NaN and no infinities: Python writes the words, others null. */
function numberOf(value: unknown): number {
  if (typeof value === "number") return value;
  if (value === null) return Number.NaN;
  const word = String(value).replace("−", "-");
  return /^-inf(inity)?$/i.test(word) ? Number.NEGATIVE_INFINITY : Number(word);
}

function checkNumbers(list: readonly unknown[], where: string): void {
  const at = list.findIndex(
    (value) => typeof value !== "number" && value !== null && !/^([-−]?inf(inity)?|nan)$/i.test(String(value)),
  );
  if (at >= 0) refuse(`${where}[${at}] must be a number; received ${show(list[at])}.`);
}

/** Nested arrays of one length at each depth; the innermost may be typed. */
export function readNested(value: unknown, where: string): Block {
  const dims: number[] = [];
  for (let inner: unknown = value; isNumbers(inner); inner = (inner as ArrayLike<unknown>)[0])
    dims.push((inner as ArrayLike<unknown>).length);
  const data = new Float32Array(dims.reduce((product, dim) => product * dim, 1));
  let at = 0;
  const fill = (inner: unknown, depth: number, path: string): void => {
    if (!isNumbers(inner)) refuse(`${path} must be an array of ${dims[depth]}; received ${show(inner)}.`);
    const list = inner as ArrayLike<unknown>;
    if (list.length !== dims[depth])
      refuse(`${path} has ${list.length} entries where ${where} has ${dims[depth]} elsewhere: rows differ in length.`);
    if (depth < dims.length - 1) {
      for (let i = 0; i < list.length; i++) fill(list[i], depth + 1, `${path}[${i}]`);
      return;
    }
    if (Array.isArray(inner)) checkNumbers(inner, path);
    for (let i = 0; i < list.length; i++) data[at++] = numberOf(list[i]);
  };
  if (dims.length === 0) refuse(`${where} must be a tensor or nested arrays of numbers; received ${show(value)}.`);
  fill(value, 0, where);
  return { dims, slice: (from, to) => data.subarray(from, to) };
}
