/** R13: summaries of the weights, against the reference and against the weights themselves. */
import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { createLookback, type Summary } from "lookback";
import { holds, run, worst } from "./accuracy-check.ts";
import { type Options, optionsFor, problems, someOptions } from "./property-problems.ts";
import { offsetOfRow, type ReferenceResult, type Shape } from "./reference.ts";
import { makeOperands, randomSource, refer } from "./reference-data.ts";
import { summarize, weightMap } from "./reference-summaries.ts";
import { describeVariants } from "./support/instances.ts";

// Taken once: inside Jest's realm a look-up of a global is slow.
const { abs, floor, log, max } = Math;
const ulp = 2 ** -23;

/** Softmax weights are relative to 1, and as exact as their scores: ALiBi's and a bias's part in them included. */
function weightError(reference: ReferenceResult, shape: Shape): number {
  let size = 0;
  for (let n = 0; n < reference.masked.length; n++) {
    if (reference.softmax[n]! > 0) size = max(size, abs(reference.masked[n]!));
  }
  for (let row = 0; row < shape.batch * shape.heads * shape.queryLength; row++) {
    size = max(size, reference.largestScore[row]!);
  }
  return 2e-6 + 2 * ulp * size;
}

function expectSummary(summary: Summary, reference: ReferenceResult, shape: Shape, options: Options, k: number): void {
  const { heads, queryLength, keyLength } = shape;
  const expected = summarize(reference.softmax, shape, options, k);
  const error = weightError(reference, shape);
  if (summary.topK) {
    const { indices, weights } = summary.topK;
    holds(
      worst(weights.data, expected.topK.weights, () => error),
      "topK weights",
    );
    indices.data.forEach((j, at) => {
      const row = floor(at / k);
      const wanted = expected.topK.weights[at]!;
      // A weight that float32 rounds to 0 may have no place.
      if (j === -1) {
        if (wanted > error) throw new Error(`place ${at % k} of row ${row} is empty; its weight is ${wanted}`);
        return;
      }
      // Keys of nearly the same weight may change places; their weights may not.
      const own = reference.softmax[row * keyLength + j]!;
      if (abs(own - wanted) > 2 * error) throw new Error(`place ${at % k} of row ${row}: key ${j} weighs ${own}`);
    });
  }
  if (summary.entropy) {
    const allowed = () => error * (4 + log(keyLength)) * 4;
    holds(worst(summary.entropy.data, expected.entropy, allowed), "entropy");
  }
  if (summary.distance) {
    const allowed = (row: number) => {
      const b = floor(row / (heads * queryLength));
      const position = (row % queryLength) + offsetOfRow(options, shape, b);
      return 4 * error * (1 + max(abs(position), abs(position - keyLength)));
    };
    holds(worst(summary.distance.data, expected.distance, allowed), "distance");
  }
  if (summary.map) {
    const [rows, columns] = summary.map.dims.slice(2) as [number, number];
    const map = weightMap(reference.softmax, shape, rows, columns);
    holds(
      worst(summary.map.data, map, () => 4 * error),
      "map",
    );
  }
}

describeVariants((lb) => {
  test("R13: topK, entropy, distance and a map of uneven cells are the reference's, with any options", () => {
    const wanted = fc.record({
      k: fc.constantFrom(1, 2, 3, 8, 33, 200),
      rows: fc.double({ min: 0, max: 1, noNaN: true }),
      columns: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(problems, someOptions, wanted, (p, names, { k, rows, columns }) => {
        const { shape } = p.operands;
        const { batch, heads, queryLength, keyLength } = shape;
        const options = { ...optionsFor(p, names), queryOffset: p.queryOffset };
        const map = [1 + floor(rows * (queryLength - 1)), 1 + floor(columns * (keyLength - 1))] as [number, number];
        const { raw } = run(lb, p.operands, { ...options, summary: { topK: k, entropy: true, distance: true, map } });
        const summary = raw.summary!;
        expect(summary.topK!.indices.dims).toEqual([batch, heads, queryLength, k]);
        expect(summary.topK!.weights.dims).toEqual([batch, heads, queryLength, k]);
        expect(summary.entropy!.dims).toEqual([batch, heads, queryLength]);
        expect(summary.distance!.dims).toEqual([batch, heads, queryLength]);
        expect(summary.map!.dims).toEqual([batch, heads, ...map]);
        expectSummary(summary, refer(p.operands, options), shape, options, k);
      }),
      { numRuns: 150 },
    );
  });

  test("R13: topK is the order of the returned weights: falling, then the lower key; −1 and 0 where there are no more", () => {
    fc.assert(
      fc.property(problems, someOptions, fc.constantFrom(1, 4, 9, 160), fc.boolean(), (p, names, k, tied) => {
        const { shape } = p.operands;
        const { keyLength, headDim } = shape;
        const operands = { ...p.operands, k: p.operands.k.slice() };
        if (tied) {
          // Every key is one of three, so that most weights are ties.
          const heads = operands.k.length / (keyLength * headDim);
          for (let key = 0; key < heads * keyLength; key++) {
            const first = floor(key / keyLength) * keyLength;
            const twin = first + (((key * 7) % 3) % keyLength);
            operands.k.copyWithin(key * headDim, twin * headDim, (twin + 1) * headDim);
          }
        }
        const options = optionsFor(p, names);
        const { raw, weights } = run(lb, operands, { ...options, summary: { topK: k }, weights: "softmax" });
        const found = raw.summary!.topK!;
        for (let row = 0; row < weights!.length / keyLength; row++) {
          const own = weights!.subarray(row * keyLength, (row + 1) * keyLength);
          const order = Array.from(own.keys()).sort((a, b) => own[b]! - own[a]! || a - b);
          for (let place = 0; place < k; place++) {
            const at = row * k + place;
            const j = found.indices.data[at]!;
            const weight = found.weights.data[at]!;
            const best = place < keyLength ? own[order[place]!]! : 0;
            if (
              j === -1
                ? weight !== 0 || best !== 0
                : weight !== own[j] || weight !== best || (best > 0 && j !== order[place])
            ) {
              throw new Error(
                `place ${place} of row ${row}: key ${j} with ${weight}, not ${order[place]} with ${best}`,
              );
            }
          }
        }
      }),
      { numRuns: 150 },
    );
  });

  test("R13, R9: a row that sees nothing has no keys, no entropy, no distance", () => {
    const operands = makeOperands({ queryLength: 3, keyLength: 70 }, 1);
    const summary = { topK: 2, entropy: true, distance: true, map: [3, 7] } as const;
    const { raw } = run(lb, operands, { causal: true, queryOffset: -2, summary });
    expect(Array.from(raw.summary!.topK!.indices.data)).toEqual([-1, -1, -1, -1, 0, -1]);
    expect(Array.from(raw.summary!.topK!.weights.data)).toEqual([0, 0, 0, 0, 1, 0]);
    expect(Array.from(raw.summary!.entropy!.data, (x) => x + 0)).toEqual([0, 0, 0]);
    expect(Array.from(raw.summary!.distance!.data)).toEqual([0, 0, 0]);
    expect(Array.from(raw.summary!.map!.data)).toEqual([...new Array(14).fill(0), 1, 0, 0, 0, 0, 0, 0]);
  });

  test("R13, R21: no queries give empty figures, no keys give empty places", () => {
    const none = run(lb, makeOperands({ queryLength: 0, keyLength: 4, heads: 2 }, 2), {
      summary: { topK: 3, entropy: true },
    });
    expect(none.raw.summary!.topK!.indices.dims).toEqual([1, 2, 0, 3]);
    expect(none.raw.summary!.entropy!.data).toHaveLength(0);
    const empty = run(lb, makeOperands({ queryLength: 2, keyLength: 0 }, 3), {
      summary: { topK: 2, entropy: true, distance: true },
    });
    expect(Array.from(empty.raw.summary!.topK!.indices.data)).toEqual([-1, -1, -1, -1]);
    expect([...empty.raw.summary!.entropy!.data, ...empty.raw.summary!.distance!.data]).toEqual([0, 0, 0, 0]);
  });

  test("R13, R16: with a cache, indices, distances and cells speak of its columns", () => {
    const shape = { batch: 2, heads: 4, kvHeads: 2, queryLength: 7, keyLength: 40, headDim: 8, valueDim: 5 };
    const operands = makeOperands(shape, 4, 2);
    const { q, k, v } = operands;
    const cache = lb.kvCache({ batch: 2, kvHeads: 2, headDim: 8, valueDim: 5, capacity: 40 });
    const part = (data: Float32Array, width: number, from: number, to: number) => ({
      data: Float32Array.from({ length: 4 * (to - from) * width }, (_, n) => {
        const [head, j, d] = [floor(n / ((to - from) * width)), floor(n / width) % (to - from), n % width];
        return data[(head * 40 + from + j) * width + d]!;
      }),
      dims: [2, 2, to - from, width],
    });
    cache.append(part(k, 8, 0, 33), part(v, 5, 0, 33));
    const request = { topK: 5, entropy: true, distance: true, map: [3, 9] } as const;
    const queries = { data: q, dims: [2, 4, 7, 8] };
    const { summary } = lb.attention(queries, part(k, 8, 33, 40), part(v, 5, 33, 40), {
      causal: true,
      cache,
      summary: request,
    });
    cache.dispose();
    const options = { causal: true, queryOffset: 33 };
    expectSummary(summary, refer(operands, options), operands.shape, options, 5);
  });

  test("R13, R23: 8192 tokens, 12 heads: top 8, entropy and a 64 × 64 map in memory far below L²", async () => {
    const [length, heads, headDim] = [8192, 12, 16];
    const fresh = await createLookback({ variant: lb.variant });
    const random = randomSource(8192);
    const tokens = () => ({
      data: Float32Array.from({ length: heads * length * headDim }, () => random() - 0.5),
      dims: [1, heads, length, headDim],
    });
    const start = fresh.memory().reserved;
    const { summary, output } = fresh.attention(tokens(), tokens(), tokens(), {
      causal: true,
      summary: { topK: 8, entropy: true, map: [64, 64] },
    });
    const { reserved } = fresh.memory();
    fresh.dispose();
    const square = heads * length * length * 4;
    const operands = 4 * heads * length * headDim * 4;
    const figures = heads * (length * (8 * 8 + 4) + 64 * 64 * 4);
    const bytes = (n: number) => n.toLocaleString("en");
    process.stdout.write(
      `L = 8192, 12 heads, ${lb.variant}: ${bytes(reserved)} bytes of wasm memory (${bytes(start)} at start); ` +
        `inputs, output and figures are ${bytes(operands + figures)}, the weights would be ${bytes(square)}\n`,
    );
    // What a call needs besides its operands and results is O(heads · tile): allow a few rows of each head.
    expect(reserved - start).toBeLessThan(1.3 * (operands + figures) + heads * 16 * length * 4);
    expect(reserved).toBeLessThan(square / 30);
    expect(summary.entropy.data.every((x) => x >= 0 && x <= log(length) + 1e-3)).toBe(true);
    expect(output.data.every(Number.isFinite)).toBe(true);
    // The first row sees itself only; every cell right of the diagonal is empty, every row of cells sums to 1.
    expect(Array.from(summary.topK.indices.data.subarray(0, 8))).toEqual([0, -1, -1, -1, -1, -1, -1, -1]);
    for (let row = 0; row < heads * 64; row++) {
      const cells = summary.map.data.subarray(row * 64, row * 64 + 64);
      expect(cells.subarray((row % 64) + 1).every((x) => x === 0)).toBe(true);
      expect(cells.reduce((sum, x) => sum + x, 0)).toBeCloseTo(1, 4);
    }
  });
});
