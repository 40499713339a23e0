import { finishResults, planResults, planScores, rawCall, SCORE_OPTIONS } from "./call.js";
import { type At, type Heap, Job } from "./heap.js";
import { later, positiveInteger, readOptions } from "./options.js";
import { attentionShape, rawView } from "./shapes.js";
import { readFloats } from "./tensors.js";
import type { AttentionResult } from "./types.js";

export const ATTENTION_OPTIONS = { heads: positiveInteger, kvHeads: positiveInteger, ...SCORE_OPTIONS, out: later<unknown>() };
const OUT = { output: later<unknown>(), weights: later<unknown>(), logSumExp: later<unknown>() };

/** lb.attention: checks, plans the memory, runs the core once, brings the results out. */
export function attention(heap: Heap, q: unknown, k: unknown, v: unknown, given: unknown): AttentionResult {
  heap.raw; // throws where the instance is disposed, before anything else is said
  const options = readOptions(given, ATTENTION_OPTIONS, "attention");
  const [queries, keys, values] = [readFloats(q, "q", heap), readFloats(k, "k", heap), readFloats(v, "v", heap)];
  const { geometry, layouts, outputDims } = attentionShape(queries.dims, keys.dims, values.dims, options);

  const job = new Job(heap, "attention");
  const places = { queries: job.input(queries.source), keys: job.input(keys.source), values: job.input(values.source) };
  const plan = planScores(job, heap, geometry, options);
  const out = readOptions(options.out, OUT, "out");
  const dims = { output: outputDims, weights: plan.weights?.dims, logSumExp: plan.logSumExpDims };
  const results = planResults(job, heap, dims, out);

  const record = (at: At, workspace = 0, workspaceBytes = 0) =>
    rawCall(plan, results, at, workspace, workspaceBytes, {
      queries: rawView(at(places.queries), layouts.queries),
      keys: rawView(at(places.keys), layouts.keys),
      values: rawView(at(places.values), layouts.values),
      output: rawView(at(results.output?.output.place), layouts.output),
    });
  job.run(
    (raw, at) => raw.attentionWorkspaceBytes(record(at)),
    (raw, at, workspace, bytes) => raw.attention(record(at, workspace, bytes)),
  );
  return finishResults(results);
}
