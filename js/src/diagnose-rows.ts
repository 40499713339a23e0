import { HIDING } from "./diagnose-mask.js";

// Statistics of the weights, gathered row by row from slices of the masked scores.

/** Rows that see fewer keys say nothing about a head: their weights can hardly help being large, or equal. */
export const MIN_KEYS = 4;
/** A weight above this leaves nothing for the others: the gradient through softmax, w·(1 − w), is all but 0. */
const ONE_HOT = 0.999;
/** A key with at least this weight has most of the row. */
const MOST = 0.5;

// Looked up once: in some hosts (vm contexts, sandboxed frames) a global costs far more than the loop's own work.
const { exp } = Math;
export const MASKED = -Infinity;
const INFINITE = Infinity;

/** What a row sees. */
export const Sight = { unknown: 0, nothing: 1, something: 2, hidden: 3 } as const;

export interface BiasValues {
  readonly values: ArrayLike<number>;
  /** In elements: batch, head, query, key. */
  readonly strides: readonly number[];
}

export const placeOf = (strides: readonly number[], b: number, h: number, i: number, j: number): number =>
  b * strides[0]! + h * strides[1]! + i * strides[2]! + j * strides[3]!;

/** What the rows of one head add up to; only rows that see MIN_KEYS keys or more are judged. */
export interface HeadSums {
  judged: number;
  /** ln(visible keys) − entropy: 0 where all weights are equal. */
  deficit: number;
  /** entropy / ln(visible keys): 1 where all weights are equal, 0 where one has all. */
  evenness: number;
  oneHot: number;
  /** Largest − smallest visible score. */
  spread: number;
}

export interface Sizes {
  readonly batch: number;
  readonly heads: number;
  readonly queryLength: number;
  readonly keyLength: number;
}

export class RowStatistics {
  readonly sums: HeadSums[];
  /** [B, H, Lk]: keys that some row sees. */
  readonly seenKeys: Uint8Array;
  /** [B, H, Lq], values of Sight. */
  readonly sights: Uint8Array;
  /** [B, H, Lk]: judged rows in which the key has most of the weight. */
  readonly most: Int32Array;
  /** [B, H]: the largest share of a row's weight that goes to later keys. */
  readonly futureWeight: Float64Array;
  /** Visible scores that are NaN or +∞, and the first of them as [batch, head, row, key]. */
  broken = 0;
  firstBroken: readonly [number, number, number, number] | undefined;
  readonly #sizes: Sizes;
  readonly #offsets: ArrayLike<number>;
  readonly #hiding: BiasValues | undefined;
  /** [H, H]: summed squares of the differences between two heads, relative to their own. */
  readonly #differences: Float64Array;
  readonly #compared: Int32Array;
  /** ±1 per key, at random: a weighted sum stands for a row, the square of its change for that of the row. */
  readonly #signs: Float64Array;
  /** Of the row at hand: its stand-in and squared length per head; NaN where it is not judged. */
  readonly #standIns: Float64Array;
  readonly #squares: Float64Array;

  /** `hiding`: a bias with large finite negatives, which are then taken for the mask that was meant. */
  constructor(sizes: Sizes, offsets: ArrayLike<number>, hiding: BiasValues | undefined) {
    const { batch, heads, queryLength, keyLength } = sizes;
    [this.#sizes, this.#offsets, this.#hiding] = [sizes, offsets, hiding];
    this.sums = Array.from({ length: heads }, () => ({ judged: 0, deficit: 0, evenness: 0, oneHot: 0, spread: 0 }));
    this.seenKeys = new Uint8Array(batch * heads * keyLength);
    this.sights = new Uint8Array(batch * heads * queryLength);
    this.most = new Int32Array(batch * heads * keyLength);
    this.futureWeight = new Float64Array(batch * heads);
    this.#differences = new Float64Array(heads * heads);
    this.#compared = new Int32Array(heads * heads);
    this.#signs = Float64Array.from({ length: keyLength }, (_, j) => (Math.imul(j + 1, 0x9e3779b1) < 0 ? 1 : -1));
    this.#standIns = new Float64Array(heads);
    this.#squares = new Float64Array(heads);
  }

  /** Takes the masked scores [B, H, to − from, Lk] of query rows [from, to), and uses them as scratch memory. */
  add(scores: Float32Array, from: number, to: number): void {
    const { batch, heads, keyLength } = this.#sizes;
    for (let b = 0; b < batch; b++) {
      for (let i = from; i < to; i++) {
        for (let h = 0; h < heads; h++) {
          const start = ((b * heads + h) * (to - from) + i - from) * keyLength;
          this.#addRow(scores.subarray(start, start + keyLength), b, h, i);
        }
        this.#compareHeads();
      }
    }
  }

  /** How much the rows of two heads (the larger first) differ, relative to their size: 0 = equal weights, NaN = too few compare. */
  difference(h: number, other: number, minRows: number): number {
    const at = h * this.#sizes.heads + other;
    return this.#compared[at]! < minRows ? Number.NaN : Math.sqrt(this.#differences[at]! / this.#compared[at]!);
  }

  #addRow(row: Float32Array, b: number, h: number, i: number): void {
    const { heads, queryLength, keyLength } = this.#sizes;
    const head = b * heads + h;
    const { visible, hidden, broken, largest, smallest, top } = this.#look(row, b, h, i);
    const sees = visible > 0 || broken > 0;
    this.sights[head * queryLength + i] = sees ? Sight.something : hidden > 0 ? Sight.hidden : Sight.nothing;
    this.#standIns[h] = Number.NaN;
    if (visible === 0 || broken > 0) return;

    const diagonal = i + this.#offsets[b]!;
    let [total, weighted, future, standIn, square] = [0, 0, 0, 0, 0];
    for (let j = 0; j < keyLength; j++) {
      const below = row[j]! - largest;
      if (below === MASKED) continue;
      const weight = exp(below);
      total += weight;
      weighted += weight * below;
      square += weight * weight;
      standIn += weight * this.#signs[j]!;
      if (j > diagonal) future += weight;
    }
    this.futureWeight[head] = Math.max(this.futureWeight[head]!, future / total);
    if (visible < MIN_KEYS) return;

    const entropy = Math.log(total) - weighted / total;
    const sums = this.sums[h]!;
    sums.judged++;
    sums.deficit += Math.log(visible) - entropy;
    sums.evenness += entropy / Math.log(visible);
    sums.spread += largest - smallest;
    if (1 / total > ONE_HOT) sums.oneHot++;
    if (1 / total > MOST) this.most[head * keyLength + top]!++;
    this.#standIns[h] = standIn / total;
    this.#squares[h] = square / total / total;
  }

  /** Counts what the row sees, and puts −∞ wherever there is nothing to be weighed. */
  #look(row: Float32Array, b: number, h: number, i: number) {
    const { heads, keyLength } = this.#sizes;
    const hiding = this.#hiding;
    const seenFrom = (b * heads + h) * keyLength;
    let [visible, hidden, broken, top] = [0, 0, 0, -1];
    let [largest, smallest] = [MASKED, INFINITE];
    for (let j = 0; j < keyLength; j++) {
      const score = row[j]!;
      if (score === MASKED) continue;
      this.seenKeys[seenFrom + j] = 1;
      if (!(score < INFINITE)) {
        broken++;
        this.broken++;
        this.firstBroken ??= [b, h, i, j];
      } else if (hiding && hiding.values[placeOf(hiding.strides, b, h, i, j)]! <= HIDING) {
        hidden++;
        row[j] = MASKED;
      } else {
        visible++;
        if (score > largest) [largest, top] = [score, j];
        if (score < smallest) smallest = score;
      }
    }
    return { visible, hidden, broken, largest, smallest, top };
  }

  #compareHeads(): void {
    const { heads } = this.#sizes;
    for (let h = 1; h < heads; h++) {
      for (let other = 0; other < h; other++) {
        const difference = this.#standIns[h]! - this.#standIns[other]!;
        if (Number.isNaN(difference)) continue;
        const size = (this.#squares[h]! + this.#squares[other]!) / 2;
        this.#differences[h * heads + other]! += (difference * difference) / size;
        this.#compared[h * heads + other]!++;
      }
    }
  }
}
