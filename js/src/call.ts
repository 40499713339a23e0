import { alibiSlopes } from "./alibi.js";
import { type Broadcast, rawBroadcast, scoreStrides } from "./broadcast.js";
import { readCache } from "./cache.js";
import { readDropout } from "./dropout.js";
import { fail } from "./errors.js";
import type { At, Heap, Job, Place, Source } from "./heap.js";
import { readKeyLengths, readKeyMask } from "./keys.js";
import { readPerHead } from "./lists.js";
import { readMask } from "./mask.js";
import type { RawAttentionCall } from "./module.js";
import { queryOffsets } from "./offset.js";
import { finite, flag, later, notNegative, type OptionsOf } from "./options.js";
import { planResults, type Results } from "./results.js";
import { type Geometry, rawView } from "./shapes.js";
import { planSummary, readSummary, type SummaryPlan } from "./summary.js";
import { readFloats } from "./tensors.js";
import type { AttentionResult, Mask, MaskTensor, QueryOffset } from "./types.js";
import { planWeights, type WeightsPlan } from "./weights.js";
import { readWindow, UNLIMITED } from "./window.js";

/** The options that every kind of attention call has. A new rule adds its option here, and its line in `planScores`. */
export const SCORE_OPTIONS = {
  scale: finite,
  softcap: notNegative,
  causal: flag,
  queryOffset: later<QueryOffset>(),
  window: readWindow,
  mask: later<Mask | MaskTensor>(),
  bias: later<unknown>(),
  keyLengths: later<unknown>(),
  keyMask: later<unknown>(),
  alibi: later<unknown>(),
  sinks: later<unknown>(),
  dropout: readDropout,
  cache: later<unknown>(),
  weights: later<unknown>(),
  logSumExp: flag,
  summary: readSummary,
};
export type ScoreOptions = OptionsOf<typeof SCORE_OPTIONS>;

/** What enters a call besides q, k, v: checked, and placed in `job`. */
export interface InputPlan {
  /** With a cache its keys are those stored and the new ones. */
  readonly geometry: Geometry;
  readonly options: ScoreOptions;
  readonly newLength: number;
  readonly places: {
    readonly cache: Place | undefined;
    readonly queryOffsets: Place;
    readonly keyLengths: Place | undefined;
    readonly keyMask: Place | undefined;
    readonly alibiSlopes: Place | undefined;
    readonly sinks: Place | undefined;
  };
  readonly mask: Broadcast | undefined;
  readonly bias: (Broadcast & { readonly dims: readonly number[] }) | undefined;
}

/** With what comes out of it. */
export interface ScorePlan extends InputPlan {
  readonly weightsHeads: Place | undefined;
  readonly weights: WeightsPlan | undefined;
  readonly results: Results;
  readonly summary: SummaryPlan | undefined;
}

/** What makes the position of the queries matter, if anything does (R6). */
export function positionalOption({ causal, window, alibi, summary }: ScoreOptions): string | undefined {
  if (causal) return "causal";
  if (window && (window.left < UNLIMITED || window.right < UNLIMITED)) return "window";
  if (alibi) return "alibi";
  return summary?.distance ? "summary.distance" : undefined;
}

const given = <T>(value: unknown, read: () => T): T | undefined => (value === undefined ? undefined : read());

/** What the options say about who sees what, checked for operands of the sizes `tokens`. */
export function readScores(heap: Heap, tokens: Geometry, options: ScoreOptions) {
  const { batch, heads, queryLength, keyLength: newLength } = tokens;
  const keyLengths = given(options.keyLengths, () => readKeyLengths(options.keyLengths, batch, newLength));
  const keyMask = given(options.keyMask, () => readKeyMask(options.keyMask, batch, newLength));
  const cache = given(options.cache, () => readCache(options.cache, heap));
  if (cache && options.queryOffset !== undefined) {
    fail("bad-query-offset", "With a cache queryOffset is the number of tokens that each row holds: leave it out.");
  }
  if (cache && options.dropout?.p) {
    fail("bad-option", "dropout is for training, where there is no cache: leave one of them out.");
  }
  const stored = cache?.serve(tokens, keyLengths, options.window?.left) ?? 0;
  const geometry = { ...tokens, keyLength: stored + newLength };

  const scoreDims = [batch, heads, queryLength, geometry.keyLength] as const;
  const offsets = queryOffsets(options.queryOffset, cache ? undefined : positionalOption(options), tokens, keyLengths);
  const bits = given(options.mask, () => readMask(options.mask, "mask"));
  const mask = bits && { ...bits, strides: scoreStrides(bits.dims, scoreDims, "mask", stored) };
  const added = given(options.bias, () => readFloats(options.bias, "bias", heap, "bias-is-mask"));
  const bias = added && { ...added, strides: scoreStrides(added.dims, scoreDims, "bias", stored) };
  return { keyLengths, keyMask, cache, geometry, offsets, mask, bias };
}

/** `tokens`: the sizes of the operands. Call it after every job.input() of operands. */
export function planInputs(job: Job, heap: Heap, tokens: Geometry, options: ScoreOptions): InputPlan {
  const { heads, keyLength: newLength } = tokens;
  const input = (source: Source | undefined) => source && job.input(source);
  const { keyLengths, keyMask, cache, geometry, offsets, ...read } = readScores(heap, tokens, options);
  const mask = read.mask && { strides: read.mask.strides, place: job.input(read.mask.bits) };
  const bias = read.bias && { ...read.bias, place: job.input(read.bias.source) };
  const places = {
    cache: cache?.place(),
    queryOffsets: job.input(offsets),
    keyLengths: input(keyLengths),
    keyMask: input(keyMask),
    alibiSlopes: input(alibiSlopes(options.alibi, heads)),
    sinks: input(given(options.sinks, () => readPerHead(options.sinks, "sinks", heads, -Infinity))),
  };
  return { geometry, options, newLength, places, mask, bias };
}

/** The same, and then what comes out. */
export function planScores(
  job: Job,
  heap: Heap,
  tokens: Geometry,
  options: ScoreOptions,
  outputDims: readonly number[],
  out?: unknown,
): ScorePlan {
  const inputs = planInputs(job, heap, tokens, options);
  const { batch, heads, queryLength } = tokens;
  const weights = planWeights(options.weights, inputs.geometry);
  const weightsHeads = weights?.heads && job.input(weights.heads);
  const logSumExp = options.logSumExp ? [batch, heads, queryLength] : undefined;
  const results = planResults(job, heap, { output: outputDims, weights: weights?.dims, logSumExp }, out);
  const summary = planSummary(job, options.summary, inputs.geometry);
  return { ...inputs, weights, weightsHeads, results, summary };
}

export function finishResults({ results, summary }: ScorePlan): AttentionResult {
  const named = Object.entries(results).map(([name, result]) => [name, result.tensor()]);
  if (summary) named.push(["summary", summary.summary() as never]);
  return Object.fromEntries(named) as AttentionResult;
}

/** The record of the core for a plan; the layer leaves the views out. */
export function rawCall(
  plan: InputPlan & Partial<ScorePlan>,
  at: At,
  workspace: number,
  workspaceBytes: number,
  views?: Pick<RawAttentionCall, "queries" | "keys" | "values" | "output">,
): RawAttentionCall {
  const { geometry, options, places, weights, results, summary } = plan;
  const none = rawView(0);
  const [mapRows, mapColumns] = summary?.mapDims ?? [0, 0];
  return {
    ...(views ?? { queries: none, keys: none, values: none, output: none }),
    ...geometry,
    scale: options.scale ?? 1 / Math.sqrt(geometry.headDim),
    softcap: options.softcap ?? 0,
    causal: options.causal === true,
    queryOffsets: at(places.queryOffsets),
    mask: rawBroadcast(at(plan.mask?.place), plan.mask?.strides ?? []),
    bias: rawBroadcast(at(plan.bias?.place), plan.bias?.strides ?? []),
    weights: at(results?.weights?.output.place),
    weightsKind: weights?.kind ?? 0,
    weightsHeads: at(plan.weightsHeads),
    weightsHeadCount: weights?.dims[1] ?? 0,
    weightsQueryFrom: weights?.from ?? 0,
    weightsQueryTo: weights?.to ?? 0,
    logSumExp: at(results?.logSumExp?.output.place),
    windowLeft: options.window?.left ?? UNLIMITED,
    windowRight: options.window?.right ?? UNLIMITED,
    keyLengths: at(places.keyLengths),
    keyMask: at(places.keyMask),
    alibiSlopes: at(places.alibiSlopes),
    sinks: at(places.sinks),
    dropoutP: options.dropout?.p ?? 0,
    dropoutSeed: options.dropout?.seed ?? 0,
    cache: at(places.cache),
    newLength: plan.newLength,
    topK: summary?.topK ?? 0,
    topIndices: at(summary?.indices?.place),
    topWeights: at(summary?.weights?.place),
    entropy: at(summary?.entropy?.place),
    distance: at(summary?.distance?.place),
    map: at(summary?.map?.place),
    mapRows: mapRows!,
    mapColumns: mapColumns!,
    workspace,
    workspaceBytes,
  };
}
