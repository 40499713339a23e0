import { type Broadcast, rawBroadcast, scoreStrides } from "./broadcast.js";
import { fail } from "./errors.js";
import { type At, type Block, checkBytes, type Heap, type Job, type Output, type Place } from "./heap.js";
import { readMask } from "./mask.js";
import type { RawAttentionCall } from "./module.js";
import { queryOffsets } from "./offset.js";
import { finite, flag, later, notNegative, type OptionsOf } from "./options.js";
import { type Geometry, rawView } from "./shapes.js";
import { product, readFloats, readTarget, tensorOf } from "./tensors.js";
import type { AttentionResult, Mask, MaskTensor, QueryOffset, Tensor, WasmTensor } from "./types.js";
import { isWasmTensor } from "./wasm-tensor.js";
import { planWeights, type WeightsPlan } from "./weights.js";

/** The options that every kind of attention call has. A new rule adds its option here, and its line in `planScores`. */
export const SCORE_OPTIONS = {
  scale: finite,
  softcap: notNegative,
  causal: flag,
  queryOffset: later<QueryOffset>(),
  mask: later<Mask | MaskTensor>(),
  bias: later<unknown>(),
  weights: later<unknown>(),
  logSumExp: flag,
};
export type ScoreOptions = OptionsOf<typeof SCORE_OPTIONS>;

/** The core's word for a window side without an end. */
const UNLIMITED = 2147483647;

type ResultName = "output" | "weights" | "logSumExp";
type Out = { [Name in ResultName]?: unknown };

/** Everything of a call but q, k, v and the output: checked, and placed in `job`. */
export interface ScorePlan {
  readonly geometry: Geometry;
  readonly options: ScoreOptions;
  readonly offsets: Place;
  readonly mask: Broadcast | undefined;
  readonly bias: Broadcast | undefined;
  readonly weightsHeads: Place | undefined;
  readonly weights: WeightsPlan | undefined;
  readonly logSumExpDims: readonly number[] | undefined;
}

export function planScores(job: Job, heap: Heap, geometry: Geometry, options: ScoreOptions): ScorePlan {
  const { batch, heads, queryLength, keyLength } = geometry;
  const scoreDims = [batch, heads, queryLength, keyLength] as const;
  const offsets = queryOffsets(options.queryOffset, options.causal === true, batch, queryLength, keyLength);
  const given = options.mask === undefined ? undefined : readMask(options.mask, "mask");
  const mask = given && { strides: scoreStrides(given.dims, scoreDims, "mask"), place: job.input(given.bits) };
  const added = options.bias === undefined ? undefined : readFloats(options.bias, "bias", heap, "bias-is-mask");
  const bias = added && { strides: scoreStrides(added.dims, scoreDims, "bias"), place: job.input(added.source) };
  const weights = planWeights(options.weights, geometry);
  if (weights) checkBytes(product(weights.dims) * 4, `weights of dims [${weights.dims.join(", ")}]`);
  const weightsHeads = weights?.heads && job.input(weights.heads);
  const logSumExpDims = options.logSumExp ? [batch, heads, queryLength] : undefined;
  return { geometry, options, offsets: job.input(offsets), mask, bias, weights, weightsHeads, logSumExpDims };
}

/** A result under its name: where the core writes it, and how the caller gets it. */
export interface Result {
  readonly output: Output;
  tensor(): Tensor | WasmTensor;
}

export type Results = Partial<Record<ResultName, Result>>;

/** Plans the results that have dims. Call it after every job.input(). */
export function planResults(
  job: Job,
  heap: Heap,
  dims: Record<ResultName, readonly number[] | undefined>,
  out: Out = {},
): Results {
  const results: Results = {};
  const targets: { name: string; target: ReturnType<typeof readTarget> }[] = [];
  for (const name of Object.keys(dims) as ResultName[]) {
    const given = out[name];
    const own = dims[name];
    if (own === undefined) {
      if (given !== undefined) fail("bad-out", `out.${name} is given, but option ${name} does not ask for it.`);
      continue;
    }
    checkBytes(product(own) * 4, `${name} of dims [${own.join(", ")}]`);
    const target = given === undefined ? undefined : readTarget(given, own, `out.${name}`, heap);
    if (target) {
      const other = targets.find((earlier) => overlap(earlier.target, target));
      if (other) fail("bad-out", `out.${name} and out.${other.name} share memory; give each its own.`);
      targets.push({ name, target });
    }
    const output = job.output(product(own), target);
    results[name] = {
      output,
      tensor: () =>
        isWasmTensor(given) ? given : tensorOf((target as Float32Array | undefined) ?? output.values!, own),
    };
  }
  return results;
}

function overlap(a: Float32Array | Block, b: Float32Array | Block): boolean {
  if (a === b) return true;
  if ("heap" in a || "heap" in b || a.buffer !== b.buffer) return false;
  return a.byteOffset < b.byteOffset + b.byteLength && b.byteOffset < a.byteOffset + a.byteLength;
}

export function finishResults(results: Results): AttentionResult {
  return Object.fromEntries(
    Object.entries(results).map(([name, result]) => [name, result.tensor()]),
  ) as unknown as AttentionResult;
}

/** The record of the core for a plan; the layer leaves the views out. */
export function rawCall(
  plan: ScorePlan,
  results: Results,
  at: At,
  workspace: number,
  workspaceBytes: number,
  views?: Pick<RawAttentionCall, "queries" | "keys" | "values" | "output">,
): RawAttentionCall {
  const { geometry, options, weights } = plan;
  const none = rawView(0);
  const { queries, keys, values, output } = views ?? { queries: none, keys: none, values: none, output: none };
  return {
    queries,
    keys,
    values,
    output,
    ...geometry,
    scale: options.scale ?? 1 / Math.sqrt(geometry.headDim),
    softcap: options.softcap ?? 0,
    causal: options.causal === true,
    queryOffsets: at(plan.offsets),
    mask: rawBroadcast(at(plan.mask?.place), plan.mask?.strides ?? []),
    bias: rawBroadcast(at(plan.bias?.place), plan.bias?.strides ?? []),
    weights: at(results.weights?.output.place),
    weightsKind: weights?.kind ?? 0,
    weightsHeads: at(plan.weightsHeads),
    weightsHeadCount: weights?.dims[1] ?? 0,
    weightsQueryFrom: weights?.from ?? 0,
    weightsQueryTo: weights?.to ?? 0,
    logSumExp: at(results.logSumExp?.output.place),
    windowLeft: UNLIMITED,
    windowRight: UNLIMITED,
    keyLengths: 0,
    keyMask: 0,
    alibiSlopes: 0,
    sinks: 0,
    cache: 0,
    newLength: 0,
    topK: 0,
    topIndices: 0,
    topWeights: 0,
    entropy: 0,
    distance: 0,
    map: 0,
    mapRows: 0,
    mapColumns: 0,
    workspace,
    workspaceBytes,
  };
}
