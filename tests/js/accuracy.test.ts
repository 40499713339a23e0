/** R22 and its neighbours: every result against the float64 reference, over every tail length and up to large scores and sizes. */
import { expect, test } from "@jest/globals";
import { createLookback, type WeightsKind } from "lookback";
import { check, expectLogSumExp, expectOutput, expectSameBits, holds, rowBound, run, worst } from "./accuracy-check.ts";
import { makeOperands, makeShape, refer } from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

/** Four rows or vectors of eight, plus every tail; then primes on both sides of larger blocks. */
const TAILS = Array.from({ length: 4 * 8 + 4 }, (_, n) => n);
const PRIMES = [61, 67, 127, 131, 257];
const WIDTHS = [...Array.from({ length: 33 }, (_, n) => n + 1), 48, 64, 80, 96, 127, 128, 256];
const KINDS: readonly WeightsKind[] = ["scores", "capped", "masked", "softmax"];

describeVariants((lb) => {
  test("R22: every tail length of queries and keys, causal and not", () => {
    for (const queryLength of TAILS) {
      for (const keyLength of TAILS) {
        const headDim = 1 + ((queryLength * 7 + keyLength * 3) % 20);
        const operands = makeOperands(
          { queryLength, keyLength, headDim, valueDim: 21 - headDim },
          queryLength * 37 + keyLength,
        );
        check(lb, operands);
        check(lb, operands, { causal: true, queryOffset: (queryLength + keyLength) % 2 ? "start" : "end" });
      }
    }
  });

  test("R22: every pair of head and value width", () => {
    for (const headDim of WIDTHS) {
      for (const valueDim of WIDTHS) {
        if (headDim > 33 && valueDim > 33 && headDim !== valueDim) continue;
        check(lb, makeOperands({ queryLength: 5, keyLength: 11, headDim, valueDim }, headDim * 300 + valueDim), {
          causal: true,
          queryOffset: 4,
        });
      }
    }
  });

  test("R22: prime lengths beyond one block", () => {
    for (const queryLength of PRIMES) {
      for (const keyLength of PRIMES) {
        const operands = makeOperands(
          { queryLength, keyLength, headDim: 19, valueDim: 13 },
          queryLength + keyLength,
          2,
        );
        check(lb, operands, queryLength === keyLength ? { causal: true } : { causal: true, queryOffset: "end" });
        check(lb, operands);
      }
    }
  });

  test("R22: scores up to 1e4, where a naive exponential overflows", () => {
    for (const size of [10, 30, 100, 400]) {
      for (const headDim of [1, 8, 64, 80]) {
        for (const length of [1, 7, 33, 70]) {
          const operands = makeOperands({ queryLength: length, headDim }, size + headDim + length);
          // The scale is chosen so that the largest possible |score| is `size` squared over 16: 1e4 at the last.
          const options = { scale: (size * size) / 16 / headDim, causal: length % 2 === 1 };
          const reference = check(lb, operands, options, "masked");
          expect(reference.scores.every((score) => Math.abs(score) <= 1e4)).toBe(true);
        }
      }
    }
  });

  test("R22: scores that are all large, of one sign, or far apart", () => {
    for (const shift of [-1e4, -100, 88.7, 89, 104, 1e4]) {
      const operands = makeOperands({ queryLength: 9, keyLength: 37, headDim: 16 }, Math.abs(shift) | 1);
      operands.q.fill(1);
      operands.k.forEach((x, n) => {
        operands.k[n] = (shift + x * 4) / 16;
      });
      check(lb, operands, { scale: 1 });
    }
    const apart = makeOperands({ queryLength: 3, keyLength: 5, headDim: 1 }, 1);
    apart.q.set([1, 1, 1]);
    apart.k.set([-1e4, 1e4, 0, 9.9e3, 1e4]);
    check(lb, apart, { scale: 1 });
  });

  // Rounding errors of a sum of one sign do not cancel: a long sum in a single accumulator shows here first.
  test("R22: queries and keys of one sign, up to a head width of 512", () => {
    for (const headDim of [8, 32, 64, 80, 128, 176, 256, 512]) {
      const operands = makeOperands({ queryLength: 60, keyLength: 200, headDim, valueDim: 16 }, headDim, 10);
      for (const data of [operands.q, operands.k]) data.set(data.map(Math.abs));
      const reference = refer(operands);
      expectOutput(run(lb, operands).output, reference, operands.shape, `headDim ${headDim}`);
    }
  });

  test("R22: values of one sign, up to 65536 keys", () => {
    for (const keyLength of [300, 1000, 8192, 65_536]) {
      for (const scale of [0, 0.01]) {
        const operands = makeOperands({ queryLength: 2, keyLength, headDim: 4, valueDim: 9 }, keyLength);
        operands.v.set(operands.v.map((x) => 0.9 + 0.1 * Math.abs(x)));
        check(lb, operands, { scale });
      }
    }
  });

  test("R14: logSumExp is exact for one key, and ln(Lk) for equal scores", () => {
    const one = makeOperands({ queryLength: 5, keyLength: 1, headDim: 3 }, 12, 3);
    const { logSumExp, weights } = run(lb, one, { logSumExp: true, weights: "masked" });
    expectSameBits(logSumExp, weights, "logSumExp of one key is its score");
    for (const keyLength of [1, 2, 9, 64, 65, 1000]) {
      const operands = makeOperands({ queryLength: 3, keyLength, headDim: 2 }, keyLength);
      const found = run(lb, operands, { scale: 0, logSumExp: true }).logSumExp!;
      holds(
        worst(found, new Float64Array(3).fill(Math.log(keyLength)), () => 1e-6),
        `ln ${keyLength}`,
      );
    }
  });

  test("R21: no queries give an empty output, no keys zero rows", () => {
    for (const layout of ["4-D", "3-D"] as const) {
      for (const [queryLength, keyLength] of [
        [0, 4],
        [4, 0],
        [0, 0],
      ] as const) {
        const operands = makeOperands({ batch: 2, heads: 3, queryLength, keyLength, headDim: 4, valueDim: 6 }, 13);
        for (const kind of KINDS) check(lb, operands, {}, kind, layout);
        check(lb, operands, { causal: true }, "softmax", layout);
        const { output, logSumExp } = run(lb, operands, { causal: true, logSumExp: true }, layout);
        expect(output.every((x) => x === 0)).toBe(true);
        expect(logSumExp!.every((x) => x === -Infinity)).toBe(true);
      }
    }
  });
});

describeVariants((_, variant) => {
  test("R23: with weights off, memory stays far below one Lq × Lk matrix", async () => {
    const lb = await createLookback({ variant });
    try {
      const length = 8192;
      const operands = makeOperands({ heads: 2, kvHeads: 1, queryLength: length, headDim: 8 }, 14);
      const { output, logSumExp } = run(lb, operands, { causal: true, logSumExp: true });
      expect(lb.memory().reserved).toBeLessThan((length * length * 4) / 8);
      // Some rows against the reference: the query alone, placed by its offset.
      for (const i of [0, 1, 63, 64, 4095, 5003, 8190, 8191]) {
        for (const h of [0, 1]) {
          const shape = makeShape({ queryLength: 1, keyLength: length, headDim: 8 });
          const row = h * length + i;
          const q = operands.q.subarray(row * 8, row * 8 + 8);
          const reference = refer({ shape, q, k: operands.k, v: operands.v }, { causal: true, queryOffset: i });
          const found = output.subarray(row * 8, row * 8 + 8);
          holds(
            worst(found, reference.output, () => rowBound(reference, 0)),
            `row ${row}`,
          );
          expectLogSumExp(logSumExp!.subarray(row, row + 1), reference, `row ${row}`);
        }
      }
    } finally {
      lb.dispose();
    }
  });

  test("R23: a size whose bytes do not fit in 2³² is refused with that number, and the instance goes on", async () => {
    const lb = await createLookback({ variant });
    try {
      const operands = makeOperands({ queryLength: 40_000, headDim: 1 }, 15);
      const bytes = 40_000 * 40_000 * 4;
      const digits = new RegExp(String(bytes).replace(/\B(?=(\d{3})+$)/g, "[,_ ]?"));
      expect(() => run(lb, operands, { causal: true, weights: "softmax" })).toThrow(digits);
      const small = makeOperands({ queryLength: 3 }, 16);
      expectOutput(run(lb, small).output, refer(small), small.shape);
    } finally {
      lb.dispose();
    }
  });
});
