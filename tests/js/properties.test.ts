/** What holds for any shape and any company of options: invariances, and the same bits whenever promised. */
import { expect, test } from "@jest/globals";
import fc from "fast-check";
import type { Lookback, WeightsKind } from "lookback";
import { expectSameBits, holds, type Outcome, rowBound, run, worst } from "./accuracy-check.ts";
import {
  asked,
  expectSameOutcome,
  forEachRow,
  optionsFor,
  type Problem,
  problems,
  someOptions,
} from "./property-problems.ts";
import { visibility } from "./reference.ts";
import { type Operands, refer } from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

// Taken once: inside Jest's realm a look-up of a global is slow.
const { abs, exp, floor, log, max } = Math;
const { is } = Object;

describeVariants((lb: Lookback) => {
  test("R22, R1–R8, R17, R18: any company of options equals the float64 reference, in every layout", () => {
    fc.assert(
      fc.property(problems, someOptions, fc.constantFrom("4-D", "3-D"), (p, names, layout) => {
        const { shape } = p.operands;
        const options = optionsFor(p, names);
        const reference = refer(p.operands, options);
        const found = run(lb, p.operands, { ...options, ...asked }, layout);
        // What is added to scores rounds with them: a bias of up to 2, an ALiBi of up to 1.5 per place.
        const added = (options.bias ? 2 : 0) + (options.alibi ? 1.5 * (shape.queryLength + shape.keyLength + 4) : 0);
        const allowed = (row: number) => rowBound(reference, row) + 2 ** -23 * added * reference.largestValue[row]!;
        holds(
          worst(found.output, reference.output, (n) => allowed(floor(n / shape.valueDim))),
          `output with ${names}`,
        );
        const weightError = (row: number) => 2e-6 + 2 ** -22 * (reference.largestScore[row]! + added);
        holds(
          worst(found.weights!, reference.softmax, (n) => weightError(floor(n / shape.keyLength))),
          `weights with ${names}`,
        );
        const size = (row: number) => abs(reference.logSumExp[row]!);
        holds(
          worst(found.logSumExp!, reference.logSumExp, (row) => weightError(row) + 2 ** -23 * size(row)),
          `logSumExp with ${names}`,
        );
      }),
      { numRuns: 150 },
    );
  });

  test("R9, R18: softmax rows sum to 1 less the sink's share, or to 0 where nothing is visible", () => {
    fc.assert(
      fc.property(problems, someOptions, (p, names) => {
        const { shape } = p.operands;
        const options = optionsFor(p, names);
        const { weights, logSumExp } = run(lb, p.operands, { ...options, ...asked });
        const seen = visibility(options, shape);
        forEachRow(shape, (row, _b, h) => {
          let sum = 0;
          let visible = false;
          for (let at = row * shape.keyLength; at < (row + 1) * shape.keyLength; at++) {
            sum += weights![at]!;
            if (seen[at]) visible = true;
            else if (!is(weights![at], 0))
              throw new Error(`a key that row ${row} does not see has weight ${weights![at]}`);
          }
          const sink = options.sinks?.[h] ?? -Infinity;
          const share = visible ? exp(sink - logSumExp![row]!) : 1;
          const slack = 2e-6 + (sink === -Infinity ? 0 : 2e-6 * (abs(sink) + abs(logSumExp![row]!)));
          if (abs(sum - (1 - share)) > (visible ? slack : 0)) throw new Error(`row ${row} sums to ${sum}`);
        });
      }),
    );
  });

  test("R22: shifting a row's scores changes nothing but logSumExp", () => {
    fc.assert(
      fc.property(problems, someOptions, fc.constantFrom(-60, -1, 0.3, 7, 90), (p, names, shift) => {
        const { shape } = p.operands;
        // A sink has a score of its own, which does not move; a bias is what moves them.
        const plain = optionsFor(
          p,
          names.filter((name) => name !== "sinks" && name !== "bias"),
        );
        const bias = {
          data: new Float32Array(shape.queryLength).map((_, i) => shift * (1 + (i % 3))),
          dims: [shape.queryLength, 1],
        };
        const reference = refer(p.operands, plain);
        // An ALiBi of far keys makes a score whose rounding counts, too.
        const { alibi } = plain;
        const reach = alibi ? shape.queryLength + shape.keyLength + 4 : 0;
        const size = abs(shift * 3) + reach;
        const shifted = run(lb, p.operands, { ...plain, bias, logSumExp: true });
        const allowed = (row: number) => 2 * rowBound(reference, row) + 2 ** -22 * size * reference.largestValue[row]!;
        const before = run(lb, p.operands, { ...plain, logSumExp: true });
        holds(
          worst(shifted.output, before.output, (n) => allowed(floor(n / shape.valueDim))),
          "output",
        );
        forEachRow(shape, (row, _b, _h, i) => {
          const largest = reference.largestScore[row]! + size + log(shape.keyLength);
          const moved = before.logSumExp![row]! + bias.data[i]!;
          const found = shifted.logSumExp![row]!;
          if (found !== moved && !(abs(found - moved) <= 4e-6 + 2 ** -22 * largest)) {
            throw new Error(`logSumExp of row ${row} is ${found}, expected ${moved}`);
          }
        });
      }),
    );
  });

  test("R22: permuting keys together with their values changes nothing", () => {
    fc.assert(
      fc.property(problems, fc.subarray(["mask", "bias", "keyMask", "softcap", "sinks"] as const), (p, names) => {
        const { shape, q, k, v } = p.operands;
        const { keyLength, headDim, valueDim } = shape;
        const order = Array.from({ length: keyLength }, (_, j) => j);
        for (let j = keyLength - 1; j > 0; j--) {
          const other = floor(p.random() * (j + 1));
          [order[j], order[other]] = [order[other]!, order[j]!];
        }
        const permuteRows = (data: Float32Array, size: number) =>
          data.map((_, n) => {
            const key = floor(n / size);
            return data[(key - (key % keyLength) + order[key % keyLength]!) * size + (n % size)]!;
          });
        const permuteColumns = <A extends Uint8Array | Float32Array>({ data, dims }: { data: A; dims: number[] }) => ({
          data: data.map((_, n) => data[n - (n % keyLength) + order[n % keyLength]!]!) as A,
          dims,
        });
        const permuted: Operands = { shape, q, k: permuteRows(k, headDim), v: permuteRows(v, valueDim) };
        const options = optionsFor(p, names);
        const moved: Problem = {
          ...p,
          mask: permuteColumns(p.mask),
          bias: permuteColumns(p.bias),
          keyMask: permuteColumns(p.keyMask),
        };
        const reference = refer(p.operands, options);
        const actual = run(lb, permuted, optionsFor(moved, names));
        const allowed = (n: number) => 2 * rowBound(reference, floor(n / shape.valueDim));
        holds(worst(actual.output, run(lb, p.operands, options).output, allowed), "output");
      }),
    );
  });

  test("R12: asking for weights, logSumExp or summaries changes no bit of anything else", () => {
    const kinds: WeightsKind[] = ["scores", "capped", "masked", "softmax"];
    const some = fc.record(
      { topK: fc.integer({ min: 1, max: 12 }), entropy: fc.boolean(), distance: fc.boolean(), map: fc.constant(true) },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(problems, someOptions, fc.constantFrom(...kinds), some, (p, names, kind, { map, ...figures }) => {
        const { heads, queryLength, keyLength } = p.operands.shape;
        const options = { ...optionsFor(p, names), queryOffset: p.queryOffset };
        const cells = [max(1, queryLength >> 2), max(1, keyLength >> 1)] as [number, number];
        const summary = { ...figures, ...(map ? { map: cells } : {}) };
        const plain = run(lb, p.operands, options).output;
        const alone = run(lb, p.operands, { ...options, logSumExp: true });
        const full = run(lb, p.operands, { ...options, weights: kind });
        const part = { kind, heads: [heads - 1], queries: [queryLength >> 1, queryLength] as const };
        for (const weights of [kind, part]) {
          const both = run(lb, p.operands, { ...options, weights, logSumExp: true, summary });
          expectSameBits(both.output, plain, "output");
          expectSameBits(both.logSumExp, alone.logSumExp, "logSumExp");
          if (weights === kind) expectSameBits(both.weights, full.weights, "weights");
          expectSameBits(run(lb, p.operands, { ...options, weights }).output, plain, "output without logSumExp");
        }
        expectSameBits(full.output, plain, "output with weights");
        expectSameBits(alone.output, plain, "output with logSumExp");
        const summed = run(lb, p.operands, { ...options, summary, logSumExp: true });
        expectSameBits(summed.output, plain, "output with a summary");
        expectSameBits(summed.logSumExp, alone.logSumExp, "logSumExp with a summary");
      }),
    );
  });

  test("R15: a batch row alone, and a kv head with its query heads alone, have the bits they have together", () => {
    fc.assert(
      fc.property(problems, someOptions, (p, names) => {
        const { shape, q, k, v } = p.operands;
        const { batch, heads, kvHeads, queryLength, keyLength, headDim, valueDim } = shape;
        const group = heads / kvHeads;
        const slice = <A extends Float32Array | Uint8Array | number[]>(
          data: A,
          size: number,
          first: number,
          count: number,
        ) => data.slice(first * size, (first + count) * size) as A;
        // 'true' means slopes for this number of heads; alone they are given.
        const slopes = Array.from({ length: heads }, (_, h) => 2 ** -(h + 1));
        const together: Problem = { ...p, alibi: slopes };
        const expected = run(lb, p.operands, { ...optionsFor(together, names), ...asked });
        for (let b = 0; b < batch; b++) {
          for (let kvHead = 0; kvHead < kvHeads; kvHead++) {
            const head = b * heads + kvHead * group;
            const cut = <A extends Float32Array | Uint8Array>(operand: { data: A; dims: number[] }) =>
              operand.dims.length === 2
                ? operand
                : {
                    data: slice(operand.data, queryLength * keyLength, head, group),
                    dims: [1, group, queryLength, keyLength],
                  };
            const operands: Operands = {
              shape: { ...shape, batch: 1, heads: group, kvHeads: 1 },
              q: slice(q, queryLength * headDim, head, group),
              k: slice(k, keyLength * headDim, b * kvHeads + kvHead, 1),
              v: slice(v, keyLength * valueDim, b * kvHeads + kvHead, 1),
            };
            const alone: Problem = {
              ...p,
              queryOffset: [p.queryOffset[b]!],
              mask: cut(p.mask),
              bias: cut(p.bias),
              keyLengths: [p.keyLengths[b]!],
              keyMask: { data: slice(p.keyMask.data, keyLength, b, 1), dims: [1, keyLength] },
              alibi: slice(slopes, 1, kvHead * group, group),
              sinks: slice(p.sinks, 1, kvHead * group, group),
            };
            const found = run(lb, operands, { ...optionsFor(alone, names), ...asked });
            const part: Outcome = {
              ...expected,
              output: slice(expected.output, queryLength * valueDim, head, group),
              logSumExp: slice(expected.logSumExp!, queryLength, head, group),
              weights: slice(expected.weights!, queryLength * keyLength, head, group),
            };
            expectSameOutcome(found, part, `batch row ${b}, kv head ${kvHead} alone`);
          }
        }
      }),
    );
  });

  test("R15: the same call has the same bits again, whatever ran in between", () => {
    fc.assert(
      fc.property(problems, problems, someOptions, (p, other, names) => {
        const options = { ...optionsFor(p, names), ...asked };
        const first = run(lb, p.operands, options);
        const poisoned = { ...other.operands, k: other.operands.k.slice().fill(NaN) };
        run(lb, poisoned, { ...optionsFor(other, names), ...asked });
        expectSameOutcome(run(lb, p.operands, options), first, "again");
      }),
    );
    expect(lb.memory().allocations).toBe(0);
  });
});
