/** Random problems of the property tests: shapes around tile and block edges, and every option that an attention call has. */
import fc from "fast-check";
import type { AttentionOptions } from "lookback";
import { expectSameBits, type Outcome } from "./accuracy-check.ts";
import type { ReferenceOptions, Shape } from "./reference.ts";
import { makeOperands, type Operands, randomFloats, randomSource } from "./reference-data.ts";

// Taken once: inside Jest's realm a look-up of a global is slow.
const { floor } = Math;

// One seed for everyone, so that a run can be repeated; LOOKBACK_SEED tries another.
fc.configureGlobal({ seed: Number(process.env.LOOKBACK_SEED ?? 20), numRuns: 80 });

/** Lengths around tile and block edges are as likely as any other. */
const length = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constantFrom(63, 64, 65, 70, 127, 128, 129, 150));
const width = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(32, 33, 64));
export const shapes: fc.Arbitrary<Shape> = fc
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

/** What hides keys, one option each. */
export const RESTRICTIONS = ["causal", "window", "mask", "keyLengths", "keyMask", "holes"] as const;
export type Restriction = (typeof RESTRICTIONS)[number];
/** What changes scores and sums, one option each. */
export const ADDITIONS = ["softcap", "alibi", "sinks"] as const;
export type Addition = (typeof ADDITIONS)[number];

type Flags = NonNullable<AttentionOptions["mask"]> & { data: Uint8Array; dims: number[] };

export interface Problem {
  operands: Operands;
  queryOffset: number[];
  mask: Flags;
  /** Finite, and −∞ at some places. */
  bias: { data: Float32Array; dims: number[] };
  window: { left: number; right: number };
  keyLengths: number[];
  keyMask: Flags;
  alibi: true | number[];
  sinks: number[];
  softcap: number;
  random: () => number;
}

export const problems: fc.Arbitrary<Problem> = fc
  .record({
    shape: shapes,
    seed: fc.integer({ min: 0, max: 1e9 }),
    density: fc.constantFrom(0.05, 0.5, 0.95),
    full: fc.boolean(),
    size: fc.constantFrom(0.5, 1, 4),
  })
  .map(({ shape, seed, density, full, size }) => {
    const { batch, heads, queryLength, keyLength } = shape;
    const operands = makeOperands(shape, seed, size);
    const random = randomSource(seed + 1);
    const upTo = (largest: number) => floor(random() * (largest + 1));
    const perRow = (make: () => number) => Array.from({ length: batch }, make);
    const flags = (dims: number[]): Flags => ({
      data: Uint8Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => Number(random() < density)),
      dims,
    });
    const dims = full ? [batch, heads, queryLength, keyLength] : [queryLength, keyLength];
    const mask = flags(dims);
    const bias = {
      data: randomFloats(random, mask.data.length, 2).map((x) => (random() < density ? x : -Infinity)),
      dims,
    };
    const side = () => (random() < 0.25 ? Infinity : upTo(random() < 0.5 ? 4 : keyLength));
    return {
      // A counterexample is told by what makes it, not by its thousands of numbers.
      [fc.toStringMethod]: () => JSON.stringify({ shape, seed, density, full, size }),
      operands,
      mask,
      bias,
      queryOffset: perRow(() => upTo(keyLength + 4) - 2),
      window: { left: side(), right: side() },
      keyLengths: perRow(() => upTo(keyLength)),
      keyMask: flags([batch, keyLength]),
      alibi: random() < 0.5 ? true : Array.from({ length: heads }, () => 2 * random() - 0.5),
      sinks: Array.from({ length: heads }, () => 8 * random() - 4),
      softcap: random() < 0.5 ? 0.7 : 20,
      random,
    };
  });

/** The same bias without its numbers: 0 or −∞. */
export const holesOf = ({ bias }: Problem) => ({ ...bias, data: bias.data.map((x) => (x === -Infinity ? x : 0)) });

export type Options = AttentionOptions & ReferenceOptions;

/** The options of a problem that are named; the offset is there whenever something speaks of positions. */
export function optionsFor(p: Problem, names: readonly (Restriction | Addition | "bias")[]): Options {
  const has = (name: (typeof names)[number]) => names.includes(name);
  return {
    ...(has("causal") || has("window") || has("alibi") ? { queryOffset: p.queryOffset } : {}),
    ...(has("causal") ? { causal: true } : {}),
    ...(has("window") ? { window: p.window } : {}),
    ...(has("mask") ? { mask: p.mask } : {}),
    ...(has("keyLengths") ? { keyLengths: p.keyLengths } : {}),
    ...(has("keyMask") ? { keyMask: p.keyMask } : {}),
    ...(has("bias") ? { bias: p.bias } : has("holes") ? { bias: holesOf(p) } : {}),
    ...(has("softcap") ? { softcap: p.softcap } : {}),
    ...(has("alibi") ? { alibi: p.alibi } : {}),
    ...(has("sinks") ? { sinks: p.sinks } : {}),
  } as Options;
}

export const someRestrictions = fc.subarray([...RESTRICTIONS]);
export const someAdditions = fc.subarray([...ADDITIONS]);
/** Any company of options, each of them often alone. */
export const someOptions = fc.subarray([
  ...RESTRICTIONS.filter((name) => name !== "holes"),
  "bias",
  ...ADDITIONS,
] as const);

/** Every result that R8, R10 and R15 promise bits for. */
export const asked = { weights: "softmax", logSumExp: true } as const;

export function expectSameOutcome(actual: Outcome, expected: Outcome, what: string): void {
  expectSameBits(actual.output, expected.output, `${what}: output`);
  expectSameBits(actual.logSumExp, expected.logSumExp, `${what}: logSumExp`);
  expectSameBits(actual.weights, expected.weights, `${what}: weights`);
}

/** Calls `visit` with every [b, h, i] and its row number. */
export function forEachRow(
  { batch, heads, queryLength }: Shape,
  visit: (row: number, b: number, h: number, i: number) => void,
) {
  for (let row = 0; row < batch * heads * queryLength; row++) {
    visit(row, floor(row / (heads * queryLength)), floor(row / queryLength) % heads, row % queryLength);
  }
}
