/** R16: caches of int8: one scale per key row, value row and head; new keys are attended as stored; the error measured and stated. */
import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { expectSameBits, holds, rowBound, run, worst } from "./accuracy-check.ts";
import { attendBoth, cacheConfig, cacheProblems, capacityOf, drawChunk, live } from "./cache-problems.ts";
import type { Options } from "./property-problems.ts";
import { ReferenceCache } from "./reference-cache.ts";
import { randomSource, refer } from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

const { abs, cos, floor, log, max, sqrt } = Math;

/** An element is off by at most half of its row's scale, max|x| / 127, and the roundings of scale and product. */
const rowStep = (row: Float32Array) => row.reduce((most, x) => max(most, abs(x)), 0) * (0.5 / 127 + 2 ** -22);

describeVariants((lb) => {
  test("R16: an int8 element is off by at most half of its row's max|x| / 127; rows of 0 stay 0", () => {
    fc.assert(
      fc.property(cacheProblems, fc.constantFrom(1e-30, 1e-3, 1, 1e6, 1e30), (problem, size) => {
        const random = randomSource(problem.seed);
        const cache = lb.kvCache({ ...cacheConfig(problem), capacity: capacityOf(problem), dtype: "int8" });
        const { batch, kvHeads, headDim, valueDim, chunks } = problem;
        const count = chunks[0]!.count;
        const { tokens } = drawChunk(problem, { count, ragged: false, holed: false, queryLength: 0 }, random);
        const [k, v] = [tokens.k, tokens.v].map((data) => data.map((x) => x * size)) as [Float32Array, Float32Array];
        k.fill(0, 0, headDim);
        cache.append(
          { data: k, dims: [batch, kvHeads, count, headDim] },
          { data: v, dims: [batch, kvHeads, count, valueDim] },
        );
        const { keys, values } = cache.read();
        for (const [own, stored, width] of [
          [k, keys.data, headDim],
          [v, values.data, valueDim],
        ] as const) {
          for (let row = 0; row < own.length / width; row++) {
            const part = own.subarray(row * width, (row + 1) * width);
            const step = rowStep(part);
            holds(
              worst(stored.subarray(row * width, (row + 1) * width), part, () => step),
              `row ${row}`,
            );
          }
        }
        cache.dispose();
      }),
    );
  });

  test("R16: with int8, every key is attended as stored, the new ones too", () => {
    fc.assert(
      fc.property(cacheProblems, (problem) => {
        live(
          lb,
          problem,
          () => ({ causal: true, logSumExp: true }) as Options,
          ({ actual, operands, options }, n, cache) => {
            // What is stored after the call, this call's keys included, is what the call has seen.
            const { keys, values } = cache.read();
            const { shape } = operands;
            const heads = shape.batch * shape.kvHeads;
            const spread = (data: Float32Array, width: number) => {
              const wide = new Float32Array(heads * shape.keyLength * width);
              const size = data.length / heads;
              for (let head = 0; head < heads; head++)
                wide.set(data.subarray(head * size, (head + 1) * size), head * shape.keyLength * width);
              return wide;
            };
            const stored = {
              shape,
              q: operands.q,
              k: spread(keys.data, shape.headDim),
              v: spread(values.data, shape.valueDim),
            };
            const reference = refer(stored, options);
            // A single query is rounded to 16 bits, and so is each weight of a block of keys.
            const allowed = (row: number) => rowBound(reference, row) + 1e-4 * reference.largestValue[row]!;
            holds(
              worst(actual.output, reference.output, (at) => allowed(floor(at / shape.valueDim))),
              `output of chunk ${n}`,
            );
          },
          { dtype: "int8" },
        );
      }),
      { numRuns: 80 },
    );
  });

  test("R16, R10: a NaN or ±∞ in an int8 key or value reaches the rows that see it, and changes no bit of others", () => {
    const shape = { batch: 1, heads: 1, kvHeads: 1, headDim: 8, valueDim: 4 };
    const random = randomSource(5);
    const draw = (count: number) => Float32Array.from({ length: count }, () => random() - 0.5);
    const [q, k, v] = [draw(6 * 8), draw(6 * 8), draw(6 * 4)];
    const call = (keys: Float32Array, values: Float32Array) => {
      const cache = lb.kvCache({ ...cacheConfig(shape), capacity: 6, dtype: "int8" });
      const operands = { shape: { ...shape, queryLength: 6, keyLength: 6 }, q, k: keys, v: values };
      const { output } = run(lb, operands, { causal: true, cache });
      cache.dispose();
      return output;
    };
    const clean = call(k, v);
    for (const poison of [NaN, Infinity, -Infinity]) {
      for (const where of ["key", "value"]) {
        const [keys, values] = [k.slice(), v.slice()];
        if (where === "key") keys[3 * 8 + 2] = poison;
        else values[3 * 4 + 1] = poison;
        const output = call(keys, values);
        expectSameBits(output.subarray(0, 12), clean.subarray(0, 12), `rows before the ${where} of ${poison}`);
        for (let i = 3; i < 6; i++) {
          const row = Array.from(output.subarray(i * 4, i * 4 + 4));
          const seen = where === "key" ? row : row.slice(1, 2);
          if (!seen.every((x) => !Number.isFinite(x))) throw new Error(`row ${i} sees ${poison}, output ${row}`);
        }
      }
    }
  });

  test("R16: int8 caches clone, save, load, truncate and roll bit for bit", () => {
    const problem = {
      batch: 2,
      heads: 4,
      kvHeads: 2,
      headDim: 16,
      valueDim: 8,
      seed: 3,
      chunks: [],
      layout: "4-D" as const,
    };
    const config = { ...cacheConfig(problem), capacity: 12, dtype: "int8", rolling: true } as const;
    const cache = lb.kvCache(config);
    const model = new ReferenceCache(cacheConfig(problem));
    const random = randomSource(3);
    const options = { causal: true, window: { left: 7, right: 0 } } as Options;
    const chunk = (count: number) =>
      drawChunk(problem, { count, ragged: true, holed: false, queryLength: count }, random);
    for (const count of [5, 20, 1, 3]) attendBoth(lb, cache, model, problem, chunk(count), options);
    const copy = cache.clone();
    const loaded = lb.kvCache(config);
    loaded.load(cache.save());
    const next = chunk(2);
    const outputs = [cache, copy, loaded].map(
      (each) => attendBoth(lb, each, model.clone(), problem, next, options).actual.output,
    );
    expectSameBits(outputs[1], outputs[0]!, "clone");
    expectSameBits(outputs[2], outputs[0]!, "saved and loaded");
    const bytes = (dtype: "f32" | "int8") => {
      const before = lb.memory().bytes;
      const own = lb.kvCache({ batch: 1, kvHeads: 8, headDim: 64, capacity: 1024, dtype });
      const { bytes } = lb.memory();
      own.dispose();
      return bytes - before;
    };
    expect(bytes("int8") / bytes("f32")).toBeLessThan(0.28);
    for (const each of [cache, copy, loaded]) each.dispose();
  });

  test("R16: the error of int8 on normal numbers, 64 wide, 512 keys: below 0.15 % of the largest value", () => {
    const shape = { batch: 1, heads: 8, kvHeads: 8, queryLength: 64, keyLength: 512, headDim: 64, valueDim: 64 };
    const random = randomSource(8);
    // Box and Muller's normal numbers.
    const normal = (count: number) =>
      Float32Array.from({ length: count }, () => sqrt(-2 * log(1 - random())) * cos(2 * Math.PI * random()));
    const [q, k, v] = [8 * 64 * 64, 8 * 512 * 64, 8 * 512 * 64].map(normal) as [
      Float32Array,
      Float32Array,
      Float32Array,
    ];
    const outputs = (["f32", "int8"] as const).map((dtype) => {
      const cache = lb.kvCache({ batch: 1, kvHeads: 8, headDim: 64, capacity: 512, dtype });
      cache.append({ data: k, dims: [1, 8, 512, 64] }, { data: v, dims: [1, 8, 512, 64] });
      const { output } = lb.attention({ data: q, dims: [1, 8, 64, 64] }, null, null, { cache });
      cache.dispose();
      return output.data;
    });
    expectSameBits(outputs[0], run(lb, { shape, q, k, v }).output, "f32 is attention without a cache");
    const difference = outputs[0]!.map((x, n) => x - outputs[1]![n]!);
    const square = (data: Float32Array) => data.reduce((sum, x) => sum + x * x, 0);
    const largest = v.reduce((most, x) => max(most, abs(x)), 0);
    const most = difference.reduce((m, x) => max(m, abs(x)), 0) / largest;
    const relative = sqrt(square(difference) / square(outputs[0]!));
    process.stdout.write(
      `int8 cache, ${lb.variant}: off by at most ${(100 * most).toFixed(2)} % of max|V|, ${(100 * relative).toFixed(2)} % of the output's norm\n`,
    );
    expect(most).toBeLessThan(0.0015);
    expect(relative).toBeLessThan(0.015);
    expect(most).toBeGreaterThan(1e-5);
  });
});
