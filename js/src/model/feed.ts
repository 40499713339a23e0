import { checkBytes } from "../heap.js";
import type { Tensor } from "../types.js";
import type { Chosen } from "./requests.js";
import type { DecoderSession } from "./session.js";

/** Tokens of one call at most: scratch memory is planned for it. */
export const CHUNK = 128;

export interface FeedRequest {
  readonly logits: "none" | "last" | "all";
  readonly weights?: Chosen | undefined;
  /** Layers, rising. */
  readonly lens?: readonly number[] | undefined;
}

export interface Fed {
  /** [B, L, vocabulary] or [B, vocabulary]. */
  readonly logits?: Tensor;
  /** [layers, B, heads, L, tokens]. */
  readonly weights?: Tensor;
  /** [layers, …] as the logits. */
  readonly lens?: Tensor;
}

function zeros(dims: number[], what: string): Tensor {
  const size = dims.reduce((product, n) => product * n, 1);
  checkBytes(size * 4, what);
  return { data: new Float32Array(size), dims };
}

/**
 * Appends rows of tokens to a session, in pieces of at most `session.config.chunk`, between which it yields; gives what all pieces
 * together give. Rows may differ in length; where a shorter one has no token there are zeros. What fails, or is given up, is taken back.
 */
export function* feed(
  session: DecoderSession,
  rows: readonly (readonly number[])[],
  request: FeedRequest,
): Generator<undefined, Fed, undefined> {
  const before = session.lengths;
  let whole = false;
  try {
    const fed = yield* feedPieces(session, rows, request);
    whole = true;
    return fed;
  } finally {
    if (!whole && !session.disposed) session.rewind(before);
  }
}

function* feedPieces(
  session: DecoderSession,
  rows: readonly (readonly number[])[],
  request: FeedRequest,
): Generator<undefined, Fed, undefined> {
  const { chunk } = session.config;
  const { vocabSize } = session.decoder.settings;
  const { weights: chosen, lens: lensLayers } = request;
  const batch = rows.length;
  const length = rows.reduce((most, row) => Math.max(most, row.length), 0);
  const all = request.logits === "all";
  const total = session.lengths.reduce((most, n) => Math.max(most, n), 0) + length;
  const logitDims = all ? [batch, length, vocabSize] : [batch, vocabSize];
  const logits = request.logits === "none" ? undefined : zeros(logitDims, "The logits");
  const lens = lensLayers && zeros([lensLayers.length, ...logitDims], "The logits");
  const weights = chosen && zeros([chosen.layers.length, batch, chosen.heads.length, length, total], "The weights");

  for (let first = 0; first < length; first += chunk) {
    if (first > 0) yield;
    const count = Math.min(chunk, length - first);
    const valid = rows.map((row) => Math.min(Math.max(row.length - first, 0), count));
    const tokens = Int32Array.from(
      { length: batch * count },
      (_, at) => rows[Math.floor(at / count)]![first + (at % count)] ?? 0,
    );
    const part = session.forward(tokens, {
      logits: request.logits,
      lengths: valid.every((n) => n === count) ? undefined : Int32Array.from(valid),
      weights: chosen,
      lens: lensLayers,
    });
    /** Values after each token [.., batch, count, vocabulary], or after each row's last one [.., batch, vocabulary]. */
    const place = (source: Tensor, target: Float32Array, offset: number) => {
      valid.forEach((n, row) => {
        if (all) {
          const from = row * count * vocabSize;
          target.set(source.data.subarray(from, from + n * vocabSize), offset + (row * length + first) * vocabSize);
        } else if (n > 0 && first + n === rows[row]!.length) {
          target.set(source.data.subarray(row * vocabSize, (row + 1) * vocabSize), offset + row * vocabSize);
        }
      });
    };
    if (logits) place(part.logits ?? session.logits(), logits.data, 0);
    part.lens?.forEach(({ tensor }, at) => {
      place(tensor, lens!.data, (at * lens!.data.length) / lensLayers!.length);
    });
    part.weights?.forEach(({ tensor }, at) => {
      placeWeights(tensor, weights!, at, first, valid);
    });
  }
  return { ...(logits && { logits }), ...(weights && { weights }), ...(lens && { lens }) };
}

/** Rows [B, heads, count, columns] of one layer, at their place among [layers, B, heads, L, total]. */
function placeWeights(source: Tensor, target: Tensor, layer: number, first: number, valid: readonly number[]): void {
  const [batch, heads, count, columns] = source.dims as [number, number, number, number];
  const [, , , length, total] = target.dims as [number, number, number, number, number];
  for (let row = 0; row < batch; row++)
    for (let head = 0; head < heads; head++)
      for (let query = 0; query < valid[row]!; query++) {
        const from = ((row * heads + head) * count + query) * columns;
        const to = (((layer * batch + row) * heads + head) * length + first + query) * total;
        target.data.set(source.data.subarray(from, from + Math.min(columns, total)), to);
      }
}

/** Runs to the end without a pause. */
export function atOnce<T>(steps: Generator<undefined, T, undefined>): T {
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}
