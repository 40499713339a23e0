/** R17: rotary positions in every scaling against float64, their tables, and that scores see differences of positions only. */
import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { type RotaryScaling, sinusoidal } from "lookback";
import { expectSameBits, holds, worst } from "./accuracy-check.ts";
import { foldHeads, randomFloats, randomSource } from "./reference-data.ts";
import { type ReferenceRotary, referenceRotary, rotaryAmplitude, rotaryFrequencies } from "./reference-rotary.ts";
import { describeVariants } from "./support/instances.ts";

const scalings: (RotaryScaling | undefined)[] = [
  undefined,
  { type: "linear", factor: 4 },
  { type: "linear", factor: 0.5 },
  { type: "ntk", factor: 8 },
  { type: "llama3", factor: 8, originalLength: 8192 },
  { type: "llama3", factor: 32, originalLength: 64, lowFrequencyFactor: 1, highFrequencyFactor: 4 },
  { type: "llama3", factor: 2, originalLength: 100, lowFrequencyFactor: 0.5, highFrequencyFactor: 8 },
  { type: "yarn", factor: 4, originalLength: 4096 },
  { type: "yarn", factor: 16, originalLength: 128, betaFast: 16, betaSlow: 2 },
  { type: "yarn", factor: 40, originalLength: 4096, attentionFactor: 1 },
];

/** The reference wants every number said that has a default. */
const told = (scaling: RotaryScaling | undefined): ReferenceRotary["scaling"] =>
  scaling?.type === "llama3" ? { lowFrequencyFactor: 1, highFrequencyFactor: 4, ...scaling } : scaling;

const cases = fc
  .record({
    batch: fc.integer({ min: 1, max: 3 }),
    heads: fc.integer({ min: 1, max: 4 }),
    length: fc.integer({ min: 0, max: 20 }),
    half: fc.constantFrom(1, 2, 3, 8, 16, 32, 64),
    more: fc.constantFrom(0, 0, 1, 5, 32),
    base: fc.constantFrom(undefined, 10000, 500000, 100),
    interleaved: fc.boolean(),
    scaling: fc.constantFrom(...scalings),
    where: fc.constantFrom("default", "offset", "offsets", "positions", "rows", "bigint"),
    layout: fc.constantFrom("4-D", "3-D"),
    seed: fc.nat(1e6),
  })
  // NTK's exponent d/(d − 2) needs more than one pair.
  .filter(({ half, scaling }) => half > 1 || scaling?.type !== "ntk");

describeVariants((lb) => {
  test("R17: rotary positions equal the float64 reference: pairs, base, partial dims, positions per row, all scalings", () => {
    fc.assert(
      fc.property(cases, ({ batch, heads, length, half, more, base, interleaved, scaling, where, layout, seed }) => {
        const random = randomSource(seed);
        const width = 2 * half + more;
        const x = randomFloats(random, batch * heads * length * width);
        const far = () => Math.floor(random() * 3000) - 500;
        const offsets = Array.from({ length: batch }, far);
        const shared = Array.from({ length }, far);
        const rows = Array.from({ length: batch * length }, far);
        const positionAt = (b: number, l: number) => {
          if (where === "offset") return offsets[0]! + l;
          if (where === "offsets") return offsets[b]! + l;
          if (where === "positions") return shared[l]!;
          return where === "default" ? l : rows[b * length + l]!;
        };
        const positions = {
          default: {},
          offset: { offset: offsets[0]! },
          offsets: { offset: offsets },
          positions: { positions: shared },
          rows: { positions: { data: Int32Array.from(rows), dims: [batch, length] } },
          bigint: { positions: { data: BigInt64Array.from(rows, BigInt), dims: [batch, length] } },
        }[where];
        const rotary = { interleaved, ...(base ? { base } : {}), ...(scaling ? { scaling } : {}) };
        const folded = layout === "3-D";
        const found = lb.rotary(
          {
            data: folded ? foldHeads(x, batch, heads, length, width) : x,
            dims: folded ? [batch, length, heads * width] : [batch, heads, length, width],
          },
          { ...rotary, ...(more > 0 ? { dims: 2 * half } : {}), ...(folded ? { heads } : {}), ...positions },
        );
        const options: ReferenceRotary = {
          dims: 2 * half,
          interleaved,
          ...(base ? { base } : {}),
          scaling: told(scaling),
        };
        const each = Array.from({ length: batch * heads * length }, (_, row) =>
          positionAt(Math.floor(row / (heads * length)), row % length),
        );
        const expected = referenceRotary(x, width, each, options);
        const wanted = folded ? foldHeads(expected, batch, heads, length, width) : expected;
        // Angles are computed in float64 and rounded once as cos and sin.
        const allowed = () => 4e-7 * rotaryAmplitude(options);
        holds(worst(found.data, wanted, allowed), `${JSON.stringify({ scaling, where, width })}`);
        for (let row = 0; row < each.length && more > 0 && !folded; row++) {
          const [from, to] = [row * width + 2 * half, (row + 1) * width];
          expectSameBits(found.data.subarray(from, to), x.subarray(from, to), "elements beyond dims");
        }
      }),
      { numRuns: 300 },
    );
  });

  test("R17: tables of cosines and sines, by position or as they are, turn like base and scaling", () => {
    const random = randomSource(5);
    const [batch, heads, length, half] = [2, 3, 5, 4];
    const x = { data: randomFloats(random, batch * heads * length * 8), dims: [batch, heads, length, 8] };
    const theta = rotaryFrequencies({ dims: 8 });
    const table = (f: (angle: number) => number, rows: number[]) =>
      Float32Array.from({ length: rows.length * half }, (_, n) => f(rows[Math.floor(n / half)]! * theta[n % half]!));
    const known = Array.from({ length: 50 }, (_, p) => p);
    const [cos, sin] = [Math.cos, Math.sin].map((f) => ({ data: table(f, known), dims: [50, half] }));
    const rows = Array.from({ length: batch * length }, () => Math.floor(random() * 50));
    const positions = { data: rows, dims: [batch, length] };
    for (const interleaved of [false, true]) {
      const expected = lb.rotary(x, { positions, interleaved }).data;
      expectSameBits(lb.rotary(x, { cos: cos!, sin: sin!, positions, interleaved }).data, expected, "by position");
      const [ownCos, ownSin] = [Math.cos, Math.sin].map((f) => ({ data: table(f, rows), dims: [batch, length, half] }));
      expectSameBits(lb.rotary(x, { cos: ownCos!, sin: ownSin!, interleaved }).data, expected, "as they are");
    }
    expectSameBits(lb.rotary(x, { cos: cos!, sin: sin! }).data, lb.rotary(x).data, "slots are positions");
  });

  test("R17: scores of turned queries and keys depend on differences of positions only", () => {
    fc.assert(
      fc.property(
        fc.nat(1e6),
        fc.integer({ min: -1000, max: 20000 }),
        fc.constantFrom(...scalings),
        fc.boolean(),
        (seed, shift, scaling, interleaved) => {
          const random = randomSource(seed);
          const dims = [1, 2, 9, 16];
          const [q, k] = [0, 1].map(() => ({ data: randomFloats(random, 2 * 9 * 16), dims }));
          const scores = (offset: number) => {
            const turn = (x: typeof q) => lb.rotary(x!, { offset, interleaved, ...(scaling ? { scaling } : {}) });
            return lb.attention(turn(q), turn(k), k!, { weights: "scores" }).weights.data;
          };
          const amplitude = rotaryAmplitude({ dims: 16, scaling: told(scaling) });
          holds(
            worst(scores(shift), scores(0), () => 2e-5 * amplitude ** 2),
            `shifted by ${shift}`,
          );
        },
      ),
    );
  });

  test("R17: a turn keeps lengths, and turning back gives what was there", () => {
    const random = randomSource(6);
    const x = { data: randomFloats(random, 4 * 32), dims: [1, 1, 4, 32] };
    const turned = lb.rotary(x, { offset: 77 });
    const norm = (data: Float32Array, row: number) => Math.hypot(...data.subarray(row * 32, row * 32 + 32));
    for (let row = 0; row < 4; row++) expect(norm(turned.data, row)).toBeCloseTo(norm(x.data, row), 5);
    const back = lb.rotary(turned, { positions: [-77, -78, -79, -80] });
    holds(
      worst(back.data, x.data, () => 5e-7),
      "turned back",
    );
    expectSameBits(lb.rotary(x, { positions: [0, 0, 0, 0] }).data, x.data, "position 0");
  });
});

test("R17: sinusoidal positions are the published ones", () => {
  const { data, dims } = sinusoidal(6, 8);
  expect(dims).toEqual([6, 8]);
  const expected = Array.from({ length: 48 }, (_, n) => {
    const [position, d] = [Math.floor(n / 8), n % 8];
    const angle = position / 10000 ** ((2 * Math.floor(d / 2)) / 8);
    return d % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
  });
  holds(
    worst(data, expected, () => 2 ** -24),
    "sin and cos by turns",
  );
  const halves = sinusoidal(2, 4, { interleaved: false, offset: 3, base: 100 });
  const angle = (position: number) => [position, position / 10];
  const wanted = [3, 4].flatMap((p) => [...angle(p).map(Math.sin), ...angle(p).map(Math.cos)]);
  holds(
    worst(halves.data, wanted, () => 2 ** -24),
    "halves",
  );
});
