/** ruvector-attention-wasm: multi-head attention of one query at a time; causal means to give each query the keys up to its own. */
import { floatInput, swapped } from "../core/inputs.mjs";
import { NotAvailable } from "../core/run-case.mjs";
import { load } from "../peers/load.mjs";

/** @typedef {import("../core/types.ts").Workload} Workload */
/** @typedef {import("../core/types.ts").Inputs} Inputs */
/** @typedef {import("../core/types.ts").Prepared<any>} Prepared */

/** It converts every number of every key at each query, so that longer inputs take minutes. */
const LONGEST_CALL = 2000;

/** @type {import("../core/types.ts").ContestantModule["open"]} */
export async function open(_, env) {
  const { default: init, WasmMultiHeadAttention } = await load("ruvector-attention-wasm");
  const path = "tests/bench/peers/node_modules/ruvector-attention-wasm/ruvector_attention_wasm_bg.wasm";
  await init({ module_or_path: await env.bytes(path) });
  return { prepare: (workload, inputs) => prepare(WasmMultiHeadAttention, workload, inputs) };
}

/**
 * @param {any} WasmMultiHeadAttention
 * @param {Workload} workload
 * @param {Inputs} inputs
 * @returns {Prepared}
 */
function prepare(WasmMultiHeadAttention, workload, inputs) {
  if (workload.kind !== "attention" && workload.kind !== "decode") throw new NotAvailable("has no such layer");
  const { heads, headDim } = workload;
  const shape =
    workload.kind === "decode"
      ? { queries: 1, keys: workload.keyLength, causal: false }
      : { queries: workload.length, keys: workload.length, causal: workload.causal };
  if (workload.kind === "attention" && (workload.mask || workload.weights))
    throw new NotAvailable(workload.mask ? "takes no mask" : "returns no weights");
  const width = heads * headDim;
  const rowsOf = (/** @type {string} */ name, /** @type {number} */ length) => {
    const folded = swapped(floatInput(inputs, name), heads, length);
    return Array.from({ length }, (_, n) => folded.subarray(n * width, (n + 1) * width));
  };
  const queries = rowsOf("queries", shape.queries);
  const keys = rowsOf("keys", shape.keys);
  const values = rowsOf("values", shape.keys);
  const attention = new WasmMultiHeadAttention(width, heads);
  const one = (/** @type {number} */ query) => {
    const visible = shape.causal ? query + 1 : shape.keys;
    return attention.compute(queries[query], keys.slice(0, visible), values.slice(0, visible));
  };
  const middle = shape.queries >> 1;
  one(middle);
  const before = performance.now();
  one(middle);
  const estimate = (performance.now() - before) * shape.queries;
  if (estimate > LONGEST_CALL) throw new NotAvailable(`a call takes about ${(estimate / 1000).toFixed(0)} s`);
  return {
    call: () => {
      const output = new Float32Array(shape.queries * width);
      for (let query = 0; query < shape.queries; ++query) output.set(one(query), query * width);
      return output;
    },
    read: (output) => ({ output: swapped(output, shape.queries, heads) }),
    dispose: () => attention.free(),
  };
}
