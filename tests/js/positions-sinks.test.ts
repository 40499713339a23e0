/** R17's ALiBi and R18's sinks against the reference, and by what they mean. */
import { expect, test } from "@jest/globals";
import { check, expectSameBits, holds, run, worst } from "./accuracy-check.ts";
import { alibiSlopes, type ReferenceOptions } from "./reference.ts";
import { makeOperands, makeShape, refer } from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

describeVariants((lb) => {
  test("R17: ALiBi's slopes are the published ones for every number of heads, powers of two and others", () => {
    for (let heads = 1; heads <= 33; heads++) {
      // Scores of 0: what is left in 'masked' is −slope·|i + offset − j|.
      const shape = makeShape({ heads, queryLength: 2, keyLength: 3, headDim: 1 });
      const zeros = (count: number) => new Float32Array(count);
      const operands = { shape, q: zeros(2 * heads), k: zeros(3 * heads), v: zeros(3 * heads) };
      const { weights } = run(lb, operands, { alibi: true, queryOffset: 1, weights: "masked" });
      const slopes = alibiSlopes(heads);
      const distances = [1, 0, 1, 2, 1, 0];
      const expected = slopes.flatMap((slope) => distances.map((d) => -Math.fround(slope) * d));
      expect(Array.from(weights!, (x) => x + 0)).toEqual(expected.map((x) => x + 0));
    }
    // Worked by hand from the paper: 12 heads take 8's slopes, then 16's 1st, 3rd, 5th and 7th.
    expect(alibiSlopes(12)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5].map((x) => 2 ** -x));
  });

  test("R17: ALiBi with causal, windows, softcap, offsets per row, grouped heads and slopes of one's own", () => {
    const operands = makeOperands(
      { batch: 2, heads: 6, kvHeads: 2, queryLength: 9, keyLength: 70, headDim: 8, valueDim: 5 },
      3,
    );
    const all: ReferenceOptions[] = [
      { alibi: true, queryOffset: "end" },
      { alibi: true, queryOffset: [0, 40], causal: true },
      { alibi: true, queryOffset: 30, window: { left: 12, right: 3 } },
      { alibi: true, queryOffset: [-3, 66], softcap: 1.5 },
      { alibi: [0, 0.5, -0.25, 1, 2 ** -9, 0.1], queryOffset: 20 },
    ];
    for (const options of all) for (const kind of ["masked", "softmax"] as const) check(lb, operands, options, kind);
    const off = run(lb, operands, { alibi: false, logSumExp: true });
    expectSameBits(off.output, run(lb, operands).output, "alibi: false");
    const zero = run(lb, operands, { alibi: new Array(6).fill(0), queryOffset: 0 });
    holds(
      worst(zero.output, off.output, () => 1e-6),
      "slopes of 0",
    );
  });

  test("R18: a sink joins the denominator and logSumExp and has no value", () => {
    const operands = makeOperands(
      { batch: 2, heads: 6, kvHeads: 3, queryLength: 9, keyLength: 70, headDim: 8, valueDim: 5 },
      4,
      2,
    );
    const sinks = [-3, 0, 0.5, 4, 20, -100];
    const mask = { data: Uint8Array.from({ length: 9 * 70 }, (_, n) => Number(n % 7 < 3 && n < 560)), dims: [9, 70] };
    for (const options of [
      {},
      { causal: true, queryOffset: 3 },
      { mask },
      { softcap: 2 },
      { alibi: true, queryOffset: 61 },
    ]) {
      for (const kind of ["softmax", "masked"] as const) check(lb, operands, { ...options, sinks }, kind);
    }
    const plain = run(lb, operands, { weights: "masked", logSumExp: true });
    const sunk = run(lb, operands, { sinks, weights: "masked", logSumExp: true });
    expectSameBits(sunk.weights, plain.weights, "masked scores");
    const none = run(lb, operands, { sinks: new Array(6).fill(-Infinity), logSumExp: true });
    expectSameBits(none.output, plain.output, "sinks of −∞");
    expectSameBits(none.logSumExp, plain.logSumExp, "sinks of −∞: logSumExp");
  });

  test("R18, R9: where no key is visible the sink is all there is: output 0, logSumExp the sink", () => {
    const operands = makeOperands({ heads: 2, queryLength: 3, keyLength: 8 }, 5);
    const { output, weights, logSumExp } = run(lb, operands, {
      causal: true,
      queryOffset: -2,
      sinks: [0.75, -2],
      weights: "softmax",
      logSumExp: true,
    });
    for (const row of [0, 1, 3, 4]) {
      expect(Array.from(output.subarray(row * 8, row * 8 + 8))).toEqual(new Array(8).fill(0));
      expect(Array.from(weights!.subarray(row * 8, row * 8 + 8))).toEqual(new Array(8).fill(0));
    }
    expect(Array.from(logSumExp!).filter((_, row) => row % 3 < 2)).toEqual([0.75, 0.75, -2, -2]);
    const none = run(lb, makeOperands({ heads: 2, queryLength: 1, keyLength: 0 }, 6), {
      sinks: [1, 2],
      logSumExp: true,
    });
    expect(Array.from(none.logSumExp!)).toEqual([1, 2]);
  });

  test("R18: a sink far above every score leaves weights near 0, one far below changes nothing", () => {
    const operands = makeOperands({ heads: 2, queryLength: 4, keyLength: 40 }, 7);
    const { weights } = run(lb, operands, { sinks: [200, -200], weights: "softmax" });
    const reference = refer(operands, { sinks: [200, -200] });
    expect(Array.from(weights!.subarray(0, 160)).every((w) => w >= 0 && w < 1e-30)).toBe(true);
    holds(
      worst(weights!.subarray(160), reference.softmax.subarray(160), () => 1e-6),
      "weights beside a sink of −200",
    );
  });
});
