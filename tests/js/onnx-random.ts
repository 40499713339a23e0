/** Random cases of ONNX's Attention, within the operator's rules (opset 24), for what the given cases leave out. */
import type { OnnxCase, OnnxTensor } from "./onnx-cases.ts";
import { randomFloats, randomSource } from "./reference-data.ts";

export interface Wanted {
  /** Masks may broadcast over queries, and have fewer columns than there are keys: the rest is hidden. */
  partialMasks: boolean;
}

/** Case n of a fixed series; what it varies is drawn from few values, so that a peer compiles few graphs. */
export function randomCase(n: number, { partialMasks }: Wanted): OnnxCase {
  const random = randomSource(1000 + n);
  const upTo = (largest: number) => 1 + Math.floor(random() * largest);
  const pick = <T>(...choices: T[]): T => choices[Math.floor(random() * choices.length)]!;
  const kvHeads = upTo(3);
  const heads = kvHeads * pick(1, 1, 2, 3);
  const batch = upTo(3);
  const headDim = pick(upTo(33), 8, 16, 64);
  const valueDim = pick(headDim, upTo(40));
  const queryLength = pick(1, upTo(12), upTo(70));
  const history = pick("none", "none", "past", "past", "nonpad");
  const newLength = history === "past" ? pick(queryLength, 1, upTo(20)) : pick(upTo(12), upTo(150));
  const past = history === "past" ? pick(0, upTo(12), upTo(100)) : 0;
  const total = past + newLength;
  const size = pick(1, 2);

  const floats = (dims: number[], most = 1): OnnxTensor => ({
    dtype: "f32",
    dims,
    data: randomFloats(
      random,
      dims.reduce((a, b) => a * b, 1),
      most,
    ),
  });
  const folded = random() < 0.5;
  const operand = (count: number, length: number, width: number, most: number) =>
    floats(folded ? [batch, length, count * width] : [batch, count, length, width], most);
  const item: OnnxCase = {
    op: "Attention",
    name: `random case ${n}`,
    opset: history === "nonpad" ? 24 : 23,
    attrs: {},
    inputs: ["Q", "K", "V", "", "", "", ""],
    outputs: ["Y", "", "", ""],
    tensors: {
      Q: operand(heads, queryLength, headDim, size),
      K: operand(kvHeads, newLength, headDim, size),
      V: operand(kvHeads, newLength, valueDim, 1),
    },
  };
  const { attrs, inputs, outputs, tensors } = item;
  const give = (place: number, name: string, tensor: OnnxTensor) => {
    inputs[place] = name;
    tensors[name] = tensor;
  };
  if (folded) Object.assign(attrs, { q_num_heads: heads, kv_num_heads: kvHeads });
  if (random() < 0.4) attrs.scale = pick(0.25, 1);
  if (random() < 0.3) attrs.softcap = pick(1.5, 30);
  if (random() < 0.5) attrs.is_causal = 1;
  const columns = partialMasks && random() < 0.5 ? upTo(total) : total;
  const dims = pick(
    undefined,
    [queryLength, columns],
    [partialMasks ? 1 : queryLength, columns],
    [heads, queryLength, columns],
    [1, queryLength, columns],
    [batch, heads, queryLength, columns],
    [batch, 1, queryLength, columns],
    [1, heads, queryLength, columns],
    [batch, 1, partialMasks ? 1 : queryLength, columns],
  );
  if (dims) {
    const count = dims.reduce((a, b) => a * b, 1);
    const data = randomFloats(random, count, 3);
    give(
      3,
      "attn_mask",
      random() < 0.5
        ? { dtype: "bool", dims, data: Uint8Array.from(data, (x) => Number(x < 1.2)) }
        : { dtype: "f32", dims, data: data.map((x) => (random() < 0.8 ? x : -Infinity)) },
    );
  }
  if (history === "past") {
    give(4, "past_key", floats([batch, kvHeads, past, headDim], size));
    give(5, "past_value", floats([batch, kvHeads, past, valueDim]));
    outputs.splice(1, 2, "present_key", "present_value");
  }
  if (history === "nonpad") {
    const lengths = Array.from({ length: batch }, () => Math.floor(random() * (newLength + 1)));
    give(6, "nonpad_kv_seqlen", { dtype: "i64", dims: [batch], data: lengths });
  }
  const mode = pick(undefined, 0, 1, 2, 3);
  if (mode !== undefined) {
    attrs.qk_matmul_output_mode = mode;
    outputs[3] = "qk_matmul_output";
  }
  return item;
}

/** What varies in a case, for a message. */
export const describeCase = ({ name, attrs, inputs, tensors }: OnnxCase): string =>
  `${name} ${JSON.stringify({ ...attrs, ...Object.fromEntries(inputs.filter(Boolean).map((input) => [input, tensors[input]!.dims])) })}`;
