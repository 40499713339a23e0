/** A GPT-2 as the files that Hugging Face's transformers writes. */
import { gpt2Shapes } from "../core/gpt2.mjs";
import { floatInput } from "../core/inputs.mjs";

/**
 * @param {import("../core/types.ts").StepShape} shape
 * @param {import("../core/types.ts").Inputs} inputs
 * @returns {File[]}
 */
export function gpt2Files(shape, inputs) {
  const { layers, embedDim, heads, vocabulary, positions } = shape;
  const config = { model_type: "gpt2", n_layer: layers, n_embd: embedDim, n_head: heads, n_positions: positions };
  const json = (/** @type {string} */ name, /** @type {object} */ content) => new File([JSON.stringify(content)], name);
  return [
    json("config.json", { ...config, vocab_size: vocabulary }),
    json("tokenizer.json", TOKENIZER),
    new File(safetensors(gpt2Shapes(shape), inputs), "model.safetensors"),
  ];
}

/** Only ids are given and taken, so that one word is enough. */
const TOKENIZER = {
  version: "1.0",
  added_tokens: [],
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  decoder: null,
  model: { type: "BPE", vocab: { a: 0 }, merges: [] },
};

/**
 * 8 bytes of length, a header in JSON, and the tensors one after another.
 * @param {ReturnType<typeof gpt2Shapes>} shapes
 * @param {import("../core/types.ts").Inputs} inputs
 * @returns {BlobPart[]}
 */
function safetensors(shapes, inputs) {
  let end = 0;
  const entries = Object.entries(shapes).map(([name, dims]) => {
    const begin = end;
    end += floatInput(inputs, name).byteLength;
    return [name, { dtype: "F32", shape: dims, data_offsets: [begin, end] }];
  });
  const header = new TextEncoder().encode(JSON.stringify(Object.fromEntries(entries)));
  const length = new DataView(new ArrayBuffer(8));
  length.setUint32(0, header.length, true);
  return [length, header, ...Object.keys(shapes).map((name) => floatInput(inputs, name))];
}
