/** Masked places: every restriction is one and the same mask (R8), and what they hold has no influence (R10). */
import { test } from "@jest/globals";
import fc from "fast-check";
import type { Lookback } from "lookback";
import { type Outcome, rowBound, run } from "./accuracy-check.ts";
import {
  asked,
  expectSameOutcome,
  forEachRow,
  optionsFor,
  type Problem,
  problems,
  someAdditions,
  someOptions,
  someRestrictions,
} from "./property-problems.ts";
import { readBroadcast, visibility } from "./reference.ts";
import { refer } from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

// Taken once: inside Jest's realm a look-up of a global is slow.
const { abs, floor } = Math;
const isNotANumber = Number.isNaN;

const poisons = fc.constantFrom(NaN, Infinity, -Infinity, 1e38, -3e38);

describeVariants((lb: Lookback) => {
  test("R8: any company of causal, window, mask, lengths, key mask and −∞ bias is the mask of their conjunction, bit for bit", () => {
    fc.assert(
      fc.property(problems, someRestrictions, someAdditions, (p, restrictions, additions) => {
        const { shape } = p.operands;
        const { batch, heads, queryLength, keyLength } = shape;
        const many = optionsFor(p, [...restrictions, ...additions]);
        const mask = {
          data: visibility(optionsFor(p, restrictions), shape),
          dims: [batch, heads, queryLength, keyLength],
        };
        const one = { ...optionsFor(p, additions), mask };
        expectSameOutcome(
          run(lb, p.operands, { ...many, ...asked }),
          run(lb, p.operands, { ...one, ...asked }),
          `${restrictions} with ${additions}`,
        );
      }),
      { numRuns: 250 },
    );
  });

  test("R8: summaries, too, are those of the mask of the conjunction", () => {
    fc.assert(
      fc.property(problems, someRestrictions, someAdditions, (p, restrictions, additions) => {
        const { shape } = p.operands;
        const { batch, heads, queryLength, keyLength } = shape;
        const summary = { topK: 3, entropy: true, distance: true, map: [1, 1] as [number, number] };
        const mask = {
          data: visibility(optionsFor(p, restrictions), shape),
          dims: [batch, heads, queryLength, keyLength],
        };
        const queryOffset = p.queryOffset;
        const many = run(lb, p.operands, { ...optionsFor(p, [...restrictions, ...additions]), queryOffset, summary });
        const one = run(lb, p.operands, { ...optionsFor(p, additions), queryOffset, mask, summary });
        if (JSON.stringify(many.raw.summary) !== JSON.stringify(one.raw.summary)) throw new Error("summaries differ");
      }),
    );
  });

  test("R10: whatever a place holds, rows that do not see it keep their bits; NaN reaches every row that does", () => {
    fc.assert(
      fc.property(problems, someOptions, poisons, fc.constantFrom("K", "V", "both"), (p, names, poison, where) => {
        const { shape, q } = p.operands;
        const { heads, kvHeads, keyLength, headDim, valueDim } = shape;
        const options = optionsFor(p, names);
        const expected = run(lb, p.operands, { ...options, ...asked });
        const k = p.operands.k.slice();
        const v = p.operands.v.slice();
        // About one key in eight of every kv head is poisoned, in one element or in all of them.
        const poisoned = Array.from({ length: k.length / headDim }, () => p.random() < 0.125);
        const spot = (size: number) => (p.random() < 0.5 ? [0, size] : [floor(p.random() * size)]);
        poisoned.forEach((bad, key) => {
          if (!bad) return;
          const [d = 0, end = d + 1] = spot(headDim);
          if (where !== "V") k.fill(poison, key * headDim + d, key * headDim + end);
          if (where !== "K") v.fill(poison, key * valueDim, (key + 1) * valueDim);
        });
        const actual = run(lb, { shape, q, k, v }, { ...options, ...asked });
        const seen = visibility(options, shape);
        forEachRow(shape, (row, b, h) => {
          const firstKey = (b * kvHeads + floor((h * kvHeads) / heads)) * keyLength;
          let sees = false;
          for (let j = 0; j < keyLength; j++) sees ||= poisoned[firstKey + j]! && seen[row * keyLength + j] === 1;
          const part = (outcome: Outcome): Outcome => ({
            ...outcome,
            output: outcome.output.subarray(row * valueDim, (row + 1) * valueDim),
            logSumExp: outcome.logSumExp!.subarray(row, row + 1),
            weights: outcome.weights!.subarray(row * keyLength, (row + 1) * keyLength),
          });
          if (!sees) expectSameOutcome(part(actual), part(expected), `row ${row}, which does not see it`);
          else if (isNotANumber(poison) && !part(actual).output.every(isNotANumber)) {
            throw new Error(`row ${row} sees a NaN and has output ${part(actual).output.join()}`);
          }
        });
      }),
      { numRuns: 200 },
    );
  });

  test("R10: padding may hold anything: behind a row's length and at places of the key mask", () => {
    fc.assert(
      fc.property(
        problems,
        fc.constantFrom("keyLengths", "keyMask"),
        someAdditions,
        poisons,
        (p, name, more, poison) => {
          const { shape, q } = p.operands;
          const { kvHeads, keyLength, headDim, valueDim } = shape;
          const options = { ...optionsFor(p, [name, ...more]), ...asked };
          const [k, v] = [p.operands.k.slice(), p.operands.v.slice()];
          for (let key = 0; key < k.length / headDim; key++) {
            const [b, j] = [floor(key / (kvHeads * keyLength)), key % keyLength];
            const real = name === "keyMask" ? p.keyMask.data[b * keyLength + j] === 1 : j < p.keyLengths[b]!;
            if (real) continue;
            k.fill(poison, key * headDim, (key + 1) * headDim);
            v.fill(poison, key * valueDim, (key + 1) * valueDim);
          }
          expectSameOutcome(run(lb, { shape, q, k, v }, options), run(lb, p.operands, options), `${poison} in padding`);
        },
      ),
    );
  });

  test("R10: what the bias holds at masked places has no influence", () => {
    const options = (p: Problem, names: readonly never[]) => optionsFor(p, ["bias", "mask", ...names]);
    fc.assert(
      fc.property(problems, someOptions, fc.constantFrom(NaN, Infinity, 1e38, -3.4e38), (p, names, poison) => {
        const { shape } = p.operands;
        const { batch, heads, queryLength, keyLength } = shape;
        const dims = [batch, heads, queryLength, keyLength];
        const full = new Float32Array(batch * heads * queryLength * keyLength);
        const planted = full.slice();
        const given = options(p, names as never[]);
        const { bias: _, ...others } = given;
        const seen = visibility(others, shape);
        forEachRow(shape, (row, b, h, i) => {
          for (let j = 0; j < keyLength; j++) {
            const at = row * keyLength + j;
            full[at] = readBroadcast(p.bias, b, h, i, j);
            planted[at] = seen[at] ? full[at]! : poison;
          }
        });
        const call = (data: Float32Array) => run(lb, p.operands, { ...given, ...asked, bias: { data, dims } });
        expectSameOutcome(call(planted), call(full), `a bias of ${poison} at masked places`);
      }),
    );
  });

  test("R10: one NaN in one column of a visible value reaches that column of the rows that see it, and no other", () => {
    fc.assert(
      fc.property(problems, someOptions, (p, names) => {
        const { shape } = p.operands;
        const { heads, kvHeads, keyLength, valueDim } = shape;
        const v = p.operands.v.slice();
        const place = floor(p.random() * v.length);
        v[place] = NaN;
        const options = optionsFor(p, names);
        // Of the same operands without the NaN: it changes one column only.
        const reference = refer(p.operands, options);
        const output = run(lb, { ...p.operands, v }, options).output;
        const seen = visibility(options, shape);
        const reach = options.alibi ? 2 ** -23 * 2 * (shape.queryLength + keyLength) : 0;
        forEachRow(shape, (row, b, h) => {
          const kvHead = b * kvHeads + floor((h * kvHeads) / heads);
          const key = floor(place / valueDim) - kvHead * keyLength;
          const sees = key >= 0 && key < keyLength && seen[row * keyLength + key] === 1;
          const allowed = rowBound(reference, row) + reach * reference.largestValue[row]!;
          for (let d = 0; d < valueDim; d++) {
            const at = row * valueDim + d;
            const poisoned = sees && d === place % valueDim;
            if (isNotANumber(output[at]) !== poisoned)
              throw new Error(`output ${at} is ${output[at]}, NaN expected: ${poisoned}`);
            const error = abs(output[at]! - reference.output[at]!);
            if (!poisoned && error > allowed) throw new Error(`output ${at} is off by ${error}`);
          }
        });
      }),
    );
  });
});
