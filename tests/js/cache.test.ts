/** R16: append-then-attend is attention without a cache, for any chunking, rows of different length, and any life of the cache. */
import { expect, test } from "@jest/globals";
import fc from "fast-check";
import type { WeightsKind } from "lookback";
import { expectSameBits, expectWeights, holds, rowBound, run, worst } from "./accuracy-check.ts";
import { attendBoth, cacheConfig, cacheProblems, capacityOf, drawChunk, live, type Step } from "./cache-problems.ts";
import type { Options } from "./property-problems.ts";
import type { ReferenceResult } from "./reference.ts";
import { ReferenceCache } from "./reference-cache.ts";
import { randomFloats, randomSource, refer } from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

// Taken once: inside Jest's realm a look-up of a global is slow.
const { abs, floor, log } = Math;

/** R16's bound: R22's and 1e-5·max|V| more, and the rounding of far ALiBi scores. */
function expectStep({ actual, operands, options }: Step, note = "", kind?: WeightsKind): ReferenceResult {
  const { shape } = operands;
  const reference = refer(operands, options);
  const far = options.alibi || options.bias ? 2 ** -22 * (shape.keyLength + shape.queryLength + 4) : 0;
  const allowed = (row: number) => rowBound(reference, row) + (1e-5 + far) * reference.largestValue[row]!;
  holds(
    worst(actual.output, reference.output, (n) => allowed(floor(n / shape.valueDim))),
    `output ${note}`,
  );
  const size = (row: number) =>
    reference.largestScore[row]! + abs(reference.logSumExp[row]!) + log(shape.keyLength + 1);
  holds(
    worst(actual.logSumExp ?? [], reference.logSumExp, (row) => 1e-5 + far + 2 ** -23 * size(row)),
    `logSumExp ${note}`,
  );
  if (kind && !far) expectWeights(actual.weights, kind, reference, shape, note);
  return reference;
}

describeVariants((lb) => {
  test("R16: any chunking, decode included, with rows of different length and tokens that are none", () => {
    fc.assert(
      fc.property(cacheProblems, fc.boolean(), (problem, causal) => {
        live(
          lb,
          problem,
          () => ({ causal, logSumExp: true, weights: "softmax" }) as Options,
          (step, n, cache, model) => {
            expectStep(step, `of chunk ${n}`, "softmax");
            expect(cache.lengths).toEqual(model.lengths);
            expect(cache.length).toBe(Math.max(...model.lengths));
            expect(cache.firstPosition).toBe(0);
            expect(step.actual.raw.weights!.dims.at(-1)).toBe(step.operands.shape.keyLength);
          },
        );
      }),
      { numRuns: 120 },
    );
  });

  test("R16, R8: mask, bias, window, ALiBi, sinks and softcap speak of stored and new columns", () => {
    const some = fc.subarray(["causal", "window", "mask", "bias", "alibi", "sinks", "softcap"] as const);
    fc.assert(
      fc.property(
        cacheProblems,
        some,
        fc.constantFrom<WeightsKind>("scores", "capped", "masked", "softmax"),
        (problem, names, kind) => {
          const { batch, heads, chunks } = problem;
          const options = (n: number, columns: number, random: () => number) => {
            const dims = [batch, heads, chunks[n]!.queryLength, columns];
            const count = dims.reduce((a, b) => a * b, 1);
            return {
              ...(names.includes("causal") ? { causal: true } : {}),
              ...(names.includes("window")
                ? { window: { left: floor(random() * 20), right: floor(random() * 5) } }
                : {}),
              ...(names.includes("mask")
                ? { mask: { data: Uint8Array.from({ length: count }, () => Number(random() < 0.8)), dims } }
                : {}),
              ...(names.includes("bias") ? { bias: { data: randomFloats(random, count), dims } } : {}),
              ...(names.includes("alibi") ? { alibi: true } : {}),
              ...(names.includes("sinks") ? { sinks: Array.from({ length: heads }, () => random() * 2) } : {}),
              ...(names.includes("softcap") ? { softcap: 2 } : {}),
              logSumExp: true,
              weights: kind,
            } as Options;
          };
          // 'scores' and 'capped' cover columns without a token, too, of which nothing is said.
          const checked = kind === "masked" || kind === "softmax" ? kind : undefined;
          live(lb, problem, options, (step, n) => expectStep(step, `of chunk ${n}`, checked));
        },
      ),
      { numRuns: 120 },
    );
  });

  test("R16: append and attend apart is attend with new tokens, bit for bit; k = v = null appends nothing", () => {
    fc.assert(
      fc.property(cacheProblems, (problem) => {
        const { batch, heads, kvHeads, headDim, valueDim } = problem;
        const random = randomSource(problem.seed);
        const config = { ...cacheConfig(problem), capacity: capacityOf(problem) };
        const cache = lb.kvCache(config);
        const model = new ReferenceCache(cacheConfig(problem));
        for (const chunk of problem.chunks) {
          const { tokens, q, queryLength } = drawChunk(problem, chunk, random);
          const { k, v, count, keyLengths, keyMask } = tokens;
          const fold = { ...(keyLengths ? { keyLengths } : {}), ...(keyMask ? { keyMask } : {}) };
          cache.append(
            { data: k, dims: [batch, kvHeads, count, headDim] },
            { data: v, dims: [batch, kvHeads, count, valueDim] },
            fold,
          );
          model.append(tokens);
          const { keys, values } = cache.read();
          const table = model.table();
          expectSameBits(keys, table.k, "keys read back");
          expectSameBits(values, table.v, "values read back");
          const queries = { data: q, dims: [batch, heads, queryLength, headDim] };
          const { output, logSumExp } = lb.attention(queries, null, null, { cache, logSumExp: true });
          const { operands, options } = model.attend(q, heads, queryLength);
          const outcome = { output: output.data, logSumExp: logSumExp.data, weights: undefined, raw: { output } };
          expectStep({ actual: outcome as never, operands, options }, "of stored tokens only");
          expect(cache.lengths).toEqual(model.lengths);
        }
        cache.dispose();
      }),
    );
  });

  test("R16: truncate and go on, clone, save and load: each goes on as the tokens it holds do, bit for bit", () => {
    const events = fc.array(fc.constantFrom("truncate", "clone", "save", "reset", "none"), {
      minLength: 6,
      maxLength: 6,
    });
    fc.assert(
      fc.property(cacheProblems, events, (problem, happening) => {
        const random = randomSource(problem.seed);
        const config = { ...cacheConfig(problem), capacity: capacityOf(problem) };
        let cache = lb.kvCache(config);
        let model = new ReferenceCache(cacheConfig(problem));
        const others: { cache: ReturnType<typeof lb.kvCache>; model: ReferenceCache }[] = [];
        problem.chunks.forEach((chunk, n) => {
          const drawn = drawChunk(problem, chunk, random);
          const step = attendBoth(lb, cache, model, problem, drawn, {
            causal: true,
            logSumExp: true,
          } as Options);
          expectStep(step, `of chunk ${n} after ${happening.slice(0, n)}`);
          const event = happening[n];
          if (event === "truncate") {
            const length = floor(random() * (cache.length + 2));
            cache.truncate(length);
            model.truncate(length);
          } else if (event === "reset") {
            cache.reset();
            model.truncate(0);
          } else if (event === "clone") {
            others.push({ cache, model });
            cache = cache.clone();
            model = model.clone();
          } else if (event === "save") {
            const loaded = lb.kvCache(config);
            loaded.load(cache.save());
            others.push({ cache, model });
            cache = loaded;
            model = model.clone();
          }
          expect(cache.lengths).toEqual(model.lengths);
        });
        // Those left behind have kept what they held.
        for (const left of [...others, { cache, model }]) {
          const { keys, values } = left.cache.read();
          const table = left.model.table();
          expectSameBits(keys, table.k, "keys");
          expectSameBits(values, table.v, "values");
          left.cache.dispose();
        }
      }),
    );
    expect(lb.memory().allocations).toBe(0);
  });

  test("R15: a row alone has the bits it has in a batch, its cache's length and chunks what they are", () => {
    fc.assert(
      fc.property(
        cacheProblems.filter(({ batch }) => batch > 1),
        fc.subarray(["window", "alibi", "sinks", "softcap"] as const),
        fc.constantFrom("f32", "int8", "rolling"),
        (problem, names, kind) => {
          const { batch, heads, kvHeads, headDim, valueDim, chunks } = problem;
          const options = {
            causal: true,
            ...(names.includes("window") || kind === "rolling" ? { window: { left: 6, right: 0 } } : {}),
            ...(names.includes("alibi") ? { alibi: true } : {}),
            ...(names.includes("sinks") ? { sinks: new Array<number>(heads).fill(0.5) } : {}),
            ...(names.includes("softcap") ? { softcap: 3 } : {}),
            logSumExp: true,
          } as Options;
          const one = { ...problem, batch: 1 };
          const random = randomSource(problem.seed);
          const rolling = kind === "rolling";
          const config = {
            capacity: rolling ? 9 : capacityOf(problem),
            rolling,
            dtype: kind === "int8" ? "int8" : "f32",
          } as const;
          const cache = lb.kvCache({ ...cacheConfig(problem), ...config });
          const model = new ReferenceCache(cacheConfig(problem));
          const alone = Array.from({ length: batch }, () => lb.kvCache({ ...cacheConfig(one), ...config }));
          for (const chunk of chunks) {
            const drawn = drawChunk(problem, chunk, random);
            const { tokens, q, queryLength } = drawn;
            const { actual } = attendBoth(lb, cache, model, problem, drawn, options);
            const part = (data: Float32Array, size: number, b: number) => data.slice(b * size, (b + 1) * size);
            alone.forEach((own, b) => {
              const count = chunk.count;
              const shape = { ...one, queryLength, keyLength: count };
              const { keyLengths, keyMask } = tokens;
              const operands = {
                shape,
                q: part(q, heads * queryLength * headDim, b),
                k: part(tokens.k, kvHeads * count * headDim, b),
                v: part(tokens.v, kvHeads * count * valueDim, b),
              };
              const found = run(
                lb,
                operands,
                {
                  ...(options as Options),
                  ...(keyLengths ? { keyLengths: [keyLengths[b]!] } : {}),
                  ...(keyMask
                    ? { keyMask: { data: keyMask.data.slice(b * count, (b + 1) * count), dims: [1, count] } }
                    : {}),
                  cache: own,
                },
                problem.layout,
              );
              const note = `row ${b} alone`;
              expectSameBits(found.output, part(actual.output, heads * queryLength * valueDim, b), `${note}: output`);
              expectSameBits(found.logSumExp, part(actual.logSumExp!, heads * queryLength, b), `${note}: logSumExp`);
            });
          }
          for (const each of [cache, ...alone]) each.dispose();
        },
      ),
    );
  });

  test("R10: slots behind a row's length, tokens that are none and what was truncated have no influence", () => {
    fc.assert(
      fc.property(cacheProblems, fc.constantFrom(NaN, Infinity, -3e38), (problem, poison) => {
        const { batch, kvHeads, headDim, valueDim } = problem;
        const options = { causal: true, logSumExp: true } as Options;
        const capacity = capacityOf(problem) + 3;
        const [clean, dirty] = [0, 1].map(() => lb.kvCache({ ...cacheConfig(problem), capacity }));
        const models = [0, 1].map(() => new ReferenceCache(cacheConfig(problem)));
        const random = randomSource(problem.seed);
        for (const chunk of problem.chunks) {
          const drawn = drawChunk(problem, chunk, random);
          const { tokens } = drawn;
          const { count, keyLengths, keyMask } = tokens;
          const [k, v] = [tokens.k.slice(), tokens.v.slice()];
          for (let key = 0; key < batch * kvHeads * count; key++) {
            const [b, t] = [floor(key / (kvHeads * count)), key % count];
            const real = t < (keyLengths?.[b] ?? count) && (keyMask?.data[b * count + t] ?? 1) === 1;
            if (real) continue;
            k.fill(poison, key * headDim, (key + 1) * headDim);
            v.fill(poison, key * valueDim, (key + 1) * valueDim);
          }
          const expected = attendBoth(lb, clean!, models[0]!, problem, drawn, options).actual;
          const poisoned = { ...drawn, tokens: { ...tokens, k, v } };
          const actual = attendBoth(lb, dirty!, models[1]!, problem, poisoned, options).actual;
          expectSameBits(actual.output, expected.output, "output");
          expectSameBits(actual.logSumExp, expected.logSumExp, "logSumExp");
          // Tokens that come and go leave their numbers in the slots.
          const length = dirty!.length;
          const full = (width: number) => ({
            data: new Float32Array(batch * kvHeads * 3 * width).fill(poison),
            dims: [batch, kvHeads, 3, width],
          });
          const lengths = dirty!.lengths;
          if (lengths.every((n) => n === length)) {
            dirty!.append(full(headDim), full(valueDim));
            dirty!.truncate(length);
          }
        }
        for (const cache of [clean, dirty]) cache!.dispose();
      }),
    );
  });
});
