/** Attention over the whole text in a worker, of which only a summary is kept. */
import type { Tensor } from "lookback";
import type { WorkerLookback } from "lookback/worker";
import { HEADS, type Inputs, SCALE, WIDTH } from "./inputs";
import type { Settings } from "./settings";

/** Cells of the map along each side. */
export const CELLS = 128;
/** Heaviest keys that are kept of each row. */
export const TOP = 8;

export interface LongResult {
  readonly tokens: readonly string[];
  /** [1, H, C, C]. */
  readonly map: Tensor;
  /** [1, H, L] in nats, and in words. */
  readonly entropy: Tensor;
  readonly distance: Tensor;
  /** [1, H, L, TOP]. */
  readonly top: { readonly indices: Int32Array; readonly weights: Float32Array };
  /** Of the attention call, as the page waited for it. */
  readonly milliseconds: number;
  /** Pairs of a query and a key that it may see, in all heads. */
  readonly pairs: number;
  /** What the weights would take, what the results took, and the wasm memory of the worker. */
  readonly bytes: { readonly weights: number; readonly results: number; readonly wasm: number };
}

export interface RunCall {
  readonly signal: AbortSignal;
  onProgress(fraction: number): void;
}

function visiblePairs(length: number, window: number): number {
  const reach = window > 0 ? Math.min(window, length) : length;
  // The first rows of a triangle, then rows of equal length.
  return (reach * (reach + 1)) / 2 + (length - reach) * reach;
}

export async function runLong(
  lb: WorkerLookback,
  inputs: Inputs,
  { positions, window }: Pick<Settings, "positions" | "window">,
  { signal, onProgress }: RunCall,
): Promise<LongResult> {
  const { tokens } = inputs;
  const length = tokens.length;
  const heads = HEADS.length;
  const dims = [length, heads * WIDTH];
  let q: Tensor = { data: inputs.q, dims };
  let k: Tensor = { data: inputs.k, dims };
  const start = performance.now();
  if (positions === "rotary") [q, k] = [await lb.rotary(q, { heads, signal }), await lb.rotary(k, { heads, signal })];
  const cells = Math.min(CELLS, length);
  const { output, summary } = await lb.attention(
    q,
    k,
    { data: inputs.v, dims: [length, heads] },
    {
      heads,
      causal: true,
      scale: SCALE,
      alibi: positions === "alibi",
      ...(window > 0 ? { window: { left: window - 1 } } : {}),
      summary: { topK: TOP, entropy: true, distance: true, map: [cells, cells] as const },
      signal,
      onProgress,
    },
  );
  const milliseconds = performance.now() - start;
  const { map, entropy, distance, topK } = summary;
  const kept = [output.data, map.data, entropy.data, distance.data, topK.indices.data, topK.weights.data];
  return {
    tokens,
    map,
    entropy,
    distance,
    top: { indices: topK.indices.data, weights: topK.weights.data },
    milliseconds,
    pairs: heads * visiblePairs(length, window),
    bytes: {
      weights: heads * length * length * Float32Array.BYTES_PER_ELEMENT,
      results: kept.reduce((sum, { byteLength }) => sum + byteLength, 0),
      wasm: (await lb.memory({ signal })).reserved,
    },
  };
}

/** A head's mean over all rows. */
export function meanOf({ data, dims }: Tensor, head: number): number {
  const length = dims.at(-1) ?? 0;
  let sum = 0;
  for (let row = 0; row < length; row++) sum += data[head * length + row] ?? 0;
  return length > 0 ? sum / length : 0;
}

/** A head's rows in so many stretches, the mean of each. */
export function stretches({ data, dims }: Tensor, head: number, count: number): number[] {
  const length = dims.at(-1) ?? 0;
  const bounds = (index: number) => Math.floor((index * length) / count);
  return Array.from({ length: Math.min(count, length) }, (_, index) => {
    const [from, to] = [bounds(index), Math.max(bounds(index) + 1, bounds(index + 1))];
    let sum = 0;
    for (let row = from; row < to; row++) sum += data[head * length + row] ?? 0;
    return sum / (to - from);
  });
}
