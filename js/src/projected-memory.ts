import { fail } from "./errors.js";
import type { Heap, Place } from "./heap.js";
import { Owned } from "./owned.js";
import type { ProjectedMemory } from "./types.js";

/** The keys and values of a memory after their projection, both [batch, keyLength, kvHeads·headDim], one behind the other. */
export class ProjectedKeysValues extends Owned implements ProjectedMemory {
  readonly batch: number;
  readonly keyLength: number;
  readonly #layer: object;
  readonly #generation: number;
  readonly #floats: number;

  constructor(heap: Heap, layer: object, generation: number, batch: number, keyLength: number, floats: number) {
    super(heap, "The projected memory");
    this.batch = batch;
    this.keyLength = keyLength;
    this.#layer = layer;
    this.#generation = generation;
    this.#floats = floats;
    this.hold(heap.own(this, floats * 8, "the projected memory"));
  }

  static is(value: unknown): value is ProjectedKeysValues {
    return typeof value === "object" && value !== null && #floats in value;
  }

  /** Throws unless it can be used by this layer with the weights it has now. */
  check(layer: object, generation: number): void {
    this.block();
    if (this.#layer !== layer)
      fail("stale-projection", "The memory was projected by another layer; project it with this one.");
    if (this.#generation !== generation) {
      fail("stale-projection", "The memory was projected before load() changed the weights; project it again.");
    }
  }

  keys(): Place {
    return { block: this.block(), offset: 0 };
  }

  values(): Place {
    return { block: this.block(), offset: this.#floats * 4 };
  }
}
