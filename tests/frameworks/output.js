/** What transformers.js gives for `model(inputs, { output_attentions: true })`: one tensor [1, heads, length, length] per layer. */
export const tokens = ["[CLS]", "the", "cat", "sat", "[SEP]"];

const HEADS = 3;
const LENGTH = tokens.length;

/** @param {number} layer */
function attention(layer) {
  const data = new Float32Array(HEADS * LENGTH * LENGTH);
  for (let head = 0; head < HEADS; head++)
    for (let query = 0; query < LENGTH; query++)
      for (let key = 0; key < LENGTH; key++)
        // Half to one key, which layer, head and query decide.
        data[(head * LENGTH + query) * LENGTH + key] =
          0.5 / LENGTH + (key === (query + head + layer) % LENGTH ? 0.5 : 0);
  return { type: "float32", dims: [1, HEADS, LENGTH, LENGTH], data, size: data.length, location: "cpu" };
}

export const attentions = [attention(0), attention(1)];
