/** R16: rolling caches, which keep what windows see: positions stay absolute, nothing is gone before every query of a chunk is served. */
import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { expectSameBits, holds, rowBound, run, worst } from "./accuracy-check.ts";
import { attendBoth, cacheConfig, cacheProblems, drawChunk } from "./cache-problems.ts";
import type { Options } from "./property-problems.ts";
import { ReferenceCache } from "./reference-cache.ts";
import { randomSource, refer } from "./reference-data.ts";
import { caught, expectError } from "./support/helpers.ts";
import { describeVariants } from "./support/instances.ts";

const { floor, max } = Math;

describeVariants((lb) => {
  test("R16, R7: a rolling cache answers as one that forgets nothing, chunks longer than it included", () => {
    const windows = fc.record({
      capacity: fc.constantFrom(1, 2, 7, 32, 40),
      reach: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(cacheProblems, windows, fc.boolean(), fc.boolean(), (problem, { capacity, reach }, masked, alibi) => {
        const { batch, kvHeads, headDim, valueDim } = problem;
        const random = randomSource(problem.seed);
        const left = floor(reach * (capacity - 1));
        const cache = lb.kvCache({ ...cacheConfig(problem), capacity, rolling: true });
        const model = new ReferenceCache(cacheConfig(problem));
        const firsts = () => model.lengths.map((n) => max(0, n - capacity));
        problem.chunks.forEach((chunk, n) => {
          const first = cache.firstPosition;
          expect(first).toBe(Math.min(...firsts()));
          const columns = max(0, ...model.lengths) + chunk.count;
          const seen = Uint8Array.from({ length: chunk.queryLength * columns }, () => Number(random() < 0.7));
          const options = { window: { left, right: 0 }, ...(alibi ? { alibi: true } : {}), logSumExp: true } as const;
          const full = { data: seen, dims: [chunk.queryLength, columns] };
          // The mask's column 0 is the cache's first position.
          const own = {
            data: Uint8Array.from({ length: chunk.queryLength * (columns - first) }, (_, at) => {
              const width = columns - first;
              return seen[floor(at / width) * columns + first + (at % width)]!;
            }),
            dims: [chunk.queryLength, columns - first],
          };
          const drawn = drawChunk(problem, chunk, random);
          const step = attendBoth(lb, cache, model, problem, drawn, {
            ...options,
            ...(masked ? { mask: own } : {}),
          } as Options);
          const { shape } = step.operands;
          const reference = refer(step.operands, { ...step.options, ...(masked ? { mask: full } : {}) });
          const far = alibi ? 2 ** -22 * (columns + 4) : 0;
          const allowed = (row: number) => rowBound(reference, row) + (1e-5 + far) * reference.largestValue[row]!;
          holds(
            worst(step.actual.output, reference.output, (at) => allowed(floor(at / shape.valueDim))),
            `output of chunk ${n}, capacity ${capacity}, left ${left}`,
          );
          expect(cache.lengths).toEqual(model.lengths);
        });
        // What is left are the last tokens of each row.
        const { keys, values } = cache.read();
        const first = cache.firstPosition;
        expect(keys.dims).toEqual([batch, kvHeads, cache.length - first, headDim]);
        const kept = new ReferenceCache(cacheConfig(problem));
        const absent = {
          key: new Float32Array(kvHeads * headDim),
          value: new Float32Array(kvHeads * valueDim),
          real: 0,
        };
        kept.rows = model.rows.map((row, b) => row.map((token, p) => (p < firsts()[b]! ? absent : token)));
        const table = kept.table(cache.length - first, first);
        expectSameBits(keys, table.k, "keys");
        expectSameBits(values, table.v, "values");
        const copy = lb.kvCache({ ...cacheConfig(problem), capacity, rolling: true });
        copy.load(cache.save());
        expectSameBits(copy.read().keys, keys, "keys saved and loaded");
        expectSameBits(copy.clone().read().values, values, "values of a clone");
        expect([copy.firstPosition, ...copy.lengths]).toEqual([first, ...cache.lengths]);
        copy.dispose();
        cache.dispose();
      }),
      { numRuns: 150 },
    );
  });

  test("R16: decoding far beyond the capacity keeps the memory, the bits of a full cache and weights of its columns", () => {
    const shape = { batch: 1, heads: 2, kvHeads: 1, headDim: 8, valueDim: 4 };
    const rolling = lb.kvCache({ ...cacheConfig(shape), capacity: 10, rolling: true });
    const full = lb.kvCache({ ...cacheConfig(shape), capacity: 100 });
    const { bytes } = lb.memory();
    const random = randomSource(9);
    for (let position = 0; position < 100; position++) {
      const draw = (count: number) => Float32Array.from({ length: count }, () => random() - 0.5);
      const operands = { shape: { ...shape, queryLength: 1, keyLength: 1 }, q: draw(16), k: draw(8), v: draw(4) };
      const options = { causal: true, window: { left: 9, right: 0 }, weights: "softmax", logSumExp: true } as const;
      const first = rolling.firstPosition;
      const actual = run(lb, operands, { ...options, cache: rolling });
      const expected = run(lb, operands, { ...options, cache: full });
      holds(
        worst(actual.output, expected.output, () => 2e-6),
        `output at ${position}`,
      );
      expect(first).toBe(max(0, position - 10));
      expect(actual.raw.weights!.dims).toEqual([1, 2, 1, position + 1 - first]);
      const columns = position + 1;
      for (const h of [0, 1]) {
        const own = actual.weights!.subarray(h * (columns - first), (h + 1) * (columns - first));
        const all = expected.weights!.subarray(h * columns + first, (h + 1) * columns);
        holds(
          worst(own, all, () => 2e-6),
          `weights at ${position}`,
        );
      }
    }
    expect(lb.memory().bytes).toBe(bytes);
    expectError(
      caught(() => rolling.truncate(85)),
      "evicted",
      "85",
      "90",
    );
    rolling.truncate(97);
    expect([rolling.length, rolling.firstPosition]).toEqual([97, 90]);
    for (const cache of [rolling, full]) cache.dispose();
  });

  test("R16, R10: what was evicted has no influence, NaN included", () => {
    const shape = { batch: 1, heads: 1, kvHeads: 1, headDim: 4, valueDim: 4 };
    const caches = [0, 1].map(() => lb.kvCache({ ...cacheConfig(shape), capacity: 5, rolling: true }));
    const random = randomSource(10);
    for (let position = 0; position < 30; position++) {
      const token = Float32Array.from({ length: 4 }, () => random() - 0.5);
      const outputs = caches.map((cache, n) => {
        // One of the two has a NaN at every tenth position; the window sees it for three more steps.
        const poisoned = n === 1 && position % 10 === 0 ? new Float32Array(4).fill(NaN) : token;
        const operands = { shape: { ...shape, queryLength: 1, keyLength: 1 }, q: token, k: poisoned, v: poisoned };
        return run(lb, operands, { causal: true, window: { left: 3, right: 0 }, cache, logSumExp: true });
      });
      if (position % 10 <= 3) expect(Array.from(outputs[1]!.output).every(Number.isNaN)).toBe(true);
      else {
        expectSameBits(outputs[1]!.output, outputs[0]!.output, `output at ${position}`);
        expectSameBits(outputs[1]!.logSumExp, outputs[0]!.logSumExp, `logSumExp at ${position}`);
      }
    }
    for (const cache of caches) cache.dispose();
  });

  test("R16: a rolling cache without a window that fits it, and a full one, are errors that show the capacity", () => {
    const shape = { batch: 2, heads: 1, kvHeads: 1, headDim: 4, valueDim: 4 };
    const operands = {
      shape: { ...shape, queryLength: 3, keyLength: 3 },
      q: new Float32Array(24),
      k: new Float32Array(24),
      v: new Float32Array(24),
    };
    const rolling = lb.kvCache({ ...cacheConfig(shape), capacity: 8, rolling: true });
    for (const window of [undefined, { left: 8, right: 0 }, { left: Infinity, right: 0 }]) {
      const call = () => run(lb, operands, { causal: true, cache: rolling, ...(window ? { window } : {}) });
      expectError(caught(call), "rolling-window", "8", "window.left");
    }
    expect(rolling.lengths).toEqual([0, 0]);
    const full = lb.kvCache({ ...cacheConfig(shape), capacity: 8 });
    run(lb, operands, { cache: full });
    run(lb, operands, { cache: full, keyLengths: [1, 3] });
    expectError(
      caught(() => run(lb, operands, { cache: full })),
      "cache-full",
      "8",
      "row 1",
      "6",
    );
    expect(full.lengths).toEqual([4, 6]);
    run(lb, operands, { cache: full, keyLengths: [3, 2] });
    expect(full.lengths).toEqual([7, 8]);
    for (const cache of [rolling, full]) cache.dispose();
  });
});
