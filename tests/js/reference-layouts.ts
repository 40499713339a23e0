/**
 * Self-attention forward in the layouts of BERT, GPT-2, Llama and Keras, each read by that layout's own indexing and names, in float64
 * and plain loops. Nothing is shared with the package. Positions (Llama's rotary) are left out: they are not the parameters' business.
 */

// Taken once: inside Jest's realm a look-up of a global is slow.
const { exp, floor, max, sqrt } = Math;

export interface LayoutShape {
  batch: number;
  length: number;
  heads: number;
  kvHeads: number;
  headDim: number;
}

type Numbers = ArrayLike<number>;
export type Parameters = Record<string, { data: Numbers }>;

/** q, k and v at [b, position, head, d]; returns [B, L, H·D], the heads side by side. */
type At = (b: number, position: number, head: number, d: number) => number;

function attend(
  { batch, length, heads, kvHeads, headDim }: LayoutShape,
  causal: boolean,
  q: At,
  k: At,
  v: At,
): Float64Array {
  const context = new Float64Array(batch * length * heads * headDim);
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) {
      const shared = floor(h / (heads / kvHeads));
      for (let i = 0; i < length; i++) {
        const keys = causal ? i + 1 : length;
        const scores: number[] = [];
        for (let j = 0; j < keys; j++) {
          let dot = 0;
          for (let d = 0; d < headDim; d++) dot += q(b, i, h, d) * k(b, j, shared, d);
          scores.push(dot / sqrt(headDim));
        }
        const largest = scores.reduce((a, score) => max(a, score));
        const powers = scores.map((score) => exp(score - largest));
        const sum = powers.reduce((a, power) => a + power);
        for (let d = 0; d < headDim; d++) {
          let value = 0;
          for (let j = 0; j < keys; j++) value += (powers[j]! / sum) * v(b, j, shared, d);
          context[((b * length + i) * heads + h) * headDim + d] = value;
        }
      }
    }
  }
  return context;
}

/** Σ over n of input[row, n] · weight(n), plus the bias. */
function sum(input: Numbers, row: number, width: number, weight: (n: number) => number, bias = 0): number {
  let total = bias;
  for (let n = 0; n < width; n++) total += input[row * width + n]! * weight(n);
  return total;
}

function eachOutput(
  { batch, length }: LayoutShape,
  width: number,
  at: (row: number, o: number) => number,
): Float64Array {
  const output = new Float64Array(batch * length * width);
  for (let row = 0; row < batch * length; row++) for (let o = 0; o < width; o++) output[row * width + o] = at(row, o);
  return output;
}

/** nn.Linear: weight[out][in]. */
function linears(
  p: Parameters,
  names: [string, string, string, string],
  shape: LayoutShape,
  x: Numbers,
  causal: boolean,
) {
  const { length, heads, headDim } = shape;
  const width = heads * headDim;
  const linear = (name: string, input: Numbers, row: number, o: number) =>
    sum(input, row, width, (n) => p[`${name}.weight`]!.data[o * width + n]!, p[`${name}.bias`]?.data[o]);
  const [query, key, value, out] = names;
  const project =
    (name: string): At =>
    (b, i, h, d) =>
      linear(name, x, b * length + i, h * headDim + d);
  const context = attend(shape, causal, project(query), project(key), project(value));
  return eachOutput(shape, width, (row, o) => linear(out, context, row, o));
}

export const referenceBert = (p: Parameters, shape: LayoutShape, x: Numbers): Float64Array =>
  linears(p, ["self.query", "self.key", "self.value", "output.dense"], shape, x, false);

export const referenceLlama = (p: Parameters, shape: LayoutShape, x: Numbers): Float64Array =>
  linears(p, ["q_proj", "k_proj", "v_proj", "o_proj"], shape, x, true);

/** Conv1D: x · weight, weight[in][out]; c_attn's columns are query, key, value. */
export function referenceGPT2(p: Parameters, shape: LayoutShape, x: Numbers): Float64Array {
  const { length, heads, headDim } = shape;
  const width = heads * headDim;
  const conv = (name: string, columns: number, input: Numbers, row: number, o: number) =>
    sum(input, row, width, (n) => p[`${name}.weight`]!.data[n * columns + o]!, p[`${name}.bias`]!.data[o]);
  const third =
    (which: number): At =>
    (b, i, h, d) =>
      conv("c_attn", 3 * width, x, b * length + i, which * width + h * headDim + d);
  const context = attend(shape, true, third(0), third(1), third(2));
  return eachOutput(shape, width, (row, o) => conv("c_proj", width, context, row, o));
}

/** EinsumDense: kernel[e][head][d] for query, key and value, kernel[head][d][e] for the output. */
export function referenceKeras(p: Parameters, shape: LayoutShape, x: Numbers): Float64Array {
  const { length, heads, kvHeads, headDim } = shape;
  const width = heads * headDim;
  const einsum =
    (name: string, count: number): At =>
    (b, i, h, d) => {
      const kernel = p[`${name}/kernel`]!.data;
      const bias = p[`${name}/bias`]?.data[h * headDim + d];
      return sum(x, b * length + i, width, (e) => kernel[(e * count + h) * headDim + d]!, bias);
    };
  const context = attend(shape, false, einsum("query", heads), einsum("key", kvHeads), einsum("value", kvHeads));
  return eachOutput(shape, width, (row, e) => {
    let total = p["attention_output/bias"]?.data[e] ?? 0;
    for (let h = 0; h < heads; h++) {
      for (let d = 0; d < headDim; d++) {
        const kernel = p["attention_output/kernel"]!.data[(h * headDim + d) * width + e]!;
        total += context[row * width + h * headDim + d]! * kernel;
      }
    }
    return total;
  });
}
