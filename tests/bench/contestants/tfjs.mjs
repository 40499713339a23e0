/** TensorFlow.js on its wasm backend (SIMD, one thread): it has no attention, so its products and its softmax. */
import { floatInput, transposed } from "../core/inputs.mjs";
import { NotAvailable } from "../core/run-case.mjs";
import { load } from "../peers/load.mjs";

/** @typedef {import("../core/types.ts").Workload} Workload */
/** @typedef {import("../core/types.ts").Inputs} Inputs */
/** @typedef {import("../core/types.ts").Prepared<any>} Prepared */

/** Added to scores that are not to count; its kernels have no −∞ of their own. */
const HIDDEN = -1e30;
const MOST_LENGTH = 8192;

/** @type {import("../core/types.ts").ContestantModule["open"]} */
export async function open() {
  const tf = await load("@tensorflow/tfjs-core");
  const backend = await load("@tensorflow/tfjs-backend-wasm");
  backend.setThreadsCount(1);
  await tf.setBackend("wasm");
  await tf.ready();
  return { prepare: (workload, inputs) => prepare(tf, workload, inputs) };
}

/**
 * @param {any} tf
 * @param {Workload} workload
 * @param {Inputs} inputs
 * @returns {Prepared}
 */
function prepare(tf, workload, inputs) {
  switch (workload.kind) {
    case "attention":
      return attention(tf, workload, inputs);
    case "decode": {
      const { heads, headDim, keyLength } = workload;
      const [keys, values] = ["keys", "values"].map((name) =>
        tf.tensor(floatInput(inputs, name), [heads, keyLength, headDim]),
      );
      const query = () => tf.tensor(floatInput(inputs, "queries"), [heads, 1, headDim]);
      return held(tf, [keys, values], () => attend(tf, query(), keys, values, headDim).dataSync());
    }
    case "linear": {
      const { rows, inputs: width, outputs } = workload;
      const weight = tf.tensor(transposed(floatInput(inputs, "weight"), outputs, width), [width, outputs]);
      const bias = tf.tensor(floatInput(inputs, "bias"), [outputs]);
      return held(tf, [weight, bias], () =>
        linear(tf, tf.tensor(floatInput(inputs, "input"), [rows, width]), weight, bias).dataSync(),
      );
    }
    case "layer":
      return layer(tf, workload, inputs);
    default:
      throw new NotAvailable(`does no ${workload.kind}`);
  }
}

/**
 * @param {any} tf
 * @param {Extract<Workload, { kind: "attention" }>} workload
 * @param {Inputs} inputs
 * @returns {Prepared}
 */
function attention(tf, { heads, headDim, length, causal, mask, weights }, inputs) {
  if (length > MOST_LENGTH) throw new NotAvailable("holds all scores, twice");
  const hidden = causal || mask ? tf.tensor(biasOf(length, causal, inputs.mask), [1, length, length]) : undefined;
  return held(
    tf,
    hidden ? [hidden] : [],
    () => {
      const [q, k, v] = ["queries", "keys", "values"].map((name) =>
        tf.tensor(floatInput(inputs, name), [heads, length, headDim]),
      );
      const shares = sharesOf(tf, q, k, headDim, hidden);
      return { output: tf.matMul(shares, v).dataSync(), ...(weights && { weights: shares.dataSync() }) };
    },
    (result) => result,
  );
}

/**
 * @param {any} tf
 * @param {Extract<Workload, { kind: "layer" }>} workload
 * @param {Inputs} inputs
 * @returns {Prepared}
 */
function layer(tf, { embedDim, heads, length }, inputs) {
  const headDim = embedDim / heads;
  const matrix = (/** @type {string} */ name, /** @type {number} */ outputs) =>
    tf.tensor(transposed(floatInput(inputs, name), outputs, embedDim), [embedDim, outputs]);
  const vector = (/** @type {string} */ name) => tf.tensor(floatInput(inputs, name));
  const parameters = [
    matrix("inWeight", 3 * embedDim),
    vector("inBias"),
    matrix("outWeight", embedDim),
    vector("outBias"),
  ];
  const hidden = tf.tensor(biasOf(length, true), [1, length, length]);
  const [inWeight, inBias, outWeight, outBias] = parameters;
  return held(tf, [...parameters, hidden], () => {
    const x = tf.tensor(floatInput(inputs, "input"), [length, embedDim]);
    const split = tf.transpose(tf.reshape(linear(tf, x, inWeight, inBias), [length, 3, heads, headDim]), [1, 2, 0, 3]);
    const [q, k, v] = tf.unstack(split, 0);
    const joined = tf.reshape(tf.transpose(attend(tf, q, k, v, headDim, hidden), [1, 0, 2]), [length, embedDim]);
    return linear(tf, joined, outWeight, outBias).dataSync();
  });
}

/**
 * The product and the bias as one kernel of the backend.
 * @param {any} tf
 * @param {any} a
 * @param {any} b
 * @param {any} bias
 */
function linear(tf, a, b, bias) {
  return tf.fused.matMul({ a, b, transposeA: false, transposeB: false, bias });
}

/**
 * @param {any} tf
 * @param {any} q
 * @param {any} k
 * @param {number} headDim
 * @param {any} [hidden]
 */
function sharesOf(tf, q, k, headDim, hidden) {
  const scores = tf.mul(tf.matMul(q, k, false, true), 1 / Math.sqrt(headDim));
  return tf.softmax(hidden ? tf.add(scores, hidden) : scores);
}

/**
 * @param {any} tf
 * @param {any} q
 * @param {any} k
 * @param {any} v
 * @param {number} headDim
 * @param {any} [hidden]
 */
function attend(tf, q, k, v, headDim, hidden) {
  return tf.matMul(sharesOf(tf, q, k, headDim, hidden), v);
}

/**
 * @param {number} length
 * @param {boolean} causal
 * @param {ArrayLike<number>} [mask]
 */
function biasOf(length, causal, mask) {
  return Float32Array.from({ length: length * length }, (_, n) => {
    const query = Math.floor(n / length);
    return (causal && n % length > query) || mask?.[n] === 0 ? HIDDEN : 0;
  });
}

/**
 * @param {any} tf
 * @param {any[]} tensors what stays between calls
 * @param {() => any} calculate
 * @param {(result: any) => import("../core/types.ts").Output} [read]
 * @returns {Prepared}
 */
function held(tf, tensors, calculate, read = (output) => ({ output })) {
  return {
    call: () => {
      /** @type {any} */
      let result;
      // What tidy() is given back it searches for tensors, every number of an array too.
      tf.tidy(() => {
        result = calculate();
      });
      return result;
    },
    read,
    dispose: () => tf.dispose(tensors),
  };
}
