/** Inputs from a fixed seed: every contestant of a workload gets the same numbers. */

import { gpt2Shapes } from "./gpt2.mjs";

/** @typedef {import("./types.ts").Workload} Workload */
/** @typedef {import("./types.ts").Inputs} Inputs */

/**
 * Uniform numbers in [0, 1) (the mulberry32 generator).
 * @param {number} seed
 */
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * @param {Workload} workload
 * @returns {Inputs}
 */
export function inputsOf(workload) {
  const random = generator(20261129);
  /**
   * Uniform in ±range: scores come out with a spread of about 2, so that some weights matter and most do not.
   * @param {number} length
   * @param {number} range
   */
  const floats = (length, range) => {
    const values = new Float32Array(length);
    for (let n = 0; n < length; ++n) values[n] = range * (2 * random() - 1);
    return values;
  };
  switch (workload.kind) {
    case "attention": {
      const { heads, headDim, length, mask } = workload;
      const size = heads * headDim * length;
      const operands = { queries: floats(size, 2.5), keys: floats(size, 2.5), values: floats(size, 1) };
      if (!mask) return operands;
      // Nine of ten pairs are allowed, and every query sees itself.
      const allowed = Uint8Array.from({ length: length * length }, () => (random() < 0.9 ? 1 : 0));
      for (let i = 0; i < length; ++i) allowed[i * length + i] = 1;
      return { ...operands, mask: allowed };
    }
    case "backward": {
      const size = workload.heads * workload.headDim * workload.length;
      const operands = { queries: floats(size, 2.5), keys: floats(size, 2.5), values: floats(size, 1) };
      return { ...operands, gradOutput: floats(size, 1) };
    }
    case "decode": {
      const { heads, headDim, keyLength } = workload;
      const size = heads * headDim * keyLength;
      return { queries: floats(heads * headDim, 2.5), keys: floats(size, 2.5), values: floats(size, 1) };
    }
    case "linear":
    case "row": {
      const { inputs, outputs } = workload;
      const rows = workload.kind === "row" ? 1 : workload.rows;
      return {
        input: floats(rows * inputs, 1),
        /** [outputs, inputs]. */
        weight: floats(outputs * inputs, 1 / Math.sqrt(inputs)),
        bias: floats(outputs, 0.1),
      };
    }
    case "layer": {
      const { embedDim, length } = workload;
      const range = 2 / Math.sqrt(embedDim);
      return {
        input: floats(length * embedDim, 1.5),
        /** [3 · embedDim, embedDim]: of queries, keys, values. */
        inWeight: floats(3 * embedDim * embedDim, range),
        inBias: floats(3 * embedDim, 0.1),
        outWeight: floats(embedDim * embedDim, range),
        outBias: floats(embedDim, 0.1),
      };
    }
    case "step":
      return Object.fromEntries(
        Object.entries(gpt2Shapes(workload)).map(([name, dims]) => {
          const [rows, columns] = dims;
          if (columns === undefined) {
            const values = floats(rows, 0.1);
            return [name, /ln_\w\.weight$/.test(name) ? values.map((value) => 1 + value) : values];
          }
          // Embeddings are looked up, matrices [inputs, outputs] multiplied.
          return [name, floats(rows * columns, /^w[tp]e/.test(name) ? 0.1 : 1.5 / Math.sqrt(rows))];
        }),
      );
    default:
      return {};
  }
}

/**
 * An input by its name.
 * @param {Inputs} inputs
 * @param {string} name
 * @returns {Float32Array<ArrayBuffer>}
 */
export function floatInput(inputs, name) {
  const found = inputs[name];
  if (!(found instanceof Float32Array)) throw new Error(`there is no input ${name}`);
  return /** @type {Float32Array<ArrayBuffer>} */ (found);
}

/**
 * [rows, columns] → [columns, rows].
 * @param {Float32Array} matrix
 * @param {number} rows
 * @param {number} columns
 */
export function transposed(matrix, rows, columns) {
  const result = new Float32Array(matrix.length);
  for (let row = 0; row < rows; ++row)
    for (let column = 0; column < columns; ++column)
      result[column * rows + row] = /** @type {number} */ (matrix[row * columns + column]);
  return result;
}

/**
 * [outer, inner, width] → [inner, outer, width]: heads before positions, or positions before heads.
 * @param {Float32Array} data
 * @param {number} outer
 * @param {number} inner
 */
export function swapped(data, outer, inner) {
  const width = data.length / (outer * inner);
  const result = new Float32Array(data.length);
  for (let o = 0; o < outer; ++o)
    for (let i = 0; i < inner; ++i)
      result.set(data.subarray((o * inner + i) * width, (o * inner + i + 1) * width), (i * outer + o) * width);
  return result;
}
