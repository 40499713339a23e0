/** Attention that a test knows: the same in the page, which imports this, and in the test. */

/**
 * Causal weights as transformers.js gives them: a tensor [1, heads, length, length] per layer. Every query gives half to one key, which
 * its layer and head decide, and shares the rest evenly.
 * @param {number} layers
 * @param {number} heads
 * @param {number} length
 */
export function causalWeights(layers, heads, length) {
  return Array.from({ length: layers }, (_, layer) => {
    const data = new Float32Array(heads * length * length);
    for (let head = 0; head < heads; head++)
      for (let query = 0; query < length; query++) {
        const favourite = (query * (head + 1) + layer) % (query + 1);
        for (let key = 0; key <= query; key++)
          data[(head * length + query) * length + key] = 0.5 / (query + 1) + (key === favourite ? 0.5 : 0);
      }
    return { data, dims: [1, heads, length, length] };
  });
}

export const WORDS = ["<s>", " The", " cat", " sat", " on", " the", " mat", "."];

const story = () => ({ weights: causalWeights(2, 4, WORDS.length), tokens: WORDS });

const hebrew = () => ({
  weights: causalWeights(1, 1, 5),
  tokens: ["<s>", " הילד", " הלך", " אל", " הבית"],
});

/** 日 in two byte-level pieces. */
const japanese = () => ({ weights: causalWeights(1, 1, 4), tokens: ["æĹ", "¥", "æľ¬", "Ġis"] });

/** Two texts: each German word looks at one English word. */
const translation = () => ({
  weights: [
    [
      [
        [0.7, 0.2, 0.1],
        [0, 0.25, 0.75],
      ],
    ],
  ],
  queryTokens: [" ich", " trinke"],
  keyTokens: [" I", " am", " drinking"],
});

/** @type {Record<string, () => object>} */
export const examples = { story, hebrew, japanese, translation };
