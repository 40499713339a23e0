import { readCache } from "./cache.js";
import { finishResults, planScores, rawCall, SCORE_OPTIONS } from "./call.js";
import { type At, type Heap, Job } from "./heap.js";
import { later, type OptionsOf, positiveInteger, readOptions } from "./options.js";
import { attentionShape, rawView } from "./shapes.js";
import { type Operand, readFloats } from "./tensors.js";
import type { AttentionResult } from "./types.js";

export const ATTENTION_OPTIONS = {
  heads: positiveInteger,
  kvHeads: positiveInteger,
  ...SCORE_OPTIONS,
  out: later<unknown>(),
};

/** lb.attention: checks, plans the memory, runs the core once, brings the results out. */
export function attention(heap: Heap, q: unknown, k: unknown, v: unknown, given: unknown): AttentionResult {
  heap.raw; // throws where the instance is disposed, before anything else is said
  const options = readOptions(given, ATTENTION_OPTIONS, "attention");
  const { queries, keys, values, geometry, layouts, outputDims } = readOperands(heap, q, k, v, options);

  const job = new Job(heap, "attention");
  const places = { queries: job.input(queries.source), keys: job.input(keys.source), values: job.input(values.source) };
  const plan = planScores(job, heap, geometry, options, outputDims, options.out);
  const record = (at: At, workspace = 0, workspaceBytes = 0) =>
    rawCall(plan, at, workspace, workspaceBytes, {
      queries: rawView(at(places.queries), layouts.queries),
      keys: rawView(at(places.keys), layouts.keys),
      values: rawView(at(places.values), layouts.values),
      output: rawView(at(plan.results.output?.output.place), layouts.output),
    });
  job.run(
    (raw, at) => raw.attentionWorkspaceBytes(record(at)),
    (raw, at, workspace, bytes) => raw.attention(record(at, workspace, bytes)),
    {
      begin: (raw, at, workspace, bytes) => raw.attentionBegin(record(at, workspace, bytes)),
      run: "attentionRun",
      end: "attentionEnd",
    },
  );
  return finishResults(plan);
}

/** q, k and v, which may be absent where a cache holds tokens, and how they are read. */
export function readOperands(
  heap: Heap,
  q: unknown,
  k: unknown,
  v: unknown,
  { heads, ...options }: OptionsOf<typeof ATTENTION_OPTIONS>,
) {
  const stored = options.cache === undefined ? undefined : readCache(options.cache, heap).config;
  const queries = readFloats(q, "q", heap);
  const kvHeads = options.kvHeads ?? (queries.dims.length < 4 ? stored?.kvHeads : undefined);
  const none = stored && (k ?? v ?? undefined) === undefined;
  const keys = none ? noTokens(queries.dims, stored.kvHeads, heads) : readFloats(k, "k", heap);
  const values = none ? noTokens(queries.dims, stored.kvHeads, heads, stored.valueDim) : readFloats(v, "v", heap);
  return { queries, keys, values, ...attentionShape(queries.dims, keys.dims, values.dims, { heads, kvHeads }) };
}

/** No new keys or values, in the layout of the query. */
function noTokens(q: readonly number[], kvHeads: number, heads = 1, width?: number): Operand {
  const own = width ?? (q.length === 4 ? q[3]! : q.at(-1)! / heads);
  const dims = q.length === 4 ? [q[0]!, kvHeads, 0, own] : [...q.slice(0, -2), 0, kvHeads * own];
  return { source: new Float32Array(0), dims };
}
