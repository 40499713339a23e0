/** A GPT-2 by the names of its files: what its tensors are, and what it is given. */

/** @typedef {import("./types.ts").StepShape} StepShape */

/**
 * [rows, columns] or [length]; matrices are [inputs, outputs].
 * @param {StepShape} shape
 */
export function gpt2Shapes({ layers, embedDim, vocabulary, positions }) {
  /** @type {Record<string, readonly [number, number?]>} */
  const shapes = { "wte.weight": [vocabulary, embedDim], "wpe.weight": [positions, embedDim] };
  /** @param {string} name */
  const norm = (name) => {
    shapes[`${name}.weight`] = [embedDim];
    shapes[`${name}.bias`] = [embedDim];
  };
  /** @param {string} name @param {number} inputs @param {number} outputs */
  const linear = (name, inputs, outputs) => {
    shapes[`${name}.weight`] = [inputs, outputs];
    shapes[`${name}.bias`] = [outputs];
  };
  for (let layer = 0; layer < layers; ++layer) {
    norm(`h.${layer}.ln_1`);
    linear(`h.${layer}.attn.c_attn`, embedDim, 3 * embedDim);
    linear(`h.${layer}.attn.c_proj`, embedDim, embedDim);
    norm(`h.${layer}.ln_2`);
    linear(`h.${layer}.mlp.c_fc`, embedDim, 4 * embedDim);
    linear(`h.${layer}.mlp.c_proj`, 4 * embedDim, embedDim);
  }
  norm("ln_f");
  return shapes;
}

/**
 * Tokens from all over the vocabulary; the last one is the step's.
 * @param {StepShape} shape
 */
export function stepTokens({ held, vocabulary }) {
  return Array.from({ length: held + 1 }, (_, n) => (17 + 7919 * n) % vocabulary);
}
