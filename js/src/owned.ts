import { fail } from "./errors.js";
import type { Block, Heap } from "./heap.js";

/** `Symbol.dispose`, or a stand-in where the engine has none: importing lookback changes no global. */
export const DISPOSE: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose");

/** An object that owns one block of wasm memory until it is disposed of. */
export abstract class Owned {
  readonly #heap: Heap;
  readonly #what: string;
  #block: Block | undefined;

  constructor(heap: Heap, what: string) {
    heap.raw; // throws where the whole instance is disposed
    this.#heap = heap;
    this.#what = what;
  }

  get disposed(): boolean {
    return !this.#block?.address || this.#heap.disposed;
  }

  dispose(): void {
    if (this.#block) this.#heap.release(this.#block);
  }

  [DISPOSE](): void {
    this.dispose();
  }

  /** Owns `block` from now on, and gives back what it had. */
  hold(block: Block): Block {
    this.dispose();
    this.#block = block;
    return block;
  }

  /** The block of a living object. */
  block(where: string = this.#what): Block {
    this.#heap.raw;
    return this.disposed ? fail("disposed", `${where} was disposed and can no longer be used.`) : this.#block!;
  }
}
