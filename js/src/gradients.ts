import { ATTENTION_OPTIONS, readOperands } from "./attention.js";
import { planInputs, rawCall } from "./call.js";
import { fail, shape } from "./errors.js";
import type { AttentionGradients } from "./gradient-types.js";
import { type At, type Heap, Job } from "./heap.js";
import { flag, later, readOptions, required } from "./options.js";
import { planResults, tensorsOf } from "./results.js";
import { rawView } from "./shapes.js";
import { type Operand, readFloats } from "./tensors.js";

/** Those of the forward call may stand there, too: what only chooses results changes no gradient. */
const OPTIONS = {
  ...ATTENTION_OPTIONS,
  output: later<unknown>(),
  logSumExp: later<unknown>(),
  gradOutput: later<unknown>(),
  gradBias: flag,
  gradSinks: flag,
};

const GRADIENTS = {
  gradQ: later<unknown>(),
  gradK: later<unknown>(),
  gradV: later<unknown>(),
  gradBias: later<unknown>(),
  gradSinks: later<unknown>(),
};
type Name = keyof typeof GRADIENTS;

/** lb.attentionBackward: the gradients of what entered lb.attention (R20). */
export function attentionBackward(heap: Heap, q: unknown, k: unknown, v: unknown, given: unknown): AttentionGradients {
  heap.raw; // throws where the instance is disposed, before anything else is said
  const where = "attentionBackward";
  const { output, logSumExp, gradOutput, gradBias, gradSinks, out, ...forward } = required(
    readOptions(given, OPTIONS, where),
    ["output", "logSumExp", "gradOutput"],
    where,
  );
  if (forward.cache !== undefined)
    fail("bad-option", `${where}: a cache keeps no gradients; give all keys and values.`);
  const { queries, keys, values, geometry, layouts, outputDims } = readOperands(heap, q, k, v, forward);
  const { batch, heads, queryLength } = geometry;
  const read = (value: unknown, name: string, dims: readonly number[]) =>
    ofDims(readFloats(value, `${where}: ${name}`, heap), where, name, dims);
  const results = {
    output: read(output, "output", outputDims),
    logSumExp: read(logSumExp, "logSumExp", [batch, heads, queryLength]),
    gradOutput: read(gradOutput, "gradOutput", outputDims),
  };

  const job = new Job(heap, where);
  const places = {
    queries: job.input(queries.source),
    keys: job.input(keys.source),
    values: job.input(values.source),
    output: job.input(results.output.source),
    logSumExp: job.input(results.logSumExp.source),
    gradOutput: job.input(results.gradOutput.source),
  };
  const plan = planInputs(job, heap, geometry, { ...forward, logSumExp: undefined });
  const dims = {
    gradQ: queries.dims,
    gradK: keys.dims,
    gradV: values.dims,
    gradBias: gradBias ? (plan.bias?.dims ?? withoutOperand("gradBias", "bias")) : undefined,
    gradSinks: gradSinks ? (plan.places.sinks ? [heads] : withoutOperand("gradSinks", "sinks")) : undefined,
  };
  const gradients = planResults<Name>(job, heap, dims, out, GRADIENTS);
  const grad = (at: At, name: Name) => at(gradients[name]?.output.place);
  const record = (at: At, workspace = 0, workspaceBytes = 0) => ({
    forward: rawCall(plan, at, workspace, workspaceBytes, {
      queries: rawView(at(places.queries), layouts.queries),
      keys: rawView(at(places.keys), layouts.keys),
      values: rawView(at(places.values), layouts.values),
      output: rawView(at(places.output), layouts.output),
    }),
    logSumExp: at(places.logSumExp),
    gradOutput: rawView(at(places.gradOutput), layouts.output),
    gradQueries: rawView(grad(at, "gradQ"), layouts.queries),
    gradKeys: rawView(grad(at, "gradK"), layouts.keys),
    gradValues: rawView(grad(at, "gradV"), layouts.values),
    gradBias: grad(at, "gradBias"),
    gradSinks: grad(at, "gradSinks"),
  });
  job.run(
    (raw, at) => raw.attentionBackwardWorkspaceBytes(record(at)),
    (raw, at, workspace, bytes) => raw.attentionBackward(record(at, workspace, bytes)),
    {
      begin: (raw, at, workspace, bytes) => raw.attentionBackwardBegin(record(at, workspace, bytes)),
      run: "attentionBackwardRun",
      end: "attentionBackwardEnd",
    },
  );
  return tensorsOf(gradients) as never;
}

/** The operand, if it has the dims that the forward call gave. */
export function ofDims(operand: Operand, where: string, name: string, dims: readonly number[]): Operand {
  if (shape(operand.dims) === shape(dims)) return operand;
  return fail(
    "gradient-shape",
    `${where}: ${name} has dims ${shape(operand.dims)}; the forward call of these operands gives ${shape(dims)}.`,
  );
}

const withoutOperand = (name: string, option: string): never =>
  fail("bad-option", `attentionBackward: ${name} is asked for, but there is no option ${option}.`);
