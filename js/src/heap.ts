import { fail } from "./errors.js";
import type { RawModule, RawStatus } from "./module.js";
import type { MemoryReport } from "./types.js";

// The only file that knows addresses and makes views of wasm memory. A view is made for each access and never kept: memory may grow
// with any allocation, and the old views then read nothing.

/** Places start on a cache line. */
const ALIGNMENT = 64;
const SCRATCH_STEP = 65536;

/** What is copied into wasm memory; a float array of another width is converted to float32 by the copy. */
export type Source = ArrayBufferView & ArrayLike<number>;

/** Wasm memory owned by one live object. */
export interface Block {
  readonly heap: Heap;
  /** 0 once released. */
  address: number;
  readonly bytes: number;
}

/** Where a call finds an operand: inside of a block, or of the scratch arena that the call will be given. */
export interface Place {
  readonly block: Block | undefined;
  readonly offset: number;
}

/** The address of a place; 0 for an absent one. */
export type At = (place: Place | undefined) => number;

export type Values = Float32Array | Int32Array | Uint8Array;
/** The constructor of a kind of values. */
interface Kind<Out extends Values> {
  readonly BYTES_PER_ELEMENT: number;
  new (length: number): Out;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): Out;
}

/** A result on its way out: into `target`, or into a fresh array that is `values` after the run. */
export interface Output<Out extends Values = Float32Array> {
  readonly place: Place;
  readonly length: number;
  readonly kind: Kind<Out>;
  readonly target: Float32Array | Block | undefined;
  values: Out | undefined;
}

export function checkBytes(bytes: number, what: string): void {
  if (bytes >= 2 ** 32) {
    fail("too-large", `${what} would take ${bytes} bytes; WebAssembly memory ends at 4294967296 (2^32).`);
  }
}

function outOfMemory(bytes: number, what: string, cause?: unknown): never {
  fail("out-of-memory", `Out of memory: ${what} asked for ${bytes} bytes.`, cause);
}

/** Of each instance: for the package's other entries, which are given the instance alone. */
export const heaps = new WeakMap<object, Heap>();

/** The core's functions for a call in slices: `begin` gives the number of items of work, or −status. */
export interface Slices {
  readonly begin: (raw: RawModule, at: At, workspace: number, workspaceBytes: number) => number;
  readonly run: "attentionRun" | "attentionBackwardRun" | "layerRun";
  readonly end: "attentionEnd" | "attentionBackwardEnd" | "layerEnd";
}

/** A call that has begun; its results are there, to be filled at its end. The heap takes no other call before. */
export interface SlicedWork {
  readonly items: number;
  run(from: number, to: number): void;
  /** `finished`: all items have run. */
  end(finished: boolean): void;
}

export class Heap {
  /** Where this is set, calls that can be divided are put off: it is given their work. */
  putOff: ((work: SlicedWork) => void) | undefined;
  #raw: RawModule | undefined;
  #scratch = 0;
  #scratchBytes = 0;
  #bytes = 0;
  #allocations = 0;
  /** A net for owners that were forgotten; dispose() is the way. */
  readonly #forgotten = new FinalizationRegistry<Block>((block) => this.release(block));

  constructor(raw: RawModule) {
    this.#raw = raw;
  }

  get disposed(): boolean {
    return this.#raw === undefined;
  }

  get raw(): RawModule {
    return this.#raw ?? fail("disposed", "This lookback instance was disposed; make a new one with createLookback().");
  }

  report(): MemoryReport {
    return { bytes: this.#bytes, allocations: this.#allocations, reserved: this.raw.HEAPU8.byteLength };
  }

  /** Memory for `owner`, until release() or, at the latest, until the owner is garbage. */
  own(owner: object, bytes: number, what: string): Block {
    checkBytes(bytes, what);
    let address = this.#allocate(bytes);
    if (address === 0) {
      this.#freeScratch();
      address = this.#allocate(bytes);
    }
    if (address === 0) outOfMemory(bytes, what);
    const block: Block = { heap: this, address, bytes };
    this.#bytes += bytes;
    this.#allocations++;
    this.#forgotten.register(owner, block, block);
    return block;
  }

  release(block: Block): void {
    if (block.address === 0) return;
    this.#forgotten.unregister(block);
    this.#raw?._free(block.address);
    this.#bytes -= block.bytes;
    this.#allocations--;
    block.address = 0;
  }

  /** A copy of `length` floats of a block. */
  read(block: Block, length: number, offset = 0): Float32Array {
    try {
      return this.floats(block.address + offset, length).slice();
    } catch (error) {
      return outOfMemory(length * 4, "a copy of the values", error);
    }
  }

  write(block: Block, values: ArrayLike<number> | number, length: number, offset = 0): void {
    const view = this.floats(block.address + offset, length);
    if (typeof values === "number") view.fill(values);
    else view.set(values);
  }

  /** Makes the bytes of `target` those of `source`. */
  copy(source: Block, target: Block): void {
    this.raw.HEAPU8.copyWithin(target.address, source.address, source.address + source.bytes);
  }

  /** Everything that lives here is dead from now on, and the wasm memory can be collected. */
  dispose(): void {
    this.#raw?.PThread?.terminateAllThreads();
    this.#raw = undefined;
  }

  /** The address of at least `bytes` bytes that hold until the next call. */
  scratch(bytes: number, what: string): number {
    if (bytes > this.#scratchBytes) {
      this.#freeScratch();
      const rounded = Math.ceil(bytes / SCRATCH_STEP) * SCRATCH_STEP;
      checkBytes(rounded + ALIGNMENT, what);
      this.#scratch = this.#allocate(rounded + ALIGNMENT);
      if (this.#scratch === 0) outOfMemory(bytes, what);
      this.#scratchBytes = rounded;
    }
    return align(this.#scratch);
  }

  floats(address: number, length: number): Float32Array {
    return new Float32Array(this.raw.HEAPU8.buffer, address, length);
  }

  ints(address: number, length: number): Int32Array {
    return new Int32Array(this.raw.HEAPU8.buffer, address, length);
  }

  copyIn(address: number, source: Source): void {
    const buffer = this.raw.HEAPU8.buffer;
    const { length } = source;
    const view =
      elementBytes(source) === 1
        ? new Uint8Array(buffer, address, length)
        : isInt32(source)
          ? this.ints(address, length)
          : this.floats(address, length);
    view.set(source);
  }

  #allocate(bytes: number): number {
    return this.raw._malloc(Math.max(bytes, 1)) >>> 0;
  }

  #freeScratch(): void {
    if (this.#scratch !== 0) this.raw._free(this.#scratch);
    this.#scratch = 0;
    this.#scratchBytes = 0;
  }
}

const align = (bytes: number): number => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
const isInt32 = (source: Source): boolean => (source as Int32Array)[Symbol.toStringTag] === "Int32Array";
const elementBytes = (source: Source): number => ((source as Uint8Array)[Symbol.toStringTag] === "Uint8Array" ? 1 : 4);

/** One call into wasm: collects its operands, lays them out at once, runs it, and brings the results out. */
export class Job {
  readonly #heap: Heap;
  readonly #what: string;
  readonly #inputs = new Map<Source | Block, Place>();
  readonly #outputs: Output<Values>[] = [];
  #bytes = 0;

  constructor(heap: Heap, what: string) {
    this.#heap = heap;
    this.#what = what;
  }

  /** The same array given twice (q = k = v) is copied once; a block is used where it is. */
  input(source: Source | Block): Place {
    let place = this.#inputs.get(source);
    if (place === undefined) {
      place = "heap" in source ? { block: source, offset: 0 } : this.room(source.length * elementBytes(source));
      this.#inputs.set(source, place);
    }
    return place;
  }

  /** Scratch memory. */
  room(bytes: number): Place {
    const place = { block: undefined, offset: this.#bytes };
    this.#bytes += align(bytes);
    return place;
  }

  /** Call this after every input(): a target that is an input as well is written at the end only. */
  output(length: number, target?: Float32Array | Block): Output {
    const inPlace = target !== undefined && "heap" in target && !this.#inputs.has(target);
    return this.#output(length, Float32Array, target, inPlace ? { block: target, offset: 0 } : undefined);
  }

  /** A fresh array of any kind. */
  fresh<Out extends Values>(length: number, kind: Kind<Out>): Output<Out> {
    return this.#output(length, kind);
  }

  #output<Out extends Values>(length: number, kind: Kind<Out>, target?: Output["target"], at?: Place): Output<Out> {
    const place = at ?? this.room(length * kind.BYTES_PER_ELEMENT);
    const output = { place, length, kind, target, values: undefined };
    this.#outputs.push(output);
    return output;
  }

  /**
   * Until `call` is reached nothing of the caller's has been written, and `call` itself refuses before it writes.
   * `workspaceBytes` is asked with addresses of scratch memory that say only absent or present.
   */
  run(
    workspaceBytes: ((raw: RawModule, at: At) => number) | undefined,
    call: (raw: RawModule, at: At, workspace: number, workspaceBytes: number) => RawStatus | undefined,
    slices?: Slices,
  ): void {
    const heap = this.#heap;
    // What a block holds may be looked at (a cache's sizes); the rest is not laid out yet.
    const planned: At = (place) => (place ? (place.block ? place.block.address + place.offset : ALIGNMENT) : 0);
    const needed = workspaceBytes?.(heap.raw, planned) ?? 0;
    const workspace = this.room(needed);
    checkBytes(this.#bytes, this.#what);
    const base = heap.scratch(this.#bytes, this.#what);
    const at: At = (place) => (place ? (place.block?.address ?? base) + place.offset : 0);
    for (const output of this.#outputs) if (output.target === undefined) output.values = freshArray(output);
    for (const [source, place] of this.#inputs) if (!("heap" in source)) heap.copyIn(at(place), source);

    const { raw, putOff } = heap;
    const check = (status: RawStatus | undefined) =>
      status && fail("core", `${this.#what}: ${raw.statusMessage(status)}`);
    const bringOut = () => {
      for (const output of this.#outputs) this.#bringOut(output, at);
    };
    if (!slices || !putOff) {
      check(call(raw, at, at(workspace), needed));
      bringOut();
      return;
    }
    const items = slices.begin(raw, at, at(workspace), needed);
    check(Math.max(0, -items));
    putOff({
      items,
      run: (from, to) => raw[slices.run](at(workspace), from, to),
      end: (finished) => {
        const status = raw[slices.end](at(workspace), finished);
        if (!finished) return;
        check(status);
        bringOut();
      },
    });
  }

  #bringOut({ place, length, kind, target, values }: Output<Values>, at: At): void {
    if (place.block !== undefined) return;
    const result = new kind(this.#heap.raw.HEAPU8.buffer, at(place), length);
    if (target !== undefined && "heap" in target) this.#heap.write(target, result, length);
    else (target ?? values)?.set(result);
  }
}

function freshArray({ length, kind }: Output<Values>): Values {
  try {
    return new kind(length);
  } catch (error) {
    return outOfMemory(length * kind.BYTES_PER_ELEMENT, "the result", error);
  }
}
