import { type ErrorCode, kindOf, refuse } from "../errors.js";
import { isMask, makeMask } from "../mask.js";
import { flag, type Reader } from "../options.js";

// What travels between the page and its worker.

/** From the page: a call of an object's method (or a property to be read), or word that a call is no longer wanted. */
export type Request =
  | {
      readonly call: number;
      /** 0 is the instance. */
      readonly target: number;
      readonly name: string;
      readonly given: readonly unknown[];
      readonly progress: boolean;
    }
  | { readonly abort: number };

/** From the worker, about a call. */
export type Reply = { readonly call: number } & (
  | { readonly progress: number }
  | { readonly value: unknown }
  | { readonly aborted: true }
  | { readonly error: Failure }
);

/** An error; `code` is there where it is a LookbackError. */
export interface Failure {
  readonly code?: ErrorCode;
  readonly message: string;
}

/** An object that lives in the worker, and those of its properties that never change. */
export interface Handle {
  readonly id: number;
  readonly constants?: Record<string, unknown> | undefined;
}

const ofKind =
  <T>(accepted: string, ...kinds: string[]): Reader<T> =>
  (value, where) =>
    kinds.includes(kindOf(value)) ? (value as T) : refuse("bad-option", where, accepted, value);

/** The options that every call has (WorkerCall). */
export const CALL = {
  signal: ofKind<AbortSignal>("an AbortSignal", "AbortSignal"),
  onProgress: ofKind<(fraction: number) => void>("a function", "Function", "AsyncFunction"),
  transfer: flag,
};

/** Stands in for what structured clone would lose or refuse; no option has this name. */
const KEY = "lookback:standin";
type Standin =
  | { readonly [KEY]: "handle"; readonly handle: Handle }
  | { readonly [KEY]: "mask"; readonly bits: Uint8Array; readonly dims: readonly number[] }
  | { readonly [KEY]: "detached"; readonly kind: string }
  | { readonly [KEY]: "other"; readonly kind: string };

const standin = (value: Standin): Standin => value;

/** A cyclic object is no argument of any call; one that is nested deeper than all of them need not be walked. */
const MOST_DEPTH = 6;

/** Packs the arguments, or the result, of one call. */
export class Parcel {
  /** Buffers that go along, rather than being copied once more. */
  readonly buffers = new Set<ArrayBuffer>();
  readonly #give: boolean;
  readonly #handleOf: (value: object) => Handle | undefined;
  /** What is given twice (q = k = v) arrives as one. */
  readonly #packed = new Map<object, unknown>();

  /** `give`: the arrays themselves, not copies. `handleOf` tells an object in the worker from data. */
  constructor(give: boolean, handleOf: (value: object) => Handle | undefined) {
    this.#give = give;
    this.#handleOf = handleOf;
  }

  pack(value: unknown, depth = 0): unknown {
    if (typeof value === "function" || typeof value === "symbol") return other(value);
    if (typeof value !== "object" || value === null) return value;
    if (this.#packed.has(value)) return this.#packed.get(value);
    const packed = depth > MOST_DEPTH ? other(value) : this.#object(value, depth + 1);
    this.#packed.set(value, packed);
    return packed;
  }

  #object(value: object, depth: number): unknown {
    if (ArrayBuffer.isView(value)) return this.#view(value);
    const kind = kindOf(value);
    if (/^(Shared)?ArrayBuffer$/.test(kind)) return this.#buffer(value as ArrayBuffer, 0, undefined);
    if (Array.isArray(value)) return value.map((item) => this.pack(item, depth));
    const handle = this.#handleOf(value);
    if (handle) return standin({ [KEY]: "handle", handle });
    if (isMask(value)) return standin({ [KEY]: "mask", bits: value.data, dims: [...value.dims] });
    if (kind === "Map") return new Map(Array.from(value as Map<unknown, unknown>, (pair) => this.#pair(pair, depth)));
    if (kind === "WebAssembly.Module") return value;
    const { data, dims } = value as { data?: unknown; dims?: unknown }; // may be getters: onnxruntime's tensors have them
    if (data !== undefined && dims !== undefined) return { data: this.pack(data, depth), dims: this.pack(dims, depth) };
    if (kind !== "Object") return other(value);
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, this.pack(item, depth)]));
  }

  #pair([key, value]: [unknown, unknown], depth: number): [unknown, unknown] {
    return [this.pack(key, depth), this.pack(value, depth)];
  }

  /** Only the bytes that a view shows: the buffer behind it may be a whole file of weights. */
  #view(view: ArrayBufferView): unknown {
    const kind = kindOf(view);
    const { buffer, byteOffset, byteLength } = view;
    const packed = this.#buffer(buffer, byteOffset, byteLength);
    if (!(kindOf(packed) === "ArrayBuffer")) return standin({ [KEY]: "detached", kind });
    const own = packed as ArrayBuffer;
    const View = (globalThis as unknown as Record<string, ViewConstructor>)[kind]!;
    const start = own === buffer ? byteOffset : 0;
    return new View(own, start, byteLength / (View.BYTES_PER_ELEMENT ?? 1));
  }

  /** The buffer itself where it may be given away, else a copy of the bytes; undefined if it is detached. */
  #buffer(buffer: ArrayBufferLike, from: number, length: number | undefined): ArrayBuffer | undefined {
    let bytes: Uint8Array;
    try {
      bytes = new Uint8Array(buffer, from, length);
    } catch {
      return undefined; // transferred before
    }
    const given = this.#give && kindOf(buffer) === "ArrayBuffer" ? (buffer as ArrayBuffer) : bytes.slice().buffer;
    this.buffers.add(given as ArrayBuffer);
    return given as ArrayBuffer;
  }
}

interface ViewConstructor {
  readonly BYTES_PER_ELEMENT?: number;
  new (buffer: ArrayBuffer, byteOffset: number, length: number): ArrayBufferView;
}

/** Something that no call takes: the call's own error will say so. */
const other = (value: unknown): Standin => standin({ [KEY]: "other", kind: kindOf(value) });

/** What arrived, with `objectOf` in the places of handles. */
export function unpack(value: unknown, objectOf: (handle: Handle) => unknown): unknown {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  if (Array.isArray(value)) return value.map((item) => unpack(item, objectOf));
  const kind = kindOf(value);
  if (kind === "Map") return new Map(Array.from(value as Map<unknown, unknown>, ([k, v]) => [k, unpack(v, objectOf)]));
  if (kind !== "Object") return value;
  if (KEY in value) return restore(value as Standin, objectOf);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, unpack(item, objectOf)]));
}

function restore(value: Standin, objectOf: (handle: Handle) => unknown): unknown {
  switch (value[KEY]) {
    case "handle":
      return objectOf(value.handle);
    case "mask":
      return makeMask(value.bits, value.dims);
    case "detached": {
      const view = new (globalThis as unknown as Record<string, ViewConstructor>)[value.kind]!(
        new ArrayBuffer(0),
        0,
        0,
      );
      structuredClone(view.buffer, { transfer: [view.buffer as ArrayBuffer] });
      return view;
    }
    default:
      return { [Symbol.toStringTag]: value.kind };
  }
}
