import { fail, refuse, shape } from "./errors.js";
import { checkBytes } from "./heap.js";
import { readPerHead } from "./lists.js";
import { later, readOptions } from "./options.js";
import { product, readValues, tensorOf } from "./tensors.js";
import type { FloatTensor, Tensor } from "./types.js";

/** What attention over some of the keys gave: `output` in any layout, `logSumExp` [B, H, Lq]. */
export interface AttentionPart {
  output: FloatTensor;
  logSumExp: FloatTensor;
}

export interface MergeOptions {
  /** One logit per head, [H]; the parts must have been computed without them. */
  sinks?: ArrayLike<number> | FloatTensor | undefined;
}

export interface MergedAttention {
  /** In the layout of the parts. */
  output: Tensor;
  /** [B, H, Lq], the sinks included. */
  logSumExp: Tensor;
}

/**
 * Attention over the union of disjoint key ranges, from the results over each: every part weighs exp(its logSumExp). Sums are taken in
 * float64. A part that saw no key (logSumExp −∞) has no say, and where none saw one the row is 0 (R9).
 */
export function mergeAttention(parts: readonly AttentionPart[], options?: MergeOptions): MergedAttention {
  const where = "mergeAttention";
  if (!Array.isArray(parts) || parts.length === 0) {
    refuse("bad-parts", `${where}: the first argument`, "a list of { output, logSumExp }, at least one", parts);
  }
  const read = parts.map((part: unknown, n) => {
    const name = `${where}: part ${n}`;
    if (typeof part !== "object" || part === null) refuse("bad-parts", name, "{ output, logSumExp }", part);
    const { output, logSumExp } = part as Partial<AttentionPart>;
    if (logSumExp === undefined) fail("bad-parts", `${name} has no logSumExp; ask for it: { logSumExp: true }.`);
    return { output: readValues(output, `${name}: output`), lse: readValues(logSumExp, `${name}: logSumExp`) };
  });
  const first = read[0]!;
  for (const [n, { output, lse }] of read.entries()) {
    if (shape(output.dims) !== shape(first.output.dims) || shape(lse.dims) !== shape(first.lse.dims)) {
      fail(
        "bad-parts",
        `${where}: all parts must have the same dims; part 0: output ${shape(first.output.dims)}, logSumExp ` +
          `${shape(first.lse.dims)}; part ${n}: output ${shape(output.dims)}, logSumExp ${shape(lse.dims)}.`,
      );
    }
  }
  const { dims } = first.output;
  const { heads, length, width } = readRows(dims, first.lse.dims, where);
  const given = readOptions(options, { sinks: later<unknown>() }, where).sinks;
  const sinks = given === undefined ? undefined : readPerHead(given, `${where}: sinks`, heads, -Infinity, "bad-parts");

  const rows = product(first.lse.dims);
  checkBytes(product(dims) * 4, "The merged output");
  const merged = new Float32Array(product(dims));
  const logSumExp = new Float32Array(rows);
  const weights = new Float64Array(read.length);
  for (let row = 0; row < rows; row++) {
    const [block, i] = [Math.floor(row / length), row % length];
    const h = block % heads;
    const sink = sinks ? sinks[h]! : -Infinity;
    const largest = read.reduce((most, { lse }) => Math.max(most, lse.source[row]!), sink);
    logSumExp[row] = largest;
    if (largest === -Infinity) continue;
    let sum = Math.exp(sink - largest);
    for (let n = 0; n < weights.length; n++) sum += weights[n] = Math.exp(read[n]!.lse.source[row]! - largest);
    logSumExp[row] = largest + Math.log(sum);
    // 4-D is [B, H, Lq, width]; 3-D and 2-D fold the heads into the row: [B, Lq, H·width].
    const start = (dims.length === 4 ? row : ((block - h) / heads) * length * heads + i * heads + h) * width;
    for (let at = start; at < start + width; at++) {
      let value = 0;
      for (let n = 0; n < weights.length; n++) {
        const { output, lse } = read[n]!;
        // By selection: what a part without a visible key holds there must not matter, NaN included (R10).
        if (lse.source[row] !== -Infinity) value += weights[n]! * output.source[at]!;
      }
      merged[at] = value / sum;
    }
  }
  return { output: tensorOf(merged, dims), logSumExp: tensorOf(logSumExp, first.lse.dims) };
}

/** Heads, queries and the width of one head, from dims that agree. */
function readRows(output: readonly number[], lse: readonly number[], where: string) {
  const [batch, heads, length] = lse as [number, number, number];
  const rank = output.length;
  const folded = output.at(-1)!;
  const fits =
    lse.length === 3 &&
    heads > 0 &&
    (rank === 4
      ? output[0] === batch && output[1] === heads && output[2] === length
      : (rank === 3 ? output[0] === batch : rank === 2 && batch === 1) &&
        output.at(-2) === length &&
        folded % heads === 0);
  if (!fits) {
    fail(
      "bad-parts",
      `${where}: output must be [B, H, Lq, valueDim], [B, Lq, H·valueDim] or [Lq, H·valueDim], and logSumExp ` +
        `[B, H, Lq]; received ${shape(output)} and ${shape(lse)}.`,
    );
  }
  return { heads, length, width: rank === 4 ? folded : folded / heads };
}
