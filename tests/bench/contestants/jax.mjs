/** jax-js on its wasm backend, one thread, jitted. */
import { floatInput, swapped, transposed } from "../core/inputs.mjs";
import { NotAvailable } from "../core/run-case.mjs";
import { load } from "../peers/load.mjs";

/** @typedef {import("../core/types.ts").Workload} Workload */
/** @typedef {import("../core/types.ts").Inputs} Inputs */
/** @typedef {import("../core/types.ts").Prepared<any>} Prepared */

const MOST_LENGTH = 8192;

/** @type {import("../core/types.ts").ContestantModule["open"]} */
export async function open() {
  // Where it finds Worker it starts threads, and other contestants bring Node's under that name. In one thread nobody needs it.
  Reflect.deleteProperty(globalThis, "Worker");
  const jax = await load("@jax-js/jax");
  await jax.init("wasm");
  jax.defaultDevice("wasm");
  return { prepare: (workload, inputs) => prepare(jax, workload, inputs) };
}

/**
 * Every use of an array but the last needs a reference of its own (`.ref`): functions consume what they are given.
 * @param {any} jax
 * @param {Workload} workload
 * @param {Inputs} inputs
 * @returns {Prepared}
 */
function prepare(jax, workload, inputs) {
  const { jit, nn, numpy: np } = jax;
  const array = (/** @type {Float32Array | Int32Array} */ data, /** @type {number[]} */ dims) =>
    np.array(data).reshape(dims);
  switch (workload.kind) {
    case "attention": {
      const { heads, headDim, length, causal, mask, weights } = workload;
      if (weights) throw new NotAvailable("its attention returns no weights");
      if (length > MOST_LENGTH) throw new NotAvailable("holds all scores");
      const operands = foldedOperands(inputs, heads, length);
      const allowed = mask && array(Int32Array.from(inputs.mask ?? []), [1, 1, length, length]).astype(np.bool);
      const attend = jit((/** @type {any} */ q, /** @type {any} */ k, /** @type {any} */ v, /** @type {any} */ m) =>
        nn.dotProductAttention(q, k, v, { isCausal: causal, ...(mask && { mask: m }) }),
      );
      return {
        call: () => {
          const [q, k, v] = operands.map((data) => array(data, [1, length, heads, headDim]));
          return (mask ? attend(q, k, v, allowed.ref) : attend(q, k, v)).data();
        },
        read: (data) => ({ output: swapped(data, length, heads) }),
      };
    }
    case "decode": {
      const { heads, headDim, keyLength } = workload;
      const [keys, values] = ["keys", "values"].map((name) =>
        array(swapped(floatInput(inputs, name), heads, keyLength), [1, keyLength, heads, headDim]),
      );
      const attend = jit((/** @type {any} */ q, /** @type {any} */ k, /** @type {any} */ v) =>
        nn.dotProductAttention(q, k, v),
      );
      return {
        call: () => attend(array(floatInput(inputs, "queries"), [1, 1, heads, headDim]), keys.ref, values.ref).data(),
        read: (output) => ({ output }),
        dispose: () => disposeAll([keys, values]),
      };
    }
    case "linear": {
      const { rows, inputs: width, outputs } = workload;
      const weight = array(transposed(floatInput(inputs, "weight"), outputs, width), [width, outputs]);
      const bias = array(floatInput(inputs, "bias"), [outputs]);
      const linear = jit((/** @type {any} */ x, /** @type {any} */ w, /** @type {any} */ b) => np.matmul(x, w).add(b));
      return {
        call: () => linear(array(floatInput(inputs, "input"), [rows, width]), weight.ref, bias.ref).data(),
        read: (output) => ({ output }),
        dispose: () => disposeAll([weight, bias]),
      };
    }
    case "layer":
      return layer(jax, workload, inputs);
    default:
      throw new NotAvailable(`does no ${workload.kind}`);
  }
}

/**
 * @param {Inputs} inputs
 * @param {number} heads
 * @param {number} length
 */
function foldedOperands(inputs, heads, length) {
  return ["queries", "keys", "values"].map((name) => swapped(floatInput(inputs, name), heads, length));
}

/**
 * @param {any} jax
 * @param {Extract<Workload, { kind: "layer" }>} workload
 * @param {Inputs} inputs
 * @returns {Prepared}
 */
function layer({ jit, nn, numpy: np }, { embedDim, heads, length }, inputs) {
  const headDim = embedDim / heads;
  // A matrix of its own for each of queries, keys and values: slices of one would be copied.
  const parts = [0, 1, 2].map((part) => {
    const rows = floatInput(inputs, "inWeight").subarray(part * embedDim ** 2, (part + 1) * embedDim ** 2);
    const bias = floatInput(inputs, "inBias").slice(part * embedDim, (part + 1) * embedDim);
    return [np.array(transposed(rows, embedDim, embedDim)).reshape([embedDim, embedDim]), np.array(bias)];
  });
  const out = [
    np.array(transposed(floatInput(inputs, "outWeight"), embedDim, embedDim)).reshape([embedDim, embedDim]),
    np.array(floatInput(inputs, "outBias")),
  ];
  const parameters = [...parts, out].flat();
  const forward = jit((/** @type {any[]} */ ...given) => {
    const [x, wq, bq, wk, bk, wv, bv, wo, bo] = given;
    const split = (/** @type {any} */ y) => y.reshape([1, length, heads, headDim]);
    const q = split(np.matmul(x.ref, wq).add(bq));
    const k = split(np.matmul(x.ref, wk).add(bk));
    const v = split(np.matmul(x, wv).add(bv));
    const attended = nn.dotProductAttention(q, k, v, { isCausal: true }).reshape([length, embedDim]);
    return np.matmul(attended, wo).add(bo);
  });
  return {
    call: () => {
      const x = np.array(floatInput(inputs, "input")).reshape([length, embedDim]);
      return forward(x, ...parameters.map((one) => one.ref)).data();
    },
    read: (output) => ({ output }),
    dispose: () => disposeAll(parameters),
  };
}

/** @param {any[]} arrays */
function disposeAll(arrays) {
  for (const array of arrays) array.dispose();
}
