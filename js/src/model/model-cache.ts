import { fail, refuse } from "../errors.js";
import { oneOf, positiveInteger, readOptions } from "../options.js";
import { DISPOSE } from "../owned.js";
import type { Decoder } from "./decoder.js";
import { CHUNK } from "./feed.js";
import type { DecoderSession } from "./session.js";
import type { CacheDtype, ModelCache } from "./types.js";

const CONFIG = { batch: positiveInteger, capacity: positiveInteger, dtype: oneOf<CacheDtype>("f32", "int8") };

export const makeSession = (decoder: Decoder, batch: number, capacity: number, dtype: CacheDtype): DecoderSession =>
  decoder.session({ batch, capacity, chunk: Math.min(CHUNK, capacity), dtype });

/** One text at a time: tokens of two would alternate. */
export function refuseBusy({ busy }: DecoderSession): void {
  if (busy)
    fail("cache-busy", "A generation goes on with this cache; wait for its end, leave its loop, or give each its own.");
}

export class OwnedModelCache implements ModelCache {
  readonly batch: number;
  readonly capacity: number;
  readonly dtype: CacheDtype;
  readonly #session: DecoderSession;

  constructor(decoder: Decoder, given: unknown) {
    const { batch, capacity, dtype } = readOptions(given, CONFIG, "cache");
    this.batch = batch ?? 1;
    this.capacity = capacity ?? decoder.settings.contextLength;
    this.dtype = dtype ?? "f32";
    this.#session = makeSession(decoder, this.batch, this.capacity, this.dtype);
  }

  /** The session of a cache that was made for this decoder and batch. */
  static read(value: unknown, decoder: Decoder, batch: number): DecoderSession {
    if (typeof value !== "object" || value === null || !(#session in value))
      return refuse("bad-option", "cache", "'f32', 'int8' or a cache of model.cache()", value);
    const session = value.#session;
    if (session.decoder !== decoder) fail("other-instance", "The cache belongs to another model.");
    if (value.batch !== batch) fail("cache-mismatch", `The cache has batch ${value.batch}, the call ${batch}.`);
    session.block(); // throws where it was disposed of
    refuseBusy(session);
    return session;
  }

  get lengths(): number[] {
    return this.#session.lengths;
  }

  get length(): number {
    return this.lengths.reduce((most, n) => Math.max(most, n), 0);
  }

  get disposed(): boolean {
    return this.#session.disposed;
  }

  truncate(length: number): void {
    if (!Number.isInteger(length) || length < 0) refuse("bad-option", "truncate: the length", "an integer ≥ 0", length);
    refuseBusy(this.#session);
    this.#session.truncate(Math.min(length, this.length));
  }

  reset(): void {
    refuseBusy(this.#session);
    this.#session.reset();
  }

  dispose(): void {
    this.#session.dispose();
  }

  [DISPOSE](): void {
    this.dispose();
  }
}
