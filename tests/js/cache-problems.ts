/** Random lives of a cache: chunks of tokens with their queries, rows of different length, and what happens in between. */
import fc from "fast-check";
import type { KvCache, Lookback } from "lookback";
import { type Layout, type Outcome, run } from "./accuracy-check.ts";
import type { Options } from "./property-problems.ts";
import type { ReferenceOptions } from "./reference.ts";
import { type CacheShape, ReferenceCache, type Tokens } from "./reference-cache.ts";
import { type Operands, randomFloats, randomSource } from "./reference-data.ts";

// Taken once: inside Jest's realm a look-up of a global is slow.
const { floor } = Math;

fc.configureGlobal({ seed: Number(process.env.LOOKBACK_SEED ?? 20), numRuns: 60 });

export interface CacheProblem extends CacheShape {
  heads: number;
  seed: number;
  /** What each chunk brings: `count` tokens, and how many queries look then. */
  chunks: Chunk[];
  layout: "4-D" | "3-D";
}

export interface Chunk {
  count: number;
  /** Valid tokens of each row: a part of count, drawn per row. */
  ragged: boolean;
  /** 1 = a real token, drawn per token. */
  holed: boolean;
  queryLength: number;
}

const chunk: fc.Arbitrary<Chunk> = fc
  .record({
    count: fc.oneof(fc.constant(1), fc.integer({ min: 0, max: 9 }), fc.constantFrom(31, 32, 33, 70)),
    ragged: fc.boolean(),
    holed: fc.boolean(),
    others: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }),
  })
  .map(({ others, ...rest }) => ({ ...rest, queryLength: others ?? rest.count }));

export const cacheProblems: fc.Arbitrary<CacheProblem> = fc
  .record({
    batch: fc.integer({ min: 1, max: 3 }),
    kvHeads: fc.integer({ min: 1, max: 2 }),
    group: fc.integer({ min: 1, max: 3 }),
    headDim: fc.constantFrom(1, 5, 8, 16, 33),
    valueDim: fc.constantFrom(1, 4, 7, 16, 40),
    seed: fc.integer({ min: 0, max: 1e6 }),
    chunks: fc.array(chunk, { minLength: 1, maxLength: 6 }),
    layout: fc.constantFrom("4-D", "3-D"),
  })
  .map(({ group, ...rest }) => ({ ...rest, heads: rest.kvHeads * group }));

/** Draws a chunk's tokens and queries. */
export function drawChunk(problem: CacheProblem, { count, ragged, holed, queryLength }: Chunk, random: () => number) {
  const { batch, kvHeads, heads, headDim, valueDim } = problem;
  const tokens: Tokens = {
    k: randomFloats(random, batch * kvHeads * count * headDim),
    v: randomFloats(random, batch * kvHeads * count * valueDim),
    count,
  };
  if (ragged) tokens.keyLengths = Array.from({ length: batch }, () => floor(random() * (count + 1)));
  if (holed) {
    const data = Uint8Array.from({ length: batch * count }, () => Number(random() < 0.7));
    tokens.keyMask = { data, dims: [batch, count] };
  }
  return { tokens, q: randomFloats(random, batch * heads * queryLength * headDim), queryLength };
}

export const capacityOf = ({ chunks }: CacheProblem) =>
  Math.max(1, ...[chunks.reduce((sum, { count }) => sum + count, 0)]);

export const cacheConfig = ({ batch, kvHeads, headDim, valueDim }: CacheShape) => ({
  batch,
  kvHeads,
  headDim,
  valueDim,
});

export interface Step {
  actual: Outcome;
  /** The same call without a cache. */
  operands: Operands;
  options: ReferenceOptions;
}

/** Calls `lb.attention` with the cache, and the model beside it. */
export function attendBoth(
  lb: Lookback,
  cache: KvCache,
  model: ReferenceCache,
  problem: CacheProblem,
  { tokens, q, queryLength }: ReturnType<typeof drawChunk>,
  options: Options = {},
): Step {
  const { heads, kvHeads, headDim, valueDim, batch, layout } = problem;
  const uncached = model.attend(q, heads, queryLength, tokens);
  const { keyLengths, keyMask } = tokens;
  const shape = { batch, heads, kvHeads, queryLength, keyLength: tokens.count, headDim, valueDim };
  const call = {
    ...options,
    ...(keyLengths ? { keyLengths } : {}),
    ...(keyMask ? { keyMask } : {}),
    cache,
  } as Options;
  const actual = run(lb, { shape, q, k: tokens.k, v: tokens.v }, call, layout as Layout);
  return { actual, operands: uncached.operands, options: { ...options, ...uncached.options } };
}

/** Lives the problem's chunks through; `visit` sees each call beside the one without a cache. */
export function live(
  lb: Lookback,
  problem: CacheProblem,
  options: (step: number, columns: number, random: () => number) => Options,
  visit: (step: Step, n: number, cache: KvCache, model: ReferenceCache) => void,
  config: { dtype?: "f32" | "int8"; capacity?: number } = {},
): void {
  const random = randomSource(problem.seed);
  const cache = lb.kvCache({ ...cacheConfig(problem), capacity: capacityOf(problem), ...config });
  try {
    const model = new ReferenceCache(cacheConfig(problem));
    problem.chunks.forEach((chunk, n) => {
      const drawn = drawChunk(problem, chunk, random);
      const columns = Math.max(0, ...model.lengths) + chunk.count;
      visit(attendBoth(lb, cache, model, problem, drawn, options(n, columns, random)), n, cache, model);
    });
  } finally {
    cache.dispose();
  }
}
