/** How many bits a language model needs for each character of a text it has not been trained on. */

/** @typedef {Pick<import("lookback/model").Model, "encode" | "decode" | "forward" | "config">} Scored */

/**
 * Passes over the text in windows of the model's context that overlap by half, so that every token but those of the first half window has at
 * least half a context before it. The first token has nothing before it, and is not counted.
 * @param {Scored} model
 * @param {string} text
 * @param {(share: number) => void} [onProgress]
 * @returns {{ bits: number, characters: number, tokens: number, skipped: number }} skipped: characters of the first token
 */
export function heldOutBits(model, text, onProgress) {
  const ids = model.encode(text, { special: false });
  const window = model.config.contextLength;
  const half = Math.floor(window / 2);
  let nats = 0;
  // The token at `scored` is the next one to count.
  for (let start = 0, scored = 1; scored < ids.length; start += half) {
    const piece = ids.slice(start, start + window);
    const { logits } = model.forward(piece, { logits: "all" });
    const width = logits.dims.at(-1) ?? 0;
    for (; scored < start + piece.length; ++scored) {
      const row = (scored - 1 - start) * width;
      nats += surprise(logits.data.subarray(row, row + width), ids[scored] ?? 0);
    }
    onProgress?.(scored / ids.length);
  }
  const skipped = [...model.decode(ids.slice(0, 1))].length;
  return { bits: nats / Math.LN2, characters: [...text].length - skipped, tokens: ids.length - 1, skipped };
}

/**
 * −ln softmax(logits)[id], in float64.
 * @param {ArrayLike<number>} logits
 * @param {number} id
 */
export function surprise(logits, id) {
  let most = Number.NEGATIVE_INFINITY;
  for (let at = 0; at < logits.length; ++at) most = Math.max(most, logits[at] ?? Number.NaN);
  let sum = 0;
  for (let at = 0; at < logits.length; ++at) sum += Math.exp((logits[at] ?? 0) - most);
  return most + Math.log(sum) - (logits[id] ?? Number.NaN);
}
