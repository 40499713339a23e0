import { fail, messageOf } from "../errors.js";

/** A file that is read from its beginning to its end, each byte once. */
export interface ByteReader {
  /** What messages call it. */
  readonly name: string;
  /** Its bytes in all, where that is known before the end. */
  readonly size: number | undefined;
  /** Bytes read and skipped so far. */
  readonly position: number;
  /** The next `length` bytes, good until the next read; throws where the file ends before. */
  read(length: number): Promise<Uint8Array>;
  skip(length: number): Promise<void>;
  /** What comes next, at most `most` bytes; nothing at the end. */
  next(most: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** A file that can be opened; undefined where there is none, and `absence` then says how that showed. */
export interface ByteSource {
  readonly name: string;
  readonly absence?: string;
  open(signal: AbortSignal | undefined): Promise<ByteReader | undefined>;
}

/** How much is read at once: enough to be fast, little beside a model. */
export const CHUNK_BYTES = 2 ** 20;

export function endsEarly(name: string, needed: number, size: number): never {
  fail("invalid-model", `${name} is cut off: it ends after ${size} bytes, where at least ${needed} are needed.`);
}

/** Reads at any place of something whose size is known. */
export abstract class PlacedReader implements ByteReader {
  position = 0;

  constructor(
    readonly name: string,
    readonly size: number,
    readonly signal: AbortSignal | undefined,
  ) {}

  protected abstract at(from: number, length: number): Promise<Uint8Array>;

  async read(length: number): Promise<Uint8Array> {
    this.signal?.throwIfAborted();
    const from = this.#advance(length);
    const bytes = await this.at(from, length);
    return bytes.length === length ? bytes : endsEarly(this.name, from + length, from + bytes.length);
  }

  async skip(length: number): Promise<void> {
    this.#advance(length);
  }

  async next(most: number): Promise<Uint8Array> {
    return this.read(Math.min(most, this.size - this.position));
  }

  async close(): Promise<void> {}

  #advance(length: number): number {
    const from = this.position;
    if (from + length > this.size) endsEarly(this.name, from + length, this.size);
    this.position += length;
    return from;
  }
}

export class MemoryReader extends PlacedReader {
  readonly #bytes: Uint8Array;

  constructor(name: string, bytes: Uint8Array, signal: AbortSignal | undefined) {
    super(name, bytes.length, signal);
    this.#bytes = bytes;
  }

  protected override async at(from: number, length: number): Promise<Uint8Array> {
    return this.#bytes.subarray(from, from + length);
  }
}

export class BlobReader extends PlacedReader {
  readonly #blob: Blob;

  constructor(name: string, blob: Blob, signal: AbortSignal | undefined) {
    super(name, blob.size, signal);
    this.#blob = blob;
  }

  protected override async at(from: number, length: number): Promise<Uint8Array> {
    return new Uint8Array(await this.#blob.slice(from, from + length).arrayBuffer());
  }
}

/** What comes over the network, in pieces of any size. */
export class StreamReader implements ByteReader {
  position = 0;
  readonly #pieces: ReadableStreamDefaultReader<Uint8Array>;
  #rest: Uint8Array = new Uint8Array(0);

  constructor(
    readonly name: string,
    readonly size: number | undefined,
    body: ReadableStream<Uint8Array>,
    readonly signal: AbortSignal | undefined,
  ) {
    this.#pieces = body.getReader();
  }

  async read(length: number): Promise<Uint8Array> {
    if (length <= this.#rest.length) return this.#take(length);
    const whole = new Uint8Array(length);
    let filled = 0;
    while (filled < length) {
      if (!(await this.#more())) endsEarly(this.name, this.position + length - filled, this.position);
      const piece = this.#take(Math.min(length - filled, this.#rest.length));
      whole.set(piece, filled);
      filled += piece.length;
    }
    return whole;
  }

  async skip(length: number): Promise<void> {
    for (let left = length; left > 0; ) {
      if (!(await this.#more())) endsEarly(this.name, this.position + left, this.position);
      left -= this.#take(Math.min(left, this.#rest.length)).length;
    }
  }

  async next(most: number): Promise<Uint8Array> {
    return (await this.#more()) ? this.#take(Math.min(most, this.#rest.length)) : this.#rest;
  }

  async close(): Promise<void> {
    await this.#pieces.cancel().catch(() => {}); // a stream that has failed has nothing left to cancel
  }

  #take(length: number): Uint8Array {
    const taken = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(length);
    this.position += length;
    return taken;
  }

  /** Whether a byte is left. */
  async #more(): Promise<boolean> {
    while (this.#rest.length === 0) {
      this.signal?.throwIfAborted();
      const { done, value } = await this.#pieces.read().catch((error: unknown) => {
        this.signal?.throwIfAborted();
        return fail(
          "model-unreachable",
          `${this.name} broke off after ${this.position} bytes: ${messageOf(error)}`,
          error,
        );
      });
      if (done) return false;
      this.#rest = value;
    }
    return true;
  }
}
