/** The results in float64, written plainly, for as many rows as take little time; the last row is always one of them. */

import { stepLogits } from "./reference-step.mjs";

/** @typedef {import("./types.ts").Workload} Workload */
/** @typedef {import("./types.ts").Inputs} Inputs */
/** @typedef {import("./types.ts").Output} Output */
/** @typedef {{ width: number, rows: Map<number, Float64Array> }} Rows */
/** @typedef {{ output: Rows, weights?: Rows, tolerance: number }} Expected */

const MOST_OPERATIONS = 4e8;

/**
 * @param {number} count
 * @param {number} operationsOfRow
 */
function chosenRows(count, operationsOfRow) {
  const wanted = Math.max(1, Math.min(count, Math.floor(MOST_OPERATIONS / operationsOfRow)));
  return Array.from({ length: wanted }, (_, n) => Math.ceil(((n + 1) * count) / wanted) - 1);
}

/**
 * @param {Workload} workload
 * @param {Inputs} inputs
 * @returns {Expected | undefined}
 */
export function expectedOf(workload, inputs) {
  switch (workload.kind) {
    case "attention": {
      const { heads, headDim, length, causal, weights } = workload;
      const shape = { heads, headDim, queryLength: length, keyLength: length, causal };
      const { output, weights: rows } = attentionRows(inputs, shape, chosenRows(heads * length, 4 * headDim * length));
      return { output, ...(weights && { weights: rows }), tolerance: 1e-5 };
    }
    case "backward": {
      const { heads, headDim, length } = workload;
      return {
        output: queryGradientRows(inputs, workload, chosenRows(heads * length, 6 * headDim * length)),
        tolerance: 1e-4,
      };
    }
    case "decode": {
      const { heads, headDim, keyLength, type } = workload;
      const shape = { heads, headDim, queryLength: 1, keyLength, causal: false };
      const { output } = attentionRows(
        inputs,
        shape,
        Array.from({ length: heads }, (_, h) => h),
      );
      // int8 holds each key and value to half of 1/127 of its row's largest.
      return { output, tolerance: type === "int8" ? 0.02 : 1e-5 };
    }
    case "linear": {
      const { rows, inputs: width, outputs } = workload;
      const chosen = chosenRows(rows, 2 * width * outputs);
      return { output: linearRows(numbers(inputs, "input"), inputs, "weight", "bias", width, chosen), tolerance: 1e-4 };
    }
    case "row": {
      const output = linearRows(numbers(inputs, "input"), inputs, "weight", "bias", workload.inputs, [0]);
      // int8 holds each weight to half of 1/127 of its group's largest.
      return { output, tolerance: workload.type === "int8" ? 0.02 : 1e-4 };
    }
    case "layer":
      return layerRows(inputs, workload.embedDim, workload.heads, workload.length);
    case "step": {
      const output = { width: workload.vocabulary, rows: new Map([[0, stepLogits(inputs, workload)]]) };
      return { output, tolerance: workload.type === "int8" ? 0.2 : 1e-4 };
    }
    default:
      return undefined;
  }
}

/**
 * @param {Inputs} inputs
 * @param {string} name
 */
function numbers(inputs, name) {
  return /** @type {ArrayLike<number>} */ (inputs[name]);
}

/**
 * @param {ArrayLike<number>} a
 * @param {number} aFrom
 * @param {ArrayLike<number>} b
 * @param {number} bFrom
 * @param {number} length
 */
function dot(a, aFrom, b, bFrom, length) {
  let sum = 0;
  for (let n = 0; n < length; ++n) sum += /** @type {number} */ (a[aFrom + n]) * /** @type {number} */ (b[bFrom + n]);
  return sum;
}

/**
 * @param {Readonly<Record<string, ArrayLike<number>>>} inputs queries, keys, values as [heads, length, headDim], and perhaps a mask
 * @param {{ heads: number, headDim: number, queryLength: number, keyLength: number, causal: boolean }} shape
 * @param {number[]} chosen rows of [heads · queryLength]
 */
function attentionRows(inputs, { headDim, queryLength, keyLength, causal }, chosen) {
  const [queries, keys, values] = ["queries", "keys", "values"].map(
    (name) => /** @type {ArrayLike<number>} */ (inputs[name]),
  );
  if (!queries || !keys || !values) throw new Error("queries, keys and values are needed");
  const output = { width: headDim, rows: new Map() };
  const weights = { width: keyLength, rows: new Map() };
  for (const row of chosen) {
    const head = Math.floor(row / queryLength);
    const query = row % queryLength;
    const firstKey = head * keyLength * headDim;
    const scores = Float64Array.from({ length: keyLength }, (_, key) => {
      const visible = (!causal || key <= query) && (!inputs.mask || inputs.mask[query * keyLength + key] === 1);
      return visible
        ? dot(queries, row * headDim, keys, firstKey + key * headDim, headDim) / Math.sqrt(headDim)
        : -1 / 0;
    });
    const largest = scores.reduce((a, b) => Math.max(a, b));
    const exponentials = scores.map((score) => Math.exp(score - largest));
    const total = exponentials.reduce((a, b) => a + b);
    const shares = exponentials.map((value) => value / total);
    const sums = new Float64Array(headDim);
    shares.forEach((share, key) => {
      for (let d = 0; d < headDim; ++d)
        sums[d] =
          /** @type {number} */ (sums[d]) + share * /** @type {number} */ (values[firstKey + key * headDim + d]);
    });
    output.rows.set(row, sums);
    weights.rows.set(row, shares);
  }
  return { output, weights };
}

/**
 * Of causal attention; the other gradients come from the same products.
 * @param {Inputs} inputs
 * @param {{ heads: number, headDim: number, length: number }} shape
 * @param {number[]} chosen
 * @returns {Rows}
 */
function queryGradientRows(inputs, { heads, headDim, length }, chosen) {
  const attended = { heads, headDim, queryLength: length, keyLength: length, causal: true };
  const { weights } = attentionRows(/** @type {Record<string, ArrayLike<number>>} */ (inputs), attended, chosen);
  const [keys, values, gradients] = ["keys", "values", "gradOutput"].map((name) => numbers(inputs, name));
  if (!keys || !values || !gradients) throw new Error("keys, values and gradients are needed");
  const rows = new Map();
  for (const [row, shares] of /** @type {Map<number, Float64Array>} */ (weights.rows)) {
    const firstKey = Math.floor(row / length) * length * headDim;
    const products = shares.map((_, key) => dot(gradients, row * headDim, values, firstKey + key * headDim, headDim));
    const mean = dot(shares, 0, products, 0, length);
    const sums = new Float64Array(headDim);
    shares.forEach((share, key) => {
      const product = /** @type {number} */ (products[key]);
      const factor = (share * (product - mean)) / Math.sqrt(headDim);
      for (let d = 0; d < headDim; ++d)
        sums[d] = /** @type {number} */ (sums[d]) + factor * /** @type {number} */ (keys[firstKey + key * headDim + d]);
    });
    rows.set(row, sums);
  }
  return { width: headDim, rows };
}

/**
 * weight is [outputs, inputs].
 * @param {ArrayLike<number>} data
 * @param {Inputs} inputs
 * @param {string} weightName
 * @param {string} biasName
 * @param {number} width
 * @param {number[]} chosen
 */
function linearRows(data, inputs, weightName, biasName, width, chosen) {
  const weight = numbers(inputs, weightName);
  const bias = numbers(inputs, biasName);
  const rows = chosen.map(
    (row) =>
      /** @type {const} */ ([
        row,
        Float64Array.from(bias, (value, output) => value + dot(data, row * width, weight, output * width, width)),
      ]),
  );
  return { width: bias.length, rows: new Map(rows) };
}

/**
 * @param {Inputs} inputs
 * @param {number} embedDim
 * @param {number} heads
 * @param {number} length
 * @returns {Expected}
 */
function layerRows(inputs, embedDim, heads, length) {
  const all = Array.from({ length }, (_, n) => n);
  const headDim = embedDim / heads;
  const projected = linearRows(numbers(inputs, "input"), inputs, "inWeight", "inBias", embedDim, all);
  /** @param {number} part */
  const part = (part) => {
    const result = new Float64Array(heads * length * headDim);
    for (const [row, values] of projected.rows)
      for (let head = 0; head < heads; ++head) {
        const from = part * embedDim + head * headDim;
        result.set(values.subarray(from, from + headDim), (head * length + row) * headDim);
      }
    return result;
  };
  const operands = { queries: part(0), keys: part(1), values: part(2) };
  const chosen = chosenRows(length, 4 * embedDim * length);
  const attended = new Float64Array(length * embedDim);
  for (let head = 0; head < heads; ++head) {
    const rows = chosen.map((row) => head * length + row);
    const shape = { heads, headDim, queryLength: length, keyLength: length, causal: true };
    for (const [row, values] of attentionRows(operands, shape, rows).output.rows)
      attended.set(values, (row - head * length) * embedDim + head * headDim);
  }
  return { output: linearRows(attended, inputs, "outWeight", "outBias", embedDim, chosen), tolerance: 1e-4 };
}

/**
 * The largest difference; Infinity where the shape differs or a number is missing.
 * @param {Output} found
 * @param {Expected} expected
 */
export function differenceOf(found, expected) {
  const pairs = /** @type {const} */ ([
    [found.output, expected.output],
    [found.weights, expected.weights],
  ]);
  let largest = 0;
  for (const [values, wanted] of pairs) {
    if (!wanted) continue;
    for (const [row, numbers] of wanted.rows) {
      numbers.forEach((number, n) => {
        const difference = Math.abs((values?.[row * wanted.width + n] ?? Number.NaN) - number);
        largest = Math.max(largest, Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference);
      });
    }
    // Rows that are not compared must be numbers, at least.
    if (values?.some((value) => Number.isNaN(value))) return Number.POSITIVE_INFINITY;
  }
  return largest;
}
