/**
 * The entry `lookback/state-dicts`, apart from the main one: most pages load one layout, or none.
 *
 * The parameters of an attention layer in the layouts of other systems, from and to PyTorch's names as `layer.load` takes and `layer.state`
 * gives them. Pure functions, exact both ways; a layer without biases has none on the other side.
 *
 *   BERT    self.query, self.key, self.value, output.dense: weight [out, in], bias
 *   GPT-2   c_attn: weight [E, 3·E], bias [3·E]; c_proj: weight [E, E] as [in, out], bias (Conv1D)
 *   Llama   q_proj, k_proj, v_proj, o_proj: weight [out, in]; fewer rows of k and v are grouped queries
 *   Keras   query, key, value: kernel [E, heads, headDim], bias [heads, headDim]; attention_output: kernel [heads, headDim, E], bias [E]
 */
import { fail, refuse, shape } from "./errors.js";
import { flag, positiveInteger, type Reader, readOptions } from "./options.js";
import { checkGroups } from "./shapes.js";
import {
  assemble,
  checkLinears,
  cut,
  type Linear,
  type Linears,
  type NamedTensors,
  reader,
  requireBiases,
  split,
  stack,
  transpose,
} from "./state-linears.js";
import { product, tensorOf } from "./tensors.js";
import type { Tensor } from "./types.js";

export type { NamedTensors } from "./state-linears.js";

export interface StateDictOptions {
  /** What the other system's names begin with ('encoder.layer.0.attention.'); names that begin otherwise are not looked at. */
  prefix?: string;
}

type Names = readonly [string, string, string, string];

const BERT: Names = ["self.query", "self.key", "self.value", "output.dense"];
const LLAMA: Names = ["q_proj", "k_proj", "v_proj", "o_proj"];
const KERAS: Names = ["query", "key", "value", "attention_output"];
// What lies beside the four projections under the same prefix, and is none of attention's parameters.
const BESIDE_BERT = ["weight", "bias", "gamma", "beta"].map((name) => `output.LayerNorm.${name}`);
const BESIDE_GPT2 = ["bias", "masked_bias"];
const BESIDE_LLAMA = ["rotary_emb.inv_freq"];
const IS_LINEAR = " It looks like nn.Linear's [3·E, E] (nanoGPT): that is in_proj_weight as it is.";

export const fromBert = (state: NamedTensors, options?: StateDictOptions): Record<string, Tensor> =>
  fromLinears("fromBert", BERT, state, readPrefix(options, "fromBert"), BESIDE_BERT, false);

export const toBert = (state: NamedTensors, options?: StateDictOptions): Record<string, Tensor> =>
  named(BERT, split(state, "toBert").linears, readPrefix(options, "toBert"));

/** Where some of the projections have biases, one without (Qwen's o_proj) gets zeros. */
export const fromLlama = (state: NamedTensors, options?: StateDictOptions): Record<string, Tensor> =>
  fromLinears("fromLlama", LLAMA, state, readPrefix(options, "fromLlama"), BESIDE_LLAMA, true);

/** `outputBias: false` leaves out the bias of o_proj, which must be 0 (Qwen). */
export function toLlama(
  state: NamedTensors,
  options?: StateDictOptions & { outputBias?: boolean },
): Record<string, Tensor> {
  const where = "toLlama";
  const { prefix = "", outputBias = true } = readOptions(options, { prefix: text, outputBias: flag }, where);
  const [query, key, value, out] = split(state, where).linears;
  if (!outputBias && out.bias?.data.some((number) => number !== 0)) {
    fail("bad-option", `${where}: outputBias: false would lose out_proj.bias, which is not 0.`);
  }
  return named(LLAMA, [query, key, value, outputBias ? out : { weight: out.weight }], prefix);
}

export function fromGPT2(state: NamedTensors, options?: StateDictOptions): Record<string, Tensor> {
  const where = "fromGPT2";
  const read = reader(state, readPrefix(options, where), where);
  const [inputs, out] = [read.linear("c_attn"), read.linear("c_proj")];
  requireBiases(read, ["c_attn.bias", "c_proj.bias"], [inputs, out]);
  read.end(BESIDE_GPT2);
  read.expect("c_attn.weight", inputs.weight, ["E", "3·E"]);
  const [width, columns] = inputs.weight.dims as [number, number];
  read.expect("c_attn.weight", inputs.weight, [width, 3 * width], columns * 3 === width ? IS_LINEAR : "");
  read.expect("c_attn.bias", inputs.bias, [3 * width]);
  read.expect("c_proj.weight", out.weight, [width, width]);
  read.expect("c_proj.bias", out.bias, [width]);
  const thirds = [width, width, width];
  const weights = cut(transpose(inputs.weight, width), thirds);
  const biases = inputs.bias && cut(inputs.bias, thirds);
  const [query, key, value] = weights.map((weight, n): Linear => ({ weight, bias: biases?.[n] })) as Linear[];
  return assemble([query!, key!, value!, { weight: transpose(out.weight, width), bias: out.bias }]);
}

export function toGPT2(state: NamedTensors, options?: StateDictOptions): Record<string, Tensor> {
  const where = "toGPT2";
  const prefix = readPrefix(options, where);
  const { linears, width } = split(state, where);
  const other = linears.find(({ weight }) => shape(weight.dims) !== shape([width, width]));
  if (other) {
    const found = shape(other.weight.dims);
    fail("state-shape", `${where}: c_attn takes query, key and value of [${width}, ${width}] each; one is ${found}.`);
  }
  const [inputs, out] = [linears.slice(0, 3), linears[3]];
  const bias = out.bias && stack(inputs.map(({ bias }) => bias!));
  const packed = { weight: transpose(stack(inputs.map(({ weight }) => weight)), 3 * width), bias };
  return named(["c_attn", "c_proj"], [packed, { weight: transpose(out.weight, width), bias: out.bias }], prefix);
}

/** keras.layers.MultiHeadAttention's variables by path; names may end in ':0'. */
export function fromKeras(state: NamedTensors, options?: StateDictOptions): Record<string, Tensor> {
  const where = "fromKeras";
  const read = reader(state, readPrefix(options, where), where);
  const given = KERAS.map((name) => read.linear(name, "/kernel", "/bias"));
  requireBiases(
    read,
    KERAS.map((name) => `${name}/bias`),
    given,
  );
  read.end([]);
  const [query, key] = given as unknown as Linears;
  read.expect("query/kernel", query.weight, ["E", "heads", "headDim"]);
  const [, heads, headDim] = query.weight.dims as [number, number, number];
  read.expect("key/kernel", key.weight, ["keyDim", "kvHeads", headDim]);
  const kvHeads = key.weight.dims[1]!;
  checkGroups(heads, kvHeads);
  const width = heads * headDim;
  const dims = [
    [width, heads, headDim],
    ["keyDim", kvHeads, headDim],
    ["valueDim", kvHeads, headDim],
    [heads, headDim, width],
  ];
  const linears = given.map(({ weight, bias }, n): Linear => {
    read.expect(`${KERAS[n]}/kernel`, weight, dims[n]!);
    read.expect(`${KERAS[n]}/bias`, bias, n < 3 ? dims[n]!.slice(1) : [width]);
    const outputs = n === 0 || n === 3 ? width : kvHeads * headDim;
    return { weight: transpose(weight, product(weight.dims) / outputs), bias: bias && tensorOf(bias.data, [outputs]) };
  });
  return assemble(linears as unknown as Linears);
}

/** Needs `heads`, which PyTorch's parameters do not tell. */
export function toKeras(state: NamedTensors, options: StateDictOptions & { heads: number }): Record<string, Tensor> {
  const where = "toKeras";
  const { prefix = "", heads } = readOptions(options, { prefix: text, heads: positiveInteger }, where);
  if (heads === undefined) return refuse("heads-missing", `${where}: heads`, "an integer ≥ 1", heads);
  const { linears, width, kvWidth } = split(state, where);
  const headDim = width / heads;
  if (!Number.isInteger(headDim) || kvWidth % headDim !== 0) {
    fail(
      "embed-dim-not-divisible",
      `${where}: heads ${heads} do not divide ${width} queries and ${kvWidth} keys evenly.`,
    );
  }
  const result: Record<string, Tensor> = {};
  linears.forEach(({ weight, bias }, n) => {
    const [outputs, inputs] = weight.dims as [number, number];
    const split = n < 3 ? [outputs / headDim, headDim] : [outputs];
    const dims = n < 3 ? [inputs, ...split] : [heads, headDim, outputs];
    result[`${prefix}${KERAS[n]}/kernel`] = tensorOf(transpose(weight, outputs).data, dims);
    if (bias) result[`${prefix}${KERAS[n]}/bias`] = tensorOf(bias.data, split);
  });
  return result;
}

function fromLinears(
  where: string,
  names: Names,
  state: NamedTensors,
  prefix: string,
  beside: readonly string[],
  someBiases: boolean,
): Record<string, Tensor> {
  const read = reader(state, prefix, where);
  const linears = names.map((name) => read.linear(name)) as unknown as Linears;
  const biases = names.map((name) => `${name}.bias`);
  if (!someBiases) requireBiases(read, biases, linears);
  read.end(beside);
  const weights = names.map((name) => `${name}.weight`);
  checkLinears(read, weights, linears);
  for (const [n, { weight, bias }] of linears.entries()) read.expect(biases[n]!, bias, [weight.dims[0]!]);
  return assemble(linears);
}

function named(names: readonly string[], linears: readonly Linear[], prefix: string): Record<string, Tensor> {
  const result: Record<string, Tensor> = {};
  for (const [n, { weight, bias }] of linears.entries()) {
    result[`${prefix}${names[n]}.weight`] = weight;
    if (bias) result[`${prefix}${names[n]}.bias`] = bias;
  }
  return result;
}

const text: Reader<string> = (value, where) =>
  typeof value === "string" ? value : refuse("bad-option", where, "a text", value);

const readPrefix = (options: unknown, where: string): string =>
  readOptions(options, { prefix: text }, where).prefix ?? "";
