import { fail } from "./errors.js";
import type { Block, Heap, Place } from "./heap.js";
import type { ProjectedMemory } from "./types.js";
import { DISPOSE } from "./wasm-tensor.js";

/** The keys and values of a memory after their projection, both [batch, keyLength, kvHeads·headDim], one behind the other. */
export class ProjectedKeysValues implements ProjectedMemory {
  readonly batch: number;
  readonly keyLength: number;
  readonly #layer: object;
  readonly #generation: number;
  readonly #floats: number;
  readonly #block: Block;

  constructor(heap: Heap, layer: object, generation: number, batch: number, keyLength: number, floats: number) {
    this.batch = batch;
    this.keyLength = keyLength;
    this.#layer = layer;
    this.#generation = generation;
    this.#floats = floats;
    this.#block = heap.own(this, floats * 8, "the projected memory");
  }

  static is(value: unknown): value is ProjectedKeysValues {
    return typeof value === "object" && value !== null && #block in value;
  }

  get disposed(): boolean {
    return this.#block.address === 0 || this.#block.heap.disposed;
  }

  /** Throws unless it can be used by this layer with the weights it has now. */
  check(layer: object, generation: number): void {
    if (this.disposed) fail("disposed", "The projected memory was disposed and can no longer be used.");
    if (this.#layer !== layer)
      fail("stale-projection", "The memory was projected by another layer; project it with this one.");
    if (this.#generation !== generation) {
      fail("stale-projection", "The memory was projected before load() changed the weights; project it again.");
    }
  }

  keys(): Place {
    return { block: this.#block, offset: 0 };
  }

  values(): Place {
    return { block: this.#block, offset: this.#floats * 4 };
  }

  dispose(): void {
    this.#block.heap.release(this.#block);
  }

  [DISPOSE](): void {
    this.dispose();
  }
}
