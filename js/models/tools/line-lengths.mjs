/** Whether a model that writes regular verse keeps its lines' length. */

/** @typedef {Pick<import("lookback/model").Model, "generate">} Writer */

/**
 * Lets the model write poems, each behind the end of another, and counts their lines: what stands between punctuation marks.
 * @param {Writer} model
 * @param {{ poems: number, seed: number }} options the seeds are `seed`, `seed` + 1, …
 */
export async function countLines(model, { poems, seed }) {
  const total = { poems: 0, lines: 0, fiveOrSeven: 0, asTheFirst: 0, wholePoems: 0 };
  for (let at = 0; at < poems; ++at) {
    const settings = { maxTokens: 80, temperature: 0.8, topK: 40, seed: seed + at, stop: "\n\n" };
    const lines = linesOf(await model.generate("。\n\n", settings).text());
    const first = lines[0] ?? 0;
    const alike = lines.filter((length) => length === first).length;
    total.poems += 1;
    total.lines += lines.length;
    total.fiveOrSeven += lines.filter((length) => length === 5 || length === 7).length;
    total.asTheFirst += alike;
    total.wholePoems += (first === 5 || first === 7) && alike === lines.length && [4, 8].includes(lines.length) ? 1 : 0;
  }
  const { lines } = total;
  return { ...total, shareOfFiveOrSeven: total.fiveOrSeven / lines, shareAsTheFirst: total.asTheFirst / lines };
}

/**
 * The length of each line, in characters.
 * @param {string} poem
 */
export const linesOf = (poem) =>
  poem
    .split(/[，。？！\n]+/u)
    .filter((line) => line !== "")
    .map((line) => [...line].length);
