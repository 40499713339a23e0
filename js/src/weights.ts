import { refuse } from "./errors.js";
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

const readKind = (value: unknown): number => {
  const kind = KINDS.indexOf(value as WeightsKind);
  return kind < 0 ? no("'softmax', 'scores', 'capped' or 'masked', or { kind, heads, queries }", value) : kind;
};

const no = (accepted: string, received: unknown, where = "weights"): never =>
  refuse("bad-weights-request", where, accepted, received);

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
  if (rows.length !== 2 || from > to) no("[from, to) with from ≤ to", wanted.queries, "weights: queries");
  const chosen = wanted.heads === undefined ? undefined : Int32Array.from(integers(wanted.heads, "heads", heads - 1));
  return { kind, heads: chosen, from, to, dims: [batch, chosen?.length ?? heads, to - from, keyLength] };
}

function integers(value: unknown, name: string, largest: number): number[] {
  const listed = Array.isArray(value) || ArrayBuffer.isView(value);
  const list = listed ? Array.from(value as ArrayLike<unknown>) : [undefined];
  if (!list.every((n) => Number.isInteger(n) && (n as number) >= 0 && (n as number) <= largest)) {
    no(`an array of integers from 0 to ${largest}`, value, `weights: ${name}`);
  }
  return list as number[];
}
