/** The public types of lb.diagnose and lb.assertCausal. */
import type { Tensor, TensorLike } from "./types.js";

export type FindingCode =
  /** q, k or v hold NaN or ±∞, or the scores come to that. */
  | "non-finite"
  /** Rows to which no key is visible. */
  | "rows-see-nothing"
  /** The mask shows the future and hides the past. */
  | "mask-inverted"
  /** The mask hides the future except for some places. */
  | "future-leak"
  /** Large finite negatives in the bias, where −∞ or a mask was meant. */
  | "bias-is-mask"
  /** A bias of only 0 and 1: a mask in the wrong option. */
  | "bias-zero-one"
  /** The scale given makes the weights one-hot, or equal. */
  | "scale-forgotten"
  /** Scores so far apart that nearly every row has one weight of 1. */
  | "saturated"
  /** Heads that give every visible key the same weight. */
  | "uniform-heads"
  /** Heads in which most rows look at one and the same key. */
  | "sink-heads"
  /** Heads with the weights of another head. */
  | "copied-heads";

/** One thing that `lb.diagnose` found. The lists are sorted, and absent where the finding is not about one of them. */
export interface Finding {
  readonly code: FindingCode;
  /** 'error': results are wrong; 'warning': probably not what was meant; 'info': fine if it is intended. */
  readonly severity: "error" | "warning" | "info";
  /** What, where, how much, and what to do. */
  readonly message: string;
  /** Batch rows, query heads (key heads for k and v), query rows and keys concerned. */
  readonly batches?: readonly number[];
  readonly heads?: readonly number[];
  readonly rows?: readonly number[];
  readonly keys?: readonly number[];
  /** The measurements that the message speaks of, by name. */
  readonly numbers: Readonly<Record<string, number>>;
}

/** The findings, the gravest first; empty when all is well. `String(diagnosis)` is for reading. */
export interface Diagnosis extends ReadonlyArray<Finding> {
  /** What was looked at. Long inputs are sampled: `rows` of `queryLength` query rows, in slices spread evenly. */
  readonly examined: {
    readonly batch: number;
    readonly heads: number;
    readonly queryLength: number;
    readonly keyLength: number;
    readonly rows: number;
    /**
     * The largest share of its weight that a row gives to later positions; 0 in causal attention. Absent where queries and keys differ in
     * length and nothing says how they are aligned.
     */
    readonly futureWeight?: number;
  };
  toString(): string;
}

/** What a function over a sequence may return: a row per position, in [length, …], [batch, length, …] or [batch, heads, length, …]. */
export type SequenceOutput = TensorLike<ArrayLike<number>> | Float32Array;

/** Any function over a sequence: x is a fresh [length, width], or [batch, length, width] where `batch` is given. */
export type SequenceFunction = (x: Tensor) => SequenceOutput | PromiseLike<SequenceOutput>;

export interface AssertCausalOptions {
  /** Positions of the sequence. */
  length: number;
  /** Numbers per position. */
  width: number;
  /** Gives fn a batch, every row of which tests another position: that many times fewer calls. */
  batch?: number;
  /** The largest change of an output that still counts as none; default 0: not a bit may change. */
  tolerance?: number;
  /** Test at most this many positions, spread evenly with the first and the last; default all of them. */
  probes?: number;
  /** Disturb with NaN, which shows even what is multiplied by 0 or by a weight too small to be seen; default false. */
  nan?: boolean;
  /** Of the random inputs; default 0. */
  seed?: number;
}

/** What `lb.assertCausal` tested and found to be so. */
export interface CausalReport {
  /** Tested positions j: with all inputs from j on replaced, no output before j changed. */
  readonly positions: readonly number[];
  /** Every position was tested: a proof for these inputs, rather than a sample. */
  readonly complete: boolean;
  readonly calls: number;
  /** The largest change seen, at most the tolerance. */
  readonly largestChange: number;
  toString(): string;
}
