/** R14: any partition of the keys merges, whatever else the call says: parts need not be neighbours, and may be empty or see nothing. */
import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { mergeAttention } from "lookback";
import { holds, rowBound, run, worst } from "./accuracy-check.ts";
import { optionsFor, problems, someOptions } from "./property-problems.ts";
import { visibility } from "./reference.ts";
import { type Operands, refer } from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

// Taken once: inside Jest's realm a look-up of a global is slow.
const { abs, floor, max } = Math;

/** Keys `columns` of the operands; masks and numbers per key are the caller's business. */
function gatherKeys({ shape, q, k, v }: Operands, columns: number[]): Operands {
  const { batch, kvHeads, keyLength, headDim, valueDim } = shape;
  const gather = (data: Float32Array, width: number) => {
    const kept = new Float32Array(batch * kvHeads * columns.length * width);
    for (let head = 0; head < batch * kvHeads; head++) {
      columns.forEach((j, n) => {
        const from = (head * keyLength + j) * width;
        kept.set(data.subarray(from, from + width), (head * columns.length + n) * width);
      });
    }
    return kept;
  };
  return { shape: { ...shape, keyLength: columns.length }, q, k: gather(k, headDim), v: gather(v, valueDim) };
}

describeVariants((lb) => {
  test("R14, R18: parts of any keys, with masks, biases, positions and sinks, are attention over all", () => {
    fc.assert(
      fc.property(
        problems,
        someOptions,
        fc.integer({ min: 1, max: 4 }),
        fc.constantFrom("4-D", "3-D"),
        (p, names, count, layout) => {
          const { shape } = p.operands;
          const { batch, heads, queryLength, keyLength, valueDim } = shape;
          const options = optionsFor(p, names);
          const whole = refer(p.operands, options);
          // What each place adds to a capped score, and −∞ where it is hidden: positions mean nothing among gathered keys.
          const seen = visibility(options, shape);
          const added = new Float32Array(seen.length);
          for (let at = 0; at < seen.length; at++) {
            added[at] = seen[at] ? whole.masked[at]! - whole.capped[at]! : -Infinity;
          }
          const owner = Array.from({ length: keyLength }, () => floor(p.random() * count));
          const parts = Array.from({ length: count }, (_, part) => {
            const columns = owner.flatMap((own, j) => (own === part ? [j] : []));
            const rows = added.length / keyLength;
            const data = new Float32Array(rows * columns.length);
            for (let row = 0; row < rows; row++) {
              columns.forEach((j, n) => {
                data[row * columns.length + n] = added[row * keyLength + j]!;
              });
            }
            const bias = { data, dims: [batch, heads, queryLength, columns.length] };
            const { raw } = run(
              lb,
              gatherKeys(p.operands, columns),
              { ...(options.softcap ? { softcap: options.softcap } : {}), bias, logSumExp: true },
              layout,
            );
            return { output: raw.output, logSumExp: raw.logSumExp! };
          });
          const merged = mergeAttention(parts, options.sinks ? { sinks: Array.from(options.sinks) } : {});
          const folded = layout === "3-D";
          expect(merged.output.dims).toEqual(
            folded ? [batch, queryLength, heads * valueDim] : [batch, heads, queryLength, valueDim],
          );
          const rowOf = (n: number) => {
            const row = floor(n / valueDim);
            if (!folded) return row;
            const [b, i, h] = [floor(row / (queryLength * heads)), floor(row / heads) % queryLength, row % heads];
            return (b * heads + h) * queryLength + i;
          };
          const expected = Float64Array.from(
            merged.output.data,
            (_, n) => whole.output[rowOf(n) * valueDim + (n % valueDim)]!,
          );
          const sizes = parts.flatMap(({ logSumExp }) => Array.from((logSumExp as { data: Float32Array }).data));
          const largest = sizes.reduce((most, x) => (Number.isFinite(x) ? max(most, abs(x)) : most), 0);
          // The parts' own error, R22, then R14's for merging them; scores of far ALiBi keys round as they are added.
          const far = added.reduce((most, x) => (Number.isFinite(x) ? max(most, abs(x)) : most), 0);
          const allowed = (row: number) =>
            rowBound(whole, row) + whole.largestValue[row]! * (1e-6 + 2 ** -23 * largest + 2 ** -22 * far);
          holds(
            worst(merged.output.data, expected, (n) => allowed(rowOf(n))),
            "output",
          );
          const near = 4e-6 + 2 ** -22 * (largest + far) + 2 ** -23 * max(0, ...whole.largestScore);
          holds(
            worst(merged.logSumExp.data, whole.logSumExp, () => near),
            "logSumExp",
          );
        },
      ),
      { numRuns: 150 },
    );
  });
});
