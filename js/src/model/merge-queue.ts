/** A pair of neighbours that the vocabulary has as one token. */
export interface Merge {
  /** Where the left one begins. */
  readonly left: number;
  readonly right: number;
  readonly id: number;
  readonly score: number;
  /** Symbols that change afterwards make it void. */
  readonly leftId: number;
  readonly rightId: number;
}

/** The best merge first: of the highest score, and among equals the leftmost. A binary heap. */
export class MergeQueue {
  readonly #heap: Merge[] = [];

  push(merge: Merge): void {
    const heap = this.#heap;
    let at = heap.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBetter(merge, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = merge;
  }

  pop(): Merge | undefined {
    const heap = this.#heap;
    const best = heap[0];
    const last = heap.pop();
    if (best === undefined || last === undefined || heap.length === 0) return best;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBetter(heap[child + 1]!, heap[child]!)) child++;
      if (!isBetter(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return best;
  }
}

const isBetter = (a: Merge, b: Merge): boolean => a.score > b.score || (a.score === b.score && a.left < b.left);
