/** What holds for any shape and options: invariances, independence of masked places, and the same bits whenever promised. */
import { expect, test } from "@jest/globals";
import fc from "fast-check";
import type { AttentionOptions, Lookback, WeightsKind } from "lookback";
import { expectSameBits, holds, type Outcome, rowBound, run, worst } from "./accuracy-check.ts";
import { readBroadcast, type Shape, visibility } from "./reference.ts";
import { makeOperands, type Operands, randomFloats, randomSource, refer } from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

// Taken once: inside Jest's realm a look-up of a global is slow.
const { abs, floor } = Math;
const { is } = Object;
const isNotANumber = Number.isNaN;

// One seed for everyone, so that a run can be repeated; LOOKBACK_SEED tries another.
fc.configureGlobal({ seed: Number(process.env.LOOKBACK_SEED ?? 20), numRuns: 80 });

/** Lengths around tile and block edges are as likely as any other. */
const length = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constantFrom(63, 64, 65, 70, 127, 128, 129, 150));
const width = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(32, 33, 64));
const shapes: fc.Arbitrary<Shape> = fc
  .record({
    batch: fc.integer({ min: 1, max: 2 }),
    kvHeads: fc.integer({ min: 1, max: 2 }),
    group: fc.integer({ min: 1, max: 3 }),
    queryLength: length,
    keyLength: length,
    headDim: width,
    valueDim: width,
  })
  .map(({ group, ...shape }) => ({ ...shape, heads: shape.kvHeads * group }));

interface Problem {
  operands: Operands;
  /** What each part of the options says; a property takes the ones it is about. */
  causal: { causal: true; queryOffset: number[] };
  mask: NonNullable<AttentionOptions["mask"]> & { data: Uint8Array; dims: number[] };
  bias: { data: Float32Array; dims: number[] };
  random: () => number;
}

const density = fc.constantFrom(0.05, 0.5, 0.95);
const problems: fc.Arbitrary<Problem> = fc
  .record({
    shape: shapes,
    seed: fc.integer({ min: 0, max: 1e9 }),
    density,
    full: fc.boolean(),
    size: fc.constantFrom(0.5, 1, 4),
  })
  .map(({ shape, seed, density, full, size }) => {
    const { batch, heads, queryLength, keyLength } = shape;
    const operands = makeOperands(shape, seed, size);
    const random = randomSource(seed + 1);
    const dims = full ? [batch, heads, queryLength, keyLength] : [queryLength, keyLength];
    const count = dims.reduce((a, b) => a * b, 1);
    const mask = { data: Uint8Array.from({ length: count }, () => Number(random() < density)), dims };
    const bias = { data: randomFloats(random, count, 2).map((x) => (random() < density ? x : -Infinity)), dims };
    const offset = () => floor(random() * (keyLength + 4)) - 2;
    return {
      operands,
      mask,
      bias,
      random,
      causal: { causal: true, queryOffset: Array.from({ length: batch }, offset) },
    };
  });

const everything = (p: Problem): AttentionOptions & { mask: Problem["mask"]; bias: Problem["bias"] } => ({
  ...p.causal,
  mask: p.mask,
  bias: p.bias,
});

/** Every result that R8, R10 and R15 promise bits for. */
const asked = { weights: "softmax", logSumExp: true } as const;

function expectSameOutcome(actual: Outcome, expected: Outcome, what: string): void {
  expectSameBits(actual.output, expected.output, `${what}: output`);
  expectSameBits(actual.logSumExp, expected.logSumExp, `${what}: logSumExp`);
  expectSameBits(actual.weights, expected.weights, `${what}: weights`);
}

/** Calls `visit` with every [b, h, i] and its row number. */
function forEachRow(
  { batch, heads, queryLength }: Shape,
  visit: (row: number, b: number, h: number, i: number) => void,
) {
  for (let row = 0; row < batch * heads * queryLength; row++) {
    visit(row, floor(row / (heads * queryLength)), floor(row / queryLength) % heads, row % queryLength);
  }
}

describeVariants((lb: Lookback) => {
  test("R9: softmax rows sum to 1, or to 0 where nothing is visible", () => {
    fc.assert(
      fc.property(problems, (p) => {
        const { shape } = p.operands;
        const weights = run(lb, p.operands, { ...everything(p), ...asked }).weights!;
        const seen = visibility(everything(p), shape);
        forEachRow(shape, (row) => {
          let sum = 0;
          let visible = 0;
          for (let at = row * shape.keyLength; at < (row + 1) * shape.keyLength; at++) {
            sum += weights[at]!;
            if (seen[at]) visible = 1;
            else if (!is(weights[at], 0))
              throw new Error(`a key that row ${row} does not see has weight ${weights[at]}`);
          }
          if (abs(sum - visible) > 2e-6 * visible) throw new Error(`row ${row} sums to ${sum}`);
        });
      }),
    );
  });

  test("R22: shifting a row's scores changes nothing but logSumExp", () => {
    fc.assert(
      fc.property(problems, fc.constantFrom(-60, -1, 0.3, 7, 90), (p, shift) => {
        const { shape } = p.operands;
        const plain = { ...p.causal, mask: p.mask };
        const bias = {
          data: new Float32Array(shape.queryLength).map((_, i) => shift * (1 + (i % 3))),
          dims: [shape.queryLength, 1],
        };
        const reference = refer(p.operands, plain);
        const shifted = run(lb, p.operands, { ...plain, bias, logSumExp: true });
        const allowed = (row: number) =>
          2 * rowBound(reference, row) + 2 ** -23 * abs(shift * 3) * reference.largestValue[row]!;
        const before = run(lb, p.operands, { ...plain, logSumExp: true });
        holds(
          worst(shifted.output, before.output, (n) => allowed(floor(n / shape.valueDim))),
          "output",
        );
        forEachRow(shape, (row, _b, _h, i) => {
          const size = reference.largestScore[row]! + abs(shift * 3) + Math.log(shape.keyLength);
          const moved = before.logSumExp![row]! + bias.data[i]!;
          const found = shifted.logSumExp![row]!;
          if (found !== moved && !(abs(found - moved) <= 4e-6 + 2 ** -22 * size)) {
            throw new Error(`logSumExp of row ${row} is ${found}, expected ${moved}`);
          }
        });
      }),
    );
  });

  test("R22: permuting keys together with their values changes nothing", () => {
    fc.assert(
      fc.property(problems, (p) => {
        const { shape, q, k, v } = p.operands;
        const { batch, kvHeads, keyLength, headDim, valueDim } = shape;
        const order = Array.from({ length: keyLength }, (_, j) => j);
        for (let j = keyLength - 1; j > 0; j--) {
          const other = floor(p.random() * (j + 1));
          [order[j], order[other]] = [order[other]!, order[j]!];
        }
        const permuteRows = (data: Float32Array, rows: number, size: number) =>
          data
            .map(
              (_, n) =>
                data[
                  (floor(n / (keyLength * size)) * keyLength + order[floor(n / size) % keyLength]!) * size + (n % size)
                ]!,
            )
            .subarray(0, rows * keyLength * size);
        const permuteColumns = <A extends Uint8Array | Float32Array>(data: A) =>
          data.map((_, n) => data[n - (n % keyLength) + order[n % keyLength]!]!) as A;
        const heads = batch * kvHeads;
        const permuted: Operands = { shape, q, k: permuteRows(k, heads, headDim), v: permuteRows(v, heads, valueDim) };
        const options = { mask: p.mask, bias: p.bias };
        const reference = refer(p.operands, options);
        const actual = run(lb, permuted, {
          mask: { ...p.mask, data: permuteColumns(p.mask.data) },
          bias: { ...p.bias, data: permuteColumns(p.bias.data) },
        });
        const allowed = (n: number) => 2 * rowBound(reference, floor(n / shape.valueDim));
        holds(worst(actual.output, run(lb, p.operands, options).output, allowed), "output");
      }),
    );
  });

  test("R10: whatever a place holds, rows that do not see it keep their bits; NaN reaches every row that does", () => {
    fc.assert(
      fc.property(
        problems,
        fc.constantFrom(NaN, Infinity, -Infinity, 1e38, -3e38),
        fc.constantFrom("K", "V", "both"),
        (p, poison, where) => {
          const { shape, q } = p.operands;
          const { heads, kvHeads, keyLength, headDim, valueDim } = shape;
          const options = everything(p);
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
        },
      ),
      { numRuns: 200 },
    );
  });

  test("R10: what the bias holds at masked places has no influence", () => {
    fc.assert(
      fc.property(problems, fc.constantFrom(NaN, Infinity, 1e38, -3.4e38), (p, poison) => {
        const { shape } = p.operands;
        const { batch, heads, queryLength, keyLength } = shape;
        const dims = [batch, heads, queryLength, keyLength];
        const full = new Float32Array(batch * heads * queryLength * keyLength);
        const planted = full.slice();
        const seen = visibility({ ...p.causal, mask: p.mask }, shape);
        forEachRow(shape, (row, b, h, i) => {
          for (let j = 0; j < keyLength; j++) {
            const at = row * keyLength + j;
            full[at] = readBroadcast(p.bias, b, h, i, j);
            planted[at] = seen[at] ? full[at]! : poison;
          }
        });
        const call = (data: Float32Array) => run(lb, p.operands, { ...everything(p), ...asked, bias: { data, dims } });
        expectSameOutcome(call(planted), call(full), `a bias of ${poison} at masked places`);
      }),
    );
  });

  test("R10: one NaN in one column of a visible value reaches that column of the rows that see it, and no other", () => {
    fc.assert(
      fc.property(problems, (p) => {
        const { shape } = p.operands;
        const { heads, kvHeads, keyLength, valueDim } = shape;
        const v = p.operands.v.slice();
        const place = floor(p.random() * v.length);
        v[place] = NaN;
        const options = everything(p);
        const reference = refer(p.operands, options);
        const output = run(lb, { ...p.operands, v }, options).output;
        const seen = visibility(options, shape);
        forEachRow(shape, (row, b, h) => {
          const kvHead = b * kvHeads + floor((h * kvHeads) / heads);
          const key = floor(place / valueDim) - kvHead * keyLength;
          const sees = key >= 0 && key < keyLength && seen[row * keyLength + key] === 1;
          for (let d = 0; d < valueDim; d++) {
            const at = row * valueDim + d;
            const poisoned = sees && d === place % valueDim;
            if (isNotANumber(output[at]) !== poisoned)
              throw new Error(`output ${at} is ${output[at]}, NaN expected: ${poisoned}`);
            const error = abs(output[at]! - reference.output[at]!);
            if (!poisoned && error > rowBound(reference, row)) throw new Error(`output ${at} is off by ${error}`);
          }
        });
      }),
    );
  });

  test("R8: causal, mask and −∞ bias, in any company, equal the mask of their conjunction bit for bit", () => {
    fc.assert(
      fc.property(problems, fc.integer({ min: 1, max: 7 }), (p, subset) => {
        const { shape } = p.operands;
        const { batch, heads, queryLength, keyLength } = shape;
        const holes = { ...p.bias, data: p.bias.data.map((x) => (x === -Infinity ? x : 0)) };
        const options = {
          ...(subset & 1 ? p.causal : {}),
          ...(subset & 2 ? { mask: p.mask } : {}),
          ...(subset & 4 ? { bias: holes } : {}),
        };
        const mask = { data: visibility(options, shape), dims: [batch, heads, queryLength, keyLength] };
        expectSameOutcome(
          run(lb, p.operands, { ...options, ...asked }),
          run(lb, p.operands, { mask, ...asked }),
          "conjunction",
        );
      }),
      { numRuns: 150 },
    );
  });

  test("R12: asking for weights or logSumExp changes no bit of anything else", () => {
    const kinds: WeightsKind[] = ["scores", "capped", "masked", "softmax"];
    fc.assert(
      fc.property(
        problems,
        fc.constantFrom(...kinds),
        fc.option(fc.constantFrom(0.5, 20), { nil: undefined }),
        (p, kind, cap) => {
          const { heads, queryLength } = p.operands.shape;
          const options = { ...everything(p), ...(cap === undefined ? {} : { softcap: cap }) };
          const plain = run(lb, p.operands, options).output;
          const alone = run(lb, p.operands, { ...options, logSumExp: true });
          const part = { kind, heads: [heads - 1], queries: [queryLength >> 1, queryLength] as const };
          for (const weights of [kind, part]) {
            const both = run(lb, p.operands, { ...options, weights, logSumExp: true });
            expectSameBits(both.output, plain, "output");
            expectSameBits(both.logSumExp, alone.logSumExp, "logSumExp");
            expectSameBits(run(lb, p.operands, { ...options, weights }).output, plain, "output without logSumExp");
          }
          expectSameBits(alone.output, plain, "output with logSumExp");
        },
      ),
    );
  });

  test("R15: a batch row alone, and a kv head with its query heads alone, have the bits they have together", () => {
    fc.assert(
      fc.property(problems, (p) => {
        const { shape, q, k, v } = p.operands;
        const { batch, heads, kvHeads, queryLength, keyLength, headDim, valueDim } = shape;
        const group = heads / kvHeads;
        const slice = <A extends Float32Array | Uint8Array>(data: A, size: number, first: number, count: number) =>
          data.slice(first * size, (first + count) * size) as A;
        const together = run(lb, p.operands, { ...everything(p), ...asked });
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
            const alone: Operands = {
              shape: { ...shape, batch: 1, heads: group, kvHeads: 1 },
              q: slice(q, queryLength * headDim, head, group),
              k: slice(k, keyLength * headDim, b * kvHeads + kvHead, 1),
              v: slice(v, keyLength * valueDim, b * kvHeads + kvHead, 1),
            };
            const queryOffset = [p.causal.queryOffset[b]!];
            const found = run(lb, alone, { causal: true, queryOffset, mask: cut(p.mask), bias: cut(p.bias), ...asked });
            const expected: Outcome = {
              ...together,
              output: slice(together.output, queryLength * valueDim, head, group),
              logSumExp: slice(together.logSumExp!, queryLength, head, group),
              weights: slice(together.weights!, queryLength * keyLength, head, group),
            };
            expectSameOutcome(found, expected, `batch row ${b}, kv head ${kvHead} alone`);
          }
        }
      }),
    );
  });

  test("R15: the same call has the same bits again, whatever ran in between", () => {
    fc.assert(
      fc.property(problems, problems, (p, other) => {
        const first = run(lb, p.operands, { ...everything(p), ...asked });
        run(lb, { ...other.operands, k: other.operands.k.slice().fill(NaN) }, { ...everything(other), ...asked });
        expectSameOutcome(run(lb, p.operands, { ...everything(p), ...asked }), first, "again");
      }),
    );
    expect(lb.memory().allocations).toBe(0);
  });
});
