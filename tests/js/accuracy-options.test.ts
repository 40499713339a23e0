/** Layouts, scale, masks, bias, offsets, grouped heads and what can be looked at, each against the float64 reference. */
import { expect, test } from "@jest/globals";
import type { WeightsKind } from "lookback";
import { check, expectOutput, expectSameBits, expectWeights, holds, rowBound, run, worst } from "./accuracy-check.ts";
import { isVisible, type ReferenceOptions } from "./reference.ts";
import { makeOperands, randomFloats, randomSource, refer } from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

const KINDS: readonly WeightsKind[] = ["scores", "capped", "masked", "softmax"];

describeVariants((lb) => {
  test("R1: 4-D, 3-D and 2-D hold the same bits, whatever the number of heads", () => {
    for (const [heads, kvHeads, batch] of [
      [1, 1, 1],
      [3, 3, 2],
      [6, 2, 1],
      [4, 1, 3],
      [5, 5, 1],
    ] as const) {
      for (const [headDim, valueDim] of [
        [8, 8],
        [5, 9],
        [64, 3],
        [17, 33],
      ] as const) {
        const operands = makeOperands(
          { batch, heads, kvHeads, queryLength: 7, keyLength: 13, headDim, valueDim },
          heads + headDim,
        );
        const options = { causal: true, queryOffset: "end", logSumExp: true, weights: "softmax" } as const;
        const expected = run(lb, operands, options, "4-D");
        expectOutput(expected.output, refer(operands, options), operands.shape);
        for (const layout of batch === 1 ? (["3-D", "2-D"] as const) : (["3-D"] as const)) {
          const actual = run(lb, operands, options, layout);
          expectSameBits(actual.output, expected.output, `${layout} output`);
          expectSameBits(actual.weights, expected.weights, `${layout} weights`);
          expectSameBits(actual.logSumExp, expected.logSumExp, `${layout} logSumExp`);
          expect(actual.raw.weights?.dims).toEqual([batch, heads, 7, 13]);
          expect(actual.raw.logSumExp?.dims).toEqual([batch, heads, 7]);
        }
      }
    }
  });

  test("R2: any finite scale, 0 and negatives included; 1/√headDim by default", () => {
    const operands = makeOperands({ queryLength: 6, keyLength: 9, headDim: 12 }, 5, 2);
    for (const scale of [0, -0, 1, -1, 0.125, -3.7, 1e-20, 50]) {
      for (const kind of KINDS) check(lb, operands, { scale }, kind);
    }
    expectSameBits(run(lb, operands).output, run(lb, operands, { scale: 1 / Math.sqrt(12) }).output, "default scale");
    const uniform = run(lb, operands, { scale: 0, weights: "softmax" }).weights!;
    holds(
      worst(uniform, new Float64Array(54).fill(1 / 9), () => 2 ** -26),
      "uniform weights",
    );
  });

  test("R4: a bias is added after softcap; −∞ masks, a very negative finite number on every key does not", () => {
    const operands = makeOperands({ batch: 2, heads: 3, queryLength: 5, keyLength: 10, headDim: 4 }, 6, 3);
    const random = randomSource(7);
    for (const dims of [
      [10],
      [5, 1],
      [5, 10],
      [3, 5, 10],
      [3, 1, 1],
      [2, 1, 1, 10],
      [2, 3, 5, 10],
      [1, 1, 1, 1],
      [2, 1, 5, 10],
    ]) {
      const data = randomFloats(
        random,
        dims.reduce((a, b) => a * b, 1),
        2,
      );
      for (const kind of KINDS) check(lb, operands, { bias: { data, dims }, softcap: 1.5 }, kind);
      const holed = data.map((x) => (random() < 0.4 ? -Infinity : x));
      for (const kind of KINDS)
        check(lb, operands, { bias: { data: holed, dims }, softcap: 0.5, causal: true, queryOffset: 2 }, kind);
    }
    const lowest = { data: new Float32Array(10).fill(-3.4e38), dims: [10] };
    const uniform = run(lb, operands, { bias: lowest, weights: "softmax" }).weights!;
    holds(
      worst(uniform, new Float64Array(300).fill(0.1), () => 1e-7),
      "weights under a bias of −3.4e38 everywhere",
    );
  });

  test("R4: finite biases of any size are ordinary numbers", () => {
    const operands = makeOperands({ heads: 2, queryLength: 6, keyLength: 40, headDim: 4 }, 17, 2);
    const random = randomSource(18);
    for (const [sizes, rounding] of [
      [[-3.4e38, 0], 0],
      [[-3.4e38, 3.4e38], 0],
      [[-1e30, -3.4e38], 0],
      [[-88, -104, 0], 0],
      // Where every visible key carries the bias, the sum of score and bias is rounded at the bias's size.
      [[104, 88.8], 104],
      [[-Infinity, -3.4e38, -1e4], 1e4],
    ] as const) {
      const data = Float32Array.from({ length: 240 }, () => sizes[Math.floor(random() * sizes.length)]!);
      const options = { bias: { data, dims: [6, 40] } };
      const reference = refer(operands, options);
      const allowed = (n: number) => {
        const row = Math.floor(n / 4);
        return rowBound(reference, row) + 2 ** -23 * rounding * reference.largestValue[row]!;
      };
      holds(worst(run(lb, operands, options).output, reference.output, allowed), `biases ${sizes}`);
    }
  });

  test("R3: masks broadcast from the right, from every array type", () => {
    const operands = makeOperands({ batch: 2, heads: 3, queryLength: 5, keyLength: 10, headDim: 4 }, 8);
    const random = randomSource(9);
    for (const dims of [
      [10],
      [5, 1],
      [5, 10],
      [3, 5, 10],
      [1, 5, 10],
      [2, 1, 5, 10],
      [2, 3, 5, 10],
      [2, 1, 1, 10],
      [2, 3, 1, 1],
      [1, 1],
    ]) {
      const bits = Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => Number(random() < 0.6));
      const forms = [Uint8Array.from(bits), Int32Array.from(bits), BigInt64Array.from(bits, BigInt), bits.map(Boolean)];
      const outputs = forms.map((data) => {
        for (const kind of KINDS) check(lb, operands, { mask: { data, dims } as never }, kind);
        return run(lb, operands, { mask: { data, dims } }).output;
      });
      for (const output of outputs) expectSameBits(output, outputs[0], `mask [${dims}]`);
    }
  });

  test("R6: offsets of every kind, per batch row, negative and beyond the keys", () => {
    for (const [queryLength, keyLength] of [
      [1, 9],
      [4, 4],
      [5, 12],
      [12, 5],
      [40, 9],
      [9, 70],
      [33, 34],
    ] as const) {
      const operands = makeOperands({ batch: 3, queryLength, keyLength, headDim: 6 }, queryLength * keyLength);
      const offsets = [
        "start",
        "end",
        0,
        3,
        -2,
        -queryLength,
        keyLength + 5,
        -1000,
        1000,
        [0, -3, 6],
        Int32Array.of(2, 0, -1),
      ];
      for (const queryOffset of offsets as NonNullable<ReferenceOptions["queryOffset"]>[]) {
        check(lb, operands, { causal: true, queryOffset });
      }
    }
  });

  test("R9: a row that sees no key has output 0, weights 0 and logSumExp −∞", () => {
    const operands = makeOperands({ batch: 1, heads: 2, queryLength: 6, keyLength: 20, headDim: 8 }, 10);
    const mask = { data: new Uint8Array(2 * 6 * 20).fill(1), dims: [2, 6, 20] };
    mask.data.fill(0, 40, 80); // rows 2 and 3 of head 0
    const bias = { data: new Float32Array(6 * 20), dims: [6, 20] };
    bias.data.fill(-Infinity, 100, 120); // row 5 of both heads
    const options = { mask, bias, causal: true, queryOffset: -1 } as const; // row 0 too
    for (const kind of KINDS) check(lb, operands, options, kind);
    const { output, weights, logSumExp } = run(lb, operands, { ...options, weights: "softmax", logSumExp: true });
    for (const row of [0, 2, 3, 5, 6, 11]) {
      expect(Array.from(output.subarray(row * 8, row * 8 + 8))).toEqual(new Array(8).fill(0));
      expect(Array.from(weights!.subarray(row * 20, row * 20 + 20))).toEqual(new Array(20).fill(0));
      expect(logSumExp![row]).toBe(-Infinity);
    }
  });

  test("R11: query head h uses kv head ⌊h·Hkv/H⌋", () => {
    for (const [heads, kvHeads] of [
      [2, 1],
      [4, 2],
      [9, 3],
      [8, 8],
      [12, 4],
      [7, 1],
    ] as const) {
      for (const layout of ["4-D", "3-D"] as const) {
        const operands = makeOperands(
          { batch: 2, heads, kvHeads, queryLength: 6, keyLength: 11, headDim: 8, valueDim: 5 },
          heads,
        );
        check(lb, operands, { causal: true, queryOffset: "end" }, "softmax", layout);
      }
    }
  });

  test("R12: every kind, any heads in any order, any range of queries", () => {
    const shape = { batch: 2, heads: 4, kvHeads: 2, queryLength: 9, keyLength: 21, headDim: 8 };
    const operands = makeOperands(shape, 11, 2);
    const options = {
      softcap: 2,
      causal: true,
      queryOffset: 5,
      bias: { data: randomFloats(randomSource(1), 21), dims: [21] },
    } as const;
    const reference = refer(operands, options);
    for (const kind of KINDS) {
      check(lb, operands, options, kind);
      const full = run(lb, operands, { ...options, weights: kind }).weights!;
      for (const heads of [[0], [3, 1], [2, 2], [0, 1, 2, 3]]) {
        for (const queries of [
          [0, 9],
          [4, 5],
          [2, 8],
          [3, 3],
        ] as const) {
          const part = run(lb, operands, { ...options, weights: { kind, heads, queries } });
          expect(part.raw.weights!.dims).toEqual([2, heads.length, queries[1] - queries[0], 21]);
          const expected = [0, 1].flatMap((b) =>
            heads.flatMap((h) => {
              const start = (b * 4 + h) * 9;
              return Array.from(full.subarray((start + queries[0]) * 21, (start + queries[1]) * 21));
            }),
          );
          expectSameBits(part.weights, Float32Array.from(expected), `weights of heads ${heads}, queries ${queries}`);
        }
      }
      expectSameBits(
        run(lb, operands, { ...options, weights: { kind, heads: [1] } }).output,
        run(lb, operands, options).output,
        kind,
      );
    }
    expectWeights(run(lb, operands, { ...options, weights: {} }).weights, "softmax", reference, operands.shape);
    // 'scores' and 'capped' cover masked keys too; 'masked' is −∞ exactly where a key is not visible.
    const masked = run(lb, operands, { ...options, weights: "masked" }).weights!;
    masked.forEach((x, n) => {
      const [b, h, i, j] = [Math.floor(n / 756), Math.floor(n / 189) % 4, Math.floor(n / 21) % 9, n % 21];
      if ((x === -Infinity) === isVisible(options, operands.shape, b, h, i, j))
        throw new Error(`'masked' at ${n} is ${x}`);
    });
  });
});
