/** What onnxruntime-web and onnxruntime-node have in common: one session of a model for each workload. */
import { floatInput } from "../core/inputs.mjs";
import { NotAvailable } from "../core/run-case.mjs";

/** @typedef {import("../core/types.ts").Workload} Workload */
/** @typedef {import("../core/types.ts").Inputs} Inputs */

/** Scores of all heads, in and after softmax, beyond what 32-bit addresses reach. */
const MOST_SCORES = 2 ** 32;

/**
 * @param {any} ort
 * @param {import("../core/types.ts").Environment} env
 * @param {Record<string, unknown>} options
 * @returns {import("../core/types.ts").Session}
 */
export function sessionOf(ort, env, options) {
  return {
    async prepare(workload, inputs) {
      refuseHuge(workload);
      const model = await env.model(workload, inputs);
      const session = await ort.InferenceSession.create(model, { logSeverityLevel: 3, ...options });
      const feeds = feedsOf(workload, inputs);
      return {
        call: () =>
          session.run(
            Object.fromEntries(
              feeds.map(({ name, type, data, dims }) => [name, new ort.Tensor(type, data, [...dims])]),
            ),
          ),
        read: (/** @type {any} */ { output, weights }) => ({
          output: output.data,
          ...(weights && { weights: weights.data }),
        }),
        dispose: () => session.release(),
      };
    },
  };
}

/** @param {Workload} workload */
function refuseHuge(workload) {
  if (workload.kind !== "attention") return;
  const bytes = workload.heads * workload.length ** 2 * 4;
  if (bytes > MOST_SCORES) throw new NotAvailable(`needs ${(bytes / 1e9).toFixed(1)} GB for the scores`);
}

/**
 * @param {Workload} workload
 * @param {Inputs} inputs
 * @returns {{ name: string, type: "float32" | "bool", data: Float32Array | Uint8Array, dims: readonly number[] }[]}
 */
function feedsOf(workload, inputs) {
  const floats = (/** @type {string} */ name, /** @type {number[]} */ dims) =>
    /** @type {const} */ ({ name, type: "float32", data: floatInput(inputs, name), dims });
  switch (workload.kind) {
    case "attention": {
      const { heads, headDim, length } = workload;
      const operands = ["queries", "keys", "values"].map((name) => floats(name, [1, heads, length, headDim]));
      if (!(inputs.mask instanceof Uint8Array)) return operands;
      return [...operands, { name: "mask", type: "bool", data: inputs.mask, dims: [length, length] }];
    }
    case "decode":
      return [floats("queries", [1, workload.heads, 1, workload.headDim])];
    case "linear":
      return [floats("input", [workload.rows, workload.inputs])];
    case "layer":
      return [floats("input", [workload.length, workload.embedDim])];
    default:
      throw new NotAvailable(`does no ${workload.kind}`);
  }
}
