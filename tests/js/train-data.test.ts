/** What a trainer draws, cuts and schedules: all of it by seed and place alone. */
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { coveringWindows, encodeDocuments, fingerprint, sampleWindows, windowBatch } from "../../dist/train/data.js";
import { cosineOfTurn, drawBelow, hash32, logarithm, normals } from "../../dist/train/random.js";
import { learningRateOf } from "../../dist/train/schedule.js";
import { readText } from "../../dist/train/text.js";

const LINES = Array.from({ length: 100 }, (_, n) => `line ${n}\n`).join("");

describe("the text that is kept back", () => {
  test("is the last lines, about the share asked for, and nothing of it is trained on", () => {
    fc.assert(
      fc.property(fc.double({ min: 0.01, max: 0.9, noNaN: true }), (share) => {
        const { train, validation } = readText(LINES, share, "text");
        expect(train.length + validation.length).toBe(2);
        expect(train[0]! + validation[0]!).toBe(LINES);
        expect(validation[0]).toMatch(/^line/);
        expect(Math.abs(validation[0]!.length - share * LINES.length)).toBeLessThan("line 10\n".length);
      }),
    );
  });

  test("is nothing at a share of 0", () => {
    expect(readText(LINES, 0, "text")).toEqual({ train: [LINES], validation: [], separated: false });
  });

  test("begins at a character where there is no line", () => {
    for (let length = 4; length < 40; length++) {
      const text = "🎉".repeat(length);
      const { train, validation } = readText(text, 0.3, "text");
      expect(train[0]! + validation[0]!).toBe(text);
      expect(validation[0]).toMatch(/^(🎉)+$/u);
    }
  });

  test("is whole documents where their border is near, and lines of one where it is not", () => {
    const poems = Array.from({ length: 50 }, (_, n) => `poem ${n}\nends\n`);
    const many = readText(poems, 0.1, "text");
    expect([...many.train, ...many.validation]).toEqual(poems);
    expect(many.validation.length).toBe(5);
    const books = readText([LINES, LINES], 0.1, "text");
    expect(books.train[0]).toBe(LINES);
    expect(books.train[1]! + books.validation[0]!).toBe(LINES);
    expect(books.validation[0]).toMatch(/^line 8\d/);
  });

  test("half a surrogate pair becomes U+FFFD", () => {
    expect(readText("a\uD83Db", 0, "text").train).toEqual(["a\uFFFDb"]);
  });
});

test("documents stand between end tokens", () => {
  const tokenizer = { encode: (text: string) => Array.from(text, (one) => one.charCodeAt(0)) } as never;
  const { ids, characters } = encodeDocuments(["ab", "c"], tokenizer, 9);
  expect([Array.from(ids), characters]).toEqual([[9, 97, 98, 9, 99, 9], 3]);
  expect(Array.from(encodeDocuments(["ab"], tokenizer, undefined).ids)).toEqual([97, 98]);
});

describe("windows", () => {
  const part = { ids: Int32Array.from({ length: 100 }, (_, n) => n), characters: 100 };
  const shape = { batch: 4, length: 8 };

  test("are drawn by seed, step, micro-batch and row, from the whole text", () => {
    const starts = new Set<number>();
    for (let step = 1; step <= 300; step++) {
      const { tokens, targets } = sampleWindows(part, shape, { seed: 3, step, micro: 0 });
      for (let at = 0; at < 32; at++) {
        expect(tokens[at]).toBe(tokens[at - (at % 8)]! + (at % 8));
        expect(targets[at]).toBe(tokens[at]! + 1);
        if (at % 8 === 0) starts.add(tokens[at]!);
      }
    }
    expect(starts.size).toBe(92);
    const drawn = (place: object) => sampleWindows(part, shape, { seed: 3, step: 1, micro: 0, ...place }).tokens;
    expect(drawn({})).toEqual(drawn({}));
    for (const other of [{ seed: 4 }, { seed: 3 + 2 ** 32 }, { step: 2 }, { micro: 1 }])
      expect(drawn(other)).not.toEqual(drawn({}));
  });

  test("that cover a text count each prediction once", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 100 }),
        fc.integer({ min: 1, max: 9 }),
        fc.nat(8),
        (tokens, length, less) => {
          const stride = Math.max(1, length - less);
          const ids = part.ids.subarray(0, tokens);
          const windows = coveringWindows(tokens, length, stride, Number.POSITIVE_INFINITY);
          const counted: number[] = [];
          for (const window of windows) {
            const batch = windowBatch(ids, [window], { batch: 2, length });
            batch.targets.forEach((target, at) => {
              if (target < 0) return;
              expect(batch.tokens[at]).toBe(target - 1);
              counted.push(target);
            });
          }
          expect(counted).toEqual(Array.from({ length: tokens - 1 }, (_, n) => n + 1));
        },
      ),
    );
  });

  test("some of them are spread evenly", () => {
    const starts = coveringWindows(101, 5, 5, 4).map(({ start }) => start);
    expect(starts).toEqual([0, 25, 50, 75]);
  });
});

test("a fingerprint tells texts apart, and where the parts meet", () => {
  const of = (...parts: number[][]) => fingerprint(...parts.map((part) => Int32Array.from(part)));
  const long = Array.from({ length: 1000 }, (_, n) => n % 50);
  const seen = [of([1, 2], [3]), of([1], [2, 3]), of([1, 2, 3], []), of([]), of(long), of([...long.slice(0, -1), 7])];
  expect(new Set(seen).size).toBe(seen.length);
  for (const print of seen) expect(print).toMatch(/^[0-9a-f]{16}$/);
  expect(of(long)).toBe(of(long));
});

describe("random numbers", () => {
  test("MurmurHash3 is the published one", () => {
    // Of the test vectors of its author's code: whole words, seed 0.
    expect(hash32()).toBe(0);
    expect(hash32(0)).toBe(0x2362f9de);
    expect(hash32(0xffffffff | 0)).toBe(0x76293b50);
    expect(hash32(0x87654321 | 0)).toBe(0xf55b516b);
  });

  test("draws are even", () => {
    const counts = new Array(10).fill(0);
    for (let n = 0; n < 20000; n++) counts[drawBelow(10, 5, n)]++;
    // χ² with 9 degrees of freedom is below 27.9 in 999 of 1000 cases; these draws are always the same.
    expect(counts.reduce((sum, count) => sum + (count - 2000) ** 2 / 2000, 0)).toBeLessThan(27.9);
  });

  test("normal draws have the moments of the normal distribution", () => {
    const next = normals(7);
    const values = Array.from({ length: 100000 }, next);
    const mean = (power: number) => values.reduce((sum, value) => sum + value ** power, 0) / values.length;
    expect(Math.abs(mean(1))).toBeLessThan(0.01);
    expect(Math.abs(mean(2) - 1)).toBeLessThan(0.015);
    expect(Math.abs(mean(3))).toBeLessThan(0.03);
    expect(Math.abs(mean(4) - 3)).toBeLessThan(0.1);
  });

  test("logarithm and cosine are those of Math, to the last bits", () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-300, max: 1e300, noNaN: true }), (x) => {
        expect(Math.abs(logarithm(x) - Math.log(x))).toBeLessThanOrEqual(4e-16 * Math.max(1, Math.abs(Math.log(x))));
      }),
    );
    for (let n = 0; n <= 1000; n++)
      expect(Math.abs(cosineOfTurn(n / 1000) - Math.cos((Math.PI * n) / 1000))).toBeLessThan(1e-15);
    expect([cosineOfTurn(0), cosineOfTurn(1)]).toEqual([1, -1]);
  });
});

describe("the learning rate", () => {
  const schedule = { learningRate: 1, minLearningRate: 0.1, warmup: 10, steps: 110 };

  test("grows evenly, then falls along half a cosine to its least", () => {
    for (let step = 1; step <= 10; step++) expect(learningRateOf(step, schedule)).toBeCloseTo(step / 10, 15);
    for (let step = 11; step <= 110; step++)
      expect(learningRateOf(step, schedule)).toBeCloseTo(
        0.1 + 0.45 * (1 + Math.cos((Math.PI * (step - 10)) / 100)),
        14,
      );
    expect(learningRateOf(110, schedule)).toBe(0.1);
    expect(learningRateOf(1000, schedule)).toBe(0.1);
  });

  test("begins at its highest without a warm-up, and may be all warm-up", () => {
    expect(learningRateOf(1, { ...schedule, warmup: 0, steps: 1e9 })).toBeCloseTo(1, 12);
    expect(learningRateOf(5, { ...schedule, steps: 5 })).toBe(0.5);
  });
});
