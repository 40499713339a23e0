import { fail, kindOf, refuse, show } from "./errors.js";
import { checkBytes, type Heap, Job, type Place } from "./heap.js";
import { readKeyLengths, readKeyMask } from "./keys.js";
import type { KvCache, KvCacheConfig } from "./kv-cache-types.js";
import type { RawCacheShape } from "./module.js";
import { count, flag, later, oneOf, positiveInteger, readOptions, required } from "./options.js";
import { Owned } from "./owned.js";
import { type Geometry, rawView, readLayout } from "./shapes.js";
import { checkAttached, product, readFloats, tensorOf } from "./tensors.js";
import type { Tensor } from "./types.js";

const CONFIG = {
  batch: positiveInteger,
  kvHeads: positiveInteger,
  headDim: positiveInteger,
  valueDim: positiveInteger,
  capacity: positiveInteger,
  dtype: oneOf("f32", "int8"),
  rolling: flag,
};
const APPEND = { keyLengths: later<unknown>(), keyMask: later<unknown>() };
/** Sizes that tokens and cache share. */
const SHARED = ["batch", "kvHeads", "headDim", "valueDim"] as const;
/** The core's header of saved bytes: a magic number, then these, as int32. */
const SAVED = [...SHARED, "capacity", "dtype", "rolling"] as const;
const MAGIC = 0x314b424c;
const INVALID_CACHE = 10;

type Config = Required<KvCacheConfig>;
/** Sizes of tokens that are attended or appended; keyLength counts the new ones. */
type Tokens = Pick<Geometry, (typeof SHARED)[number] | "keyLength">;

export class Cache extends Owned implements KvCache {
  readonly config: Config;
  readonly #heap: Heap;

  constructor(heap: Heap, given: unknown, where = "kvCache") {
    super(heap, "The cache");
    this.#heap = heap;
    const own = required(readOptions(given, CONFIG, where), ["batch", "kvHeads", "headDim", "capacity"], where);
    this.config = Object.freeze({ valueDim: own.headDim, dtype: "f32", rolling: false, ...own } as Config);
    const { batch, kvHeads, headDim, valueDim, capacity, dtype } = this.config;
    checkBytes(batch * kvHeads * capacity * (headDim + valueDim) * (dtype === "int8" ? 1 : 4), "The cache");
    const shape = { ...this.config, type: this.#saved("dtype") } as RawCacheShape;
    const block = this.hold(heap.own(this, heap.raw.kvCacheBytes(shape), "the cache"));
    heap.raw.kvCacheCreate(shape, block.address);
  }

  static is(value: unknown): value is Cache {
    return typeof value === "object" && value !== null && #heap in value;
  }

  get capacity(): number {
    return this.config.capacity;
  }

  get lengths(): number[] {
    return this.#perRow("kvCacheLengths");
  }

  get length(): number {
    return this.lengths.reduce((most, n) => Math.max(most, n), 0);
  }

  get firstPosition(): number {
    return this.#perRow("kvCacheFirstPositions").reduce((least, n) => Math.min(least, n));
  }

  append(k: unknown, v: unknown, given?: unknown): void {
    const block = this.block();
    const options = readOptions(given, APPEND, "append");
    const keys = readFloats(k, "k", this.#heap);
    const values = readFloats(v, "v", this.#heap);
    const { kvHeads } = this.config;
    const [keyLayout, valueLayout] = [
      readLayout(keys.dims, "k", kvHeads, "kvHeads"),
      readLayout(values.dims, "v", kvHeads, "kvHeads"),
    ];
    const { batch, length } = keyLayout;
    for (const what of ["batch", "length"] as const) {
      if (keyLayout[what] !== valueLayout[what])
        fail(
          `${what}-mismatch`,
          `k and v must have the same ${what}; received ${keyLayout[what]} and ${valueLayout[what]}.`,
        );
    }
    const tokens = { batch, kvHeads, headDim: keyLayout.width, valueDim: valueLayout.width, keyLength: length };
    const { keyLengths, keyMask } = options;
    const counts = keyLengths === undefined ? undefined : readKeyLengths(keyLengths, batch, length);
    const bits = keyMask === undefined ? undefined : readKeyMask(keyMask, batch, length);
    this.#fit(tokens, counts);

    const job = new Job(this.#heap, "append");
    const places = [keys.source, values.source, counts, bits].map((source) => source && job.input(source));
    job.run(undefined, (raw, at) =>
      raw.kvCacheAppend(block.address, {
        keys: rawView(at(places[0]), keyLayout),
        values: rawView(at(places[1]), valueLayout),
        count: length,
        keyLengths: at(places[2]),
        keyMask: at(places[3]),
      }),
    );
  }

  read(): { keys: Tensor; values: Tensor } {
    const block = this.block();
    const { batch, kvHeads, headDim, valueDim } = this.config;
    const job = new Job(this.#heap, "read");
    const part = (width: number) => {
      const dims = [batch, kvHeads, this.length - this.firstPosition, width];
      return { dims, output: job.output(product(dims)) };
    };
    const [keys, values] = [part(headDim), part(valueDim)];
    job.run(undefined, (raw, at) => raw.kvCacheRead(block.address, at(keys.output.place), at(values.output.place)));
    return { keys: tensorOf(keys.output.values!, keys.dims), values: tensorOf(values.output.values!, values.dims) };
  }

  truncate(length: number): void {
    const block = this.block();
    count(length, "truncate: the length");
    const firsts = this.#perRow("kvCacheFirstPositions");
    const row = firsts.findIndex((first) => length < first);
    if (row >= 0) {
      fail(
        "evicted",
        `truncate: tokens before position ${firsts[row]} of row ${row} have made room for others; ${length} is before it.`,
      );
    }
    this.#heap.raw.kvCacheTruncate(block.address, length);
  }

  reset(): void {
    const { address } = this.block();
    this.#heap.raw.kvCacheReset(address);
  }

  clone(): KvCache {
    const block = this.block();
    const copy = new Cache(this.#heap, this.config);
    this.#heap.copy(block, copy.block());
    return copy;
  }

  save(): Uint8Array {
    const { address } = this.block();
    const job = new Job(this.#heap, "save");
    const bytes = job.fresh(this.#heap.raw.kvCacheSavedBytes(address), Uint8Array);
    job.run(undefined, (raw, at) => raw.kvCacheSave(address, at(bytes.place)));
    return bytes.values!;
  }

  load(given: unknown): void {
    const { address } = this.block();
    const bytes = readBytes(given);
    const header = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const what = "load: these are no bytes that save() of a cache gave";
    if (bytes.length < 4 * (SAVED.length + 1) || header.getInt32(0, true) !== MAGIC) fail("invalid-cache", `${what}.`);
    const differences = SAVED.flatMap((name, n) => {
      const [saved, own] = [header.getInt32(4 * (n + 1), true), this.#saved(name)];
      return saved === own ? [] : [`${name} ${shown(name, saved)} there and ${shown(name, own)} here`];
    });
    if (differences.length > 0)
      fail("cache-mismatch", `load: the bytes are of another cache: ${differences.join(", ")}.`);
    const job = new Job(this.#heap, "load");
    const source = job.input(bytes);
    job.run(undefined, (raw, at) => {
      const status = raw.kvCacheLoad(address, at(source), bytes.length);
      if (status === INVALID_CACHE) fail("invalid-cache", `${what}: cut off or damaged (${bytes.length} bytes).`);
      return status;
    });
  }

  /** Its memory for a call. */
  place(): Place {
    return { block: this.block(), offset: 0 };
  }

  /** Checks that it can serve a call with these tokens; gives the number of columns before the new ones. */
  serve(tokens: Tokens, counts: Int32Array | undefined, left: number | undefined): number {
    this.#fit(tokens, counts);
    const { length, firstPosition } = this;
    const { capacity, rolling } = this.config;
    if (!rolling) return length;
    if (left === undefined || left >= capacity) {
      fail(
        "rolling-window",
        `A rolling cache forgets all but the last ${capacity} tokens (its capacity): give window.left below ${capacity}.`,
      );
    }
    const firsts = this.#perRow("kvCacheFirstPositions");
    const row = this.lengths.findIndex((n, b) => firsts[b]! > Math.max(0, n - left));
    if (row >= 0) {
      fail(
        "evicted",
        `With window.left ${left} the next token of row ${row} (position ${this.lengths[row]}) sees back to ${this.lengths[row]! - left}, but after truncate() the cache begins at ${firsts[row]}.`,
      );
    }
    return length - firstPosition;
  }

  #fit(tokens: Tokens, counts: Int32Array | undefined): void {
    const { config } = this;
    const other = SHARED.find((name) => config[name] !== tokens[name]);
    if (other) fail("cache-mismatch", `The cache has ${other} ${config[other]}, the call ${tokens[other]}.`);
    const { lengths } = this;
    const added = (b: number) => counts?.[b] ?? tokens.keyLength;
    const row = config.rolling ? -1 : lengths.findIndex((n, b) => n + added(b) > config.capacity);
    if (row >= 0) {
      fail(
        "cache-full",
        `The cache has a capacity of ${config.capacity} tokens; row ${row} holds ${lengths[row]}, and ${added(row)} more do not fit (lengths: ${show(lengths)}).`,
      );
    }
  }

  #perRow(list: "kvCacheLengths" | "kvCacheFirstPositions"): number[] {
    const { address } = this.block();
    return Array.from(this.#heap.ints(this.#heap.raw[list](address), this.config.batch));
  }

  #saved(name: (typeof SAVED)[number]): number {
    const value = this.config[name];
    return typeof value === "string" ? Number(value === "int8") : Number(value);
  }
}

const shown = (name: string, saved: number): string | number =>
  name === "dtype" ? ["f32", "int8"][saved]! : name === "rolling" ? String(saved === 1) : saved;

function readBytes(value: unknown): Uint8Array {
  const bytes = /^(Shared)?ArrayBuffer$/.test(kindOf(value))
    ? new Uint8Array(value as ArrayBuffer)
    : (value as Uint8Array);
  if (kindOf(bytes) !== "Uint8Array") refuse("invalid-cache", "load: the bytes", "a Uint8Array or ArrayBuffer", value);
  checkAttached(bytes, "load");
  return bytes;
}

export const makeCache = (heap: Heap, config: unknown, where?: string): KvCache => new Cache(heap, config, where);

/** A cache given to a call on `heap`. */
export function readCache(value: unknown, heap: Heap): Cache {
  if (!Cache.is(value)) refuse("bad-option", "cache", "a cache of lb.kvCache() or layer.kvCache()", value);
  if (value.block().heap !== heap) fail("other-instance", "cache belongs to another lookback instance.");
  return value;
}
