import { fail, show } from "./errors.js";
import { readOptions } from "./options.js";
import type { Geometry } from "./shapes.js";
import type { WeightsKind } from "./types.js";

/** The stages in the order of the core's enum. */
const KINDS: readonly WeightsKind[] = ["scores", "capped", "masked", "softmax"];

/** What `weights` asks for, checked against the call. */
export interface WeightsPlan {
  readonly kind: number;
  /** Undefined = all heads, in order. */
  readonly heads: Int32Array | undefined;
  readonly from: number;
  readonly to: number;
  /** [B, heads asked for, rows asked for, Lk]. */
  readonly dims: readonly number[];
}

function readKind(value: unknown): number {
  const kind = KINDS.indexOf(value as WeightsKind);
  if (kind < 0) {
    fail(
      "bad-weights-request",
      `weights must be 'softmax', 'scores', 'capped' or 'masked', or { kind, heads, queries }; received ${show(value)}.`,
    );
  }
  return kind;
}

const REQUEST = {
  kind: readKind,
  heads: (value: unknown) => value,
  queries: (value: unknown) => value,
};

export function planWeights(
  request: unknown,
  { batch, heads, queryLength, keyLength }: Geometry,
): WeightsPlan | undefined {
  if (request === undefined) return undefined;
  const wanted = typeof request === "object" ? readOptions(request, REQUEST, "weights") : { kind: readKind(request) };
  const kind = wanted.kind ?? KINDS.indexOf("softmax");
  const rows = wanted.queries === undefined ? [0, queryLength] : integers(wanted.queries, "queries", queryLength);
  const [from, to] = rows as [number, number];
  if (rows.length !== 2 || from > to) {
    fail(
      "bad-weights-request",
      `weights: queries must be [from, to) with 0 ≤ from ≤ to ≤ ${queryLength}; received ${show(wanted.queries)}.`,
    );
  }
  const chosen = wanted.heads === undefined ? undefined : Int32Array.from(integers(wanted.heads, "heads", heads - 1));
  return { kind, heads: chosen, from, to, dims: [batch, chosen?.length ?? heads, to - from, keyLength] };
}

function integers(value: unknown, name: string, largest: number): number[] {
  const list =
    Array.isArray(value) || ArrayBuffer.isView(value)
      ? Array.from(value as unknown as ArrayLike<unknown>)
      : [Number.NaN];
  if (!list.every((n) => Number.isInteger(n) && (n as number) >= 0 && (n as number) <= largest)) {
    fail(
      "bad-weights-request",
      `weights: ${name} must be an array of integers from 0 to ${largest}; received ${show(value)}.`,
    );
  }
  return list as number[];
}
