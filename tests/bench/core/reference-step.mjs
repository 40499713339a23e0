/** GPT-2 in float64 (Radford et al. 2019), all of a short text at once; matrices are [inputs, outputs]. */
import { gpt2Shapes, stepTokens } from "./gpt2.mjs";

const EPSILON = 1e-5;

/**
 * The logits after the last token.
 * @param {import("./types.ts").Inputs} inputs
 * @param {import("./types.ts").StepShape} shape
 */
export function stepLogits(inputs, shape) {
  const { layers, embedDim, heads, vocabulary } = shape;
  /** @param {string} name */
  const tensor = (name) => {
    const found = inputs[name];
    if (!found || !(name in gpt2Shapes(shape))) throw new Error(`there is no input ${name}`);
    return found;
  };
  /** @param {readonly Float64Array[]} rows @param {string} name */
  const linear = (rows, name) => multiplied(rows, tensor(`${name}.weight`), tensor(`${name}.bias`));
  /** @param {readonly Float64Array[]} rows @param {string} name */
  const norm = (rows, name) => rows.map((row) => normed(row, tensor(`${name}.weight`), tensor(`${name}.bias`)));

  const [tokens, places] = [tensor("wte.weight"), tensor("wpe.weight")];
  let rows = stepTokens(shape).map((id, position) =>
    Float64Array.from(
      { length: embedDim },
      (_, n) => at(tokens, id * embedDim + n) + at(places, position * embedDim + n),
    ),
  );
  for (let layer = 0; layer < layers; ++layer) {
    const name = `h.${layer}`;
    const projected = linear(norm(rows, `${name}.ln_1`), `${name}.attn.c_attn`);
    rows = sums(rows, linear(attended(projected, heads, embedDim), `${name}.attn.c_proj`));
    const inner = linear(norm(rows, `${name}.ln_2`), `${name}.mlp.c_fc`).map((row) => row.map(gelu));
    rows = sums(rows, linear(inner, `${name}.mlp.c_proj`));
  }
  const last = /** @type {Float64Array} */ (norm(rows.slice(-1), "ln_f")[0]);
  const logits = new Float64Array(vocabulary);
  for (let id = 0; id < vocabulary; ++id) {
    let sum = 0;
    for (let n = 0; n < embedDim; ++n) sum += at(last, n) * at(tokens, id * embedDim + n);
    logits[id] = sum;
  }
  return logits;
}

/** @param {ArrayLike<number>} values @param {number} index */
const at = (values, index) => /** @type {number} */ (values[index]);

/** @param {number} x */
const gelu = (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

/** @param {readonly Float64Array[]} a @param {readonly Float64Array[]} b */
const sums = (a, b) => a.map((row, r) => row.map((value, n) => value + at(/** @type {Float64Array} */ (b[r]), n)));

/**
 * @param {Float64Array} row
 * @param {ArrayLike<number>} weight
 * @param {ArrayLike<number>} bias
 */
function normed(row, weight, bias) {
  const mean = row.reduce((a, b) => a + b) / row.length;
  const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
  return row.map((value, n) => ((value - mean) / Math.sqrt(variance + EPSILON)) * at(weight, n) + at(bias, n));
}

/**
 * @param {readonly Float64Array[]} rows
 * @param {ArrayLike<number>} weight
 * @param {ArrayLike<number>} bias
 */
function multiplied(rows, weight, bias) {
  const outputs = bias.length;
  return rows.map((row) => {
    const result = Float64Array.from(bias);
    row.forEach((value, input) => {
      const from = input * outputs;
      for (let n = 0; n < outputs; ++n) result[n] = at(result, n) + value * at(weight, from + n);
    });
    return result;
  });
}

/**
 * Causal attention of rows [queries, keys, values], each [heads, headDim].
 * @param {readonly Float64Array[]} rows
 * @param {number} heads
 * @param {number} width
 */
function attended(rows, heads, width) {
  const headDim = width / heads;
  return rows.map((row, query) => {
    const result = new Float64Array(width);
    const visible = rows.slice(0, query + 1);
    for (let head = 0; head < heads; ++head) {
      const from = head * headDim;
      const exponentials = visible.map((key) => {
        let score = 0;
        for (let n = from; n < from + headDim; ++n) score += at(row, n) * at(key, width + n);
        return Math.exp(score / Math.sqrt(headDim));
      });
      const total = exponentials.reduce((a, b) => a + b);
      visible.forEach((key, k) => {
        for (let n = from; n < from + headDim; ++n)
          result[n] = at(result, n) + (at(exponentials, k) / total) * at(key, 2 * width + n);
      });
    }
    return result;
  });
}
