/** Ours. Names are the contract's; what an instance does not have yet is said by the row. */
import { createLookback } from "lookback";
import { loadDecoder } from "lookback/model";
import { stepTokens } from "../core/gpt2.mjs";
import { floatInput } from "../core/inputs.mjs";
import { NotAvailable } from "../core/run-case.mjs";
import { gpt2Files } from "./gpt2-files.mjs";

/** @typedef {import("../core/types.ts").Workload} Workload */
/** @typedef {import("../core/types.ts").Inputs} Inputs */
/** @typedef {import("../core/types.ts").Prepared<any>} Prepared */

/** @type {import("../core/types.ts").ContestantModule["open"]} */
export async function open({ variant, threads }, env) {
  /** @type {Record<string, unknown>} */
  const options = { variant, ...(threads !== 1 && { threads }) };
  // Types lag behind the contract while parts arrive, so none are asked for.
  const lb = /** @type {any} */ (await createLookback(/** @type {any} */ (options)));
  if (threads !== 1 && lb.threads !== threads)
    throw new NotAvailable(`asked for ${threads} threads, got ${lb.threads ?? "no answer"}`);
  return { prepare: (workload, inputs) => prepare(lb, workload, inputs, env), close: () => lb.dispose() };
}

/**
 * @param {any} lb
 * @param {Workload} workload
 * @param {Inputs} inputs
 * @param {import("../core/types.ts").Environment} env
 * @returns {Prepared | Promise<Prepared>}
 */
function prepare(lb, workload, inputs, env) {
  switch (workload.kind) {
    case "attention":
      return attention(lb, workload, inputs);
    case "backward":
      return backward(lb, workload, inputs);
    case "decode":
      return decode(lb, workload, inputs);
    case "linear":
      return linear(lb, workload, inputs);
    case "row":
      return linear(lb, { ...workload, rows: 1 }, inputs);
    case "layer":
      return layer(lb, workload, inputs);
    case "step":
      return step(lb, workload, inputs);
    case "generate":
      return generate(lb, workload, env);
    case "training":
      return training(lb, workload);
    default:
      throw new NotAvailable(`does no ${workload.kind}`);
  }
}

/**
 * @param {any} lb
 * @param {Extract<Workload, { kind: "attention" }>} workload
 * @param {Inputs} inputs
 * @returns {Prepared}
 */
function attention(lb, { heads, headDim, length, causal, mask, weights }, inputs) {
  const dims = [1, heads, length, headDim];
  const [q, k, v] = ["queries", "keys", "values"].map((name) => ({ data: floatInput(inputs, name), dims }));
  const options = {
    causal,
    ...(mask && { mask: { data: inputs.mask, dims: [length, length] } }),
    ...(weights && { weights: "softmax" }),
    ...(weights === "reused" && { out: { weights: new Float32Array(heads * length * length) } }),
  };
  return {
    call: () => lb.attention(q, k, v, options),
    read: (result) => ({ output: result.output.data, ...(weights && { weights: result.weights.data }) }),
  };
}

/**
 * @param {any} lb
 * @param {Extract<Workload, { kind: "backward" }>} workload
 * @param {Inputs} inputs
 * @returns {Prepared}
 */
function backward(lb, { heads, headDim, length }, inputs) {
  const dims = [1, heads, length, headDim];
  const [q, k, v, gradOutput] = ["queries", "keys", "values", "gradOutput"].map((name) => ({
    data: floatInput(inputs, name),
    dims,
  }));
  const { output, logSumExp } = lb.attention(q, k, v, { causal: true, logSumExp: true });
  return {
    call: () => lb.attentionBackward(q, k, v, { causal: true, output, logSumExp, gradOutput }),
    read: (result) => ({ output: result.gradQ.data }),
  };
}

/**
 * @param {any} lb
 * @param {Extract<Workload, { kind: "decode" }>} workload
 * @param {Inputs} inputs
 * @returns {Prepared}
 */
function decode(lb, { heads, headDim, keyLength, type }, inputs) {
  if (typeof lb.kvCache !== "function") throw new NotAvailable("there is no lb.kvCache");
  const cache = lb.kvCache({ batch: 1, kvHeads: heads, headDim, capacity: keyLength, dtype: type });
  const dims = [1, heads, keyLength, headDim];
  cache.append({ data: floatInput(inputs, "keys"), dims }, { data: floatInput(inputs, "values"), dims });
  const query = { data: floatInput(inputs, "queries"), dims: [1, heads, 1, headDim] };
  return {
    // Without new keys the cache stays as it is, so that every call does the same.
    call: () => lb.attention(query, null, null, { cache, causal: true }),
    read: (result) => ({ output: result.output.data }),
    dispose: () => cache.dispose(),
  };
}

/**
 * @param {any} lb
 * @param {{ rows: number, inputs: number, outputs: number, type?: "f32" | "int8" }} workload
 * @param {Inputs} inputs
 * @returns {Prepared}
 */
function linear(lb, { rows, inputs: width, outputs, type }, inputs) {
  if (typeof lb.linear !== "function") throw new NotAvailable("there is no lb.linear");
  const linear = lb.linear({ inputs: width, outputs, bias: true, ...(type && { dtype: type }) });
  linear.load({
    weight: { data: floatInput(inputs, "weight"), dims: [outputs, width] },
    bias: { data: floatInput(inputs, "bias"), dims: [outputs] },
  });
  const x = { data: floatInput(inputs, "input"), dims: [rows, width] };
  return {
    call: () => linear.forward(x),
    read: (result) => ({ output: (result.output ?? result).data }),
    dispose: () => linear.dispose(),
  };
}

/**
 * @param {any} lb
 * @param {Extract<Workload, { kind: "layer" }>} workload
 * @param {Inputs} inputs
 * @returns {Prepared}
 */
function layer(lb, { embedDim, heads, length }, inputs) {
  const layer = lb.multiHeadAttention({ embedDim, heads });
  layer.load({
    in_proj_weight: { data: floatInput(inputs, "inWeight"), dims: [3 * embedDim, embedDim] },
    in_proj_bias: { data: floatInput(inputs, "inBias"), dims: [3 * embedDim] },
    "out_proj.weight": { data: floatInput(inputs, "outWeight"), dims: [embedDim, embedDim] },
    "out_proj.bias": { data: floatInput(inputs, "outBias"), dims: [embedDim] },
  });
  const x = { data: floatInput(inputs, "input"), dims: [1, length, embedDim] };
  return {
    call: () => layer.forward(x, { causal: true }),
    read: (result) => ({ output: result.output.data }),
    dispose: () => layer.dispose(),
  };
}

/**
 * @param {any} lb
 * @param {Extract<Workload, { kind: "step" }>} workload
 * @param {Inputs} inputs
 * @returns {Promise<Prepared>}
 */
async function step(lb, workload, inputs) {
  const model = await loadDecoder(lb, gpt2Files(workload, inputs), { dtype: workload.type });
  const ids = stepTokens(workload);
  const { held } = workload;
  const cache = model.cache({ capacity: ids.length });
  model.forward(ids.slice(0, held), { cache });
  return {
    call() {
      // Takes back what the call before has appended, so that every call does the same.
      cache.truncate(held);
      return model.forward(ids.slice(held), { cache });
    },
    read: (result) => ({ output: result.logits.data }),
    dispose() {
      cache.dispose();
      model.dispose();
    },
  };
}

/**
 * @param {any} lb
 * @param {Extract<Workload, { kind: "training" }>} workload
 * @returns {Promise<Prepared>}
 */
async function training(lb, { layers, embedDim, heads, vocabulary, length, batch }) {
  if (typeof lb.trainer !== "function") throw new NotAvailable("there is no lb.trainer");
  // Every character, over and over in another order; the vocabulary has one more, for those that are unknown.
  const characters = vocabulary - 1;
  const text = Array.from({ length: 64 * characters }, (_, n) =>
    String.fromCharCode(0x4e00 + ((n * (1 + Math.floor(n / characters))) % characters)),
  ).join("");
  const trainer = await lb.trainer({
    model: { layers, embedDim, heads, contextLength: length },
    text,
    validation: 0,
    batch,
    steps: 1e6,
    evaluateEvery: 0,
  });
  const { vocabSize } = trainer.model;
  if (vocabSize !== vocabulary) throw new Error(`the trainer has a vocabulary of ${vocabSize}, not ${vocabulary}`);
  const steps = trainer.run();
  return { call: () => steps.next(), dispose: () => trainer.dispose() };
}

const STORIES = "../shared/models/stories260K";

/**
 * @param {any} lb
 * @param {Extract<Workload, { kind: "generate" }>} workload
 * @param {import("../core/types.ts").Environment} env
 * @returns {Promise<Prepared>}
 */
async function generate(lb, { tokens, temperature }, env) {
  const file = (/** @type {string} */ name) =>
    env.bytes(`${STORIES}/${name}`).catch(() => {
      throw new NotAvailable(`${STORIES} is not beside this checkout`);
    });
  const model = await loadDecoder(lb, { weights: await file("stories260K.bin"), tokenizer: await file("tok512.bin") });
  const call = async () => {
    let count = 0;
    for await (const _ of model.generate("Once upon a time", { maxTokens: tokens, temperature, seed: 1 })) ++count;
    return count;
  };
  // A text may end before.
  return { call, work: { operations: 0, bytes: 0, tokens: await call() }, dispose: () => model.dispose() };
}
