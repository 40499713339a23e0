/** lb.assertCausal: causal functions pass, and of others the first leak is named. */
import { afterAll, describe, expect, test } from "@jest/globals";
import { createLookback, masks, type SequenceFunction, type Tensor } from "lookback";
import { bits } from "./support/diagnosis.js";
import { expectError, rejected } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";
import { loose } from "./support/refusals.js";

const single = await createLookback({ variant: "simd" });
afterAll(() => single.dispose());

/** Someone else's model: output row i is the sum of the input rows that `sees` allows, in float64. */
const mixer =
  (sees: (i: number, j: number) => boolean, weight = 1): SequenceFunction =>
  ({ data, dims }) => {
    const [length, width] = dims.slice(-2) as [number, number];
    const out = new Float32Array(data.length);
    for (let row = 0; row < data.length; row++) {
      const [sequence, i, d] = [Math.floor(row / width / length), Math.floor(row / width) % length, row % width];
      let sum = 0;
      for (let j = 0; j < length; j++) {
        if (sees(i, j)) sum += (j > i ? weight : 1) * data[(sequence * length + j) * width + d]!;
      }
      out[row] = sum;
    }
    return { data: out, dims: [...dims] };
  };

const causal = mixer((i, j) => j <= i);

describeVariants((lb) => {
  test("R6: causal attention and a causal layer are causal to the last bit, across tiles, in few calls", async () => {
    const attend = (x: Tensor) => lb.attention(x, x, x, { heads: 2, causal: true }).output;
    const report = await lb.assertCausal(attend, { length: 61, width: 16, batch: 12 });
    expect(report).toMatchObject({ complete: true, calls: 2 + 5, largestChange: 0 });
    expect(report.positions).toEqual(Array.from({ length: 60 }, (_, n) => n + 1));
    expect(String(report)).toContain("for every j from 1 to 60");

    const layer = lb.multiHeadAttention({ embedDim: 16, heads: 4 });
    const forward = (x: Tensor) => layer.forward(x, { causal: true }).output;
    expect(await lb.assertCausal(forward, { length: 10, width: 16 })).toMatchObject({ calls: 2 + 9 });
    expectError(
      await rejected(lb.assertCausal((x) => layer.forward(x).output, { length: 10, width: 16 })),
      "not-causal",
      "position 0",
      "position 1 is changed",
      "causal: true",
    );
    layer.dispose();
  });

  test("R10: with NaN in the future as well", async () => {
    const attend = (x: Tensor) => lb.attention(x, x, x, { heads: 2, causal: true }).output;
    expect(await lb.assertCausal(attend, { length: 30, width: 8, nan: true, batch: 8 })).toMatchObject({
      complete: true,
    });
    const mask = masks.causal(30);
    const masked = (x: Tensor) => lb.attention(x, x, x, { heads: 2, mask }).output;
    expect(await lb.assertCausal(masked, { length: 30, width: 8, nan: true })).toMatchObject({ complete: true });
  });

  test("a mask with one leak: the two positions, and the size", async () => {
    const mask = bits(16, 16, (i, j) => j <= i || (i === 3 && j === 11));
    const attend = (x: Tensor) => lb.attention(x, x, x, { heads: 1, mask }).output;
    const error = await rejected(lb.assertCausal(attend, { length: 16, width: 8 }));
    expectError(error, "not-causal", "output at position 3 changes by", "input at position 11 is changed");
  });
});

describe("functions of others", () => {
  const options = { length: 12, width: 3 };

  test("synchronous or not, with dims or without, a row or a number per position, of any numeric array", async () => {
    const plain: SequenceFunction = async (x) => ((await causal(x)) as Tensor).data;
    const reduced: SequenceFunction = (x) => {
      const { data } = causal(x) as Tensor;
      return {
        data: Float64Array.from({ length: data.length / 3 }, (_, i) => data[i * 3]!),
        dims: x.dims.slice(0, -1),
      };
    };
    const perHead: SequenceFunction = (x) => {
      const { data } = causal(x) as Tensor;
      return { data: Float32Array.from([...data, ...data]), dims: [2, 12, 3] };
    };
    for (const fn of [causal, plain, reduced]) {
      expect(await single.assertCausal(fn, options)).toMatchObject({ calls: 13, complete: true });
      expect(await single.assertCausal(fn, { ...options, batch: 4 })).toMatchObject({ calls: 5, complete: true });
    }
    expect(await single.assertCausal(perHead, options)).toMatchObject({ complete: true });
  });

  test.each([
    ["everything", () => true, 0, 1],
    ["the next position", (i: number, j: number) => j <= i + 1, 0, 1],
    ["one far position", (i: number, j: number) => j <= i || (i === 4 && j === 10), 4, 10],
    ["the last position only", (i: number, j: number) => j <= i || j === 11, 0, 11],
  ] as const)("that see %s are caught, alone and in a batch", async (_name, sees, output, input) => {
    for (const batch of [undefined, 1, 5, 40]) {
      const error = await rejected(single.assertCausal(mixer(sees), { ...options, ...(batch && { batch }) }));
      expectError(
        error,
        "not-causal",
        `output at position ${output} changes by`,
        `input at position ${input} is changed`,
      );
    }
  });

  test("a leak in the last head of an output by heads is seen", async () => {
    const fn: SequenceFunction = async (x) => {
      const [good, bad] = [await causal(x), await mixer((i, j) => j <= i || (i === 2 && j === 5))(x)] as [
        Tensor,
        Tensor,
      ];
      return { data: Float32Array.from([...good.data, ...bad.data]), dims: [2, 12, 3] };
    };
    expectError(await rejected(single.assertCausal(fn, options)), "not-causal", "position 2", "position 5");
  });

  test("what only several inputs together change is told as a range", async () => {
    // The product of two differences from the first inputs: either alone leaves it at 0.
    let first: Float32Array | undefined;
    const fn: SequenceFunction = (x) => {
      first ??= x.data.slice();
      const { data } = causal(x) as Tensor;
      data[0]! += (x.data[5 * 3]! - first[5 * 3]!) * (x.data[9 * 3]! - first[9 * 3]!);
      return data;
    };
    expectError(
      await rejected(single.assertCausal(fn, options)),
      "not-causal",
      "position 0",
      "inputs at positions 5 to 9 are changed",
    );
  });

  test("a change within the tolerance is none; without one it may be called rounding", async () => {
    const slight = mixer(() => true, 1e-7);
    const report = await single.assertCausal(slight, { ...options, tolerance: 1e-4 });
    expect(report.largestChange).toBeGreaterThan(0);
    expect(report.largestChange).toBeLessThan(1e-4);
    expect(String(report)).toContain("by more than");
    expectError(await rejected(single.assertCausal(slight, options)), "not-causal", "give a tolerance");
  });

  test("NaN shows what is multiplied by 0", async () => {
    const zeroed = mixer(() => true, 0);
    expect(await single.assertCausal(zeroed, options)).toMatchObject({ complete: true });
    expectError(
      await rejected(single.assertCausal(zeroed, { ...options, nan: true })),
      "not-causal",
      "becomes NaN",
      "is NaN",
    );
  });

  test("long sequences can be sampled: the positions tested are reported", async () => {
    const report = await single.assertCausal(causal, { length: 200, width: 2, probes: 5 });
    expect(report).toMatchObject({ complete: false, calls: 7, positions: [1, 51, 100, 150, 199] });
    expect(String(report)).toContain("5 of 199");
    // A leak across a tested position is found and then narrowed down to the very input.
    const far = mixer((i, j) => j <= i || (i === 60 && j === 140));
    const error = await rejected(single.assertCausal(far, { length: 200, width: 2, probes: 5 }));
    expectError(error, "not-causal", "output at position 60", "input at position 140 is changed");
  });

  test("the same seed gives the same inputs and messages, another one others", async () => {
    const seen: Float32Array[] = [];
    const leaky: SequenceFunction = (x) => {
      seen.push(x.data.slice());
      return mixer(() => true)(x);
    };
    const messages: string[] = [];
    for (const seed of [1, 1, 2])
      messages.push((await rejected(single.assertCausal(leaky, { ...options, seed }))).message);
    expect(messages[0]).toBe(messages[1]);
    expect(messages[0]).not.toBe(messages[2]);
    const calls = seen.length / 3;
    expect(seen[0]).toEqual(seen[calls]);
    expect(seen[0]).not.toEqual(seen[2 * calls]);
  });

  test("a function may reuse its output and spoil its input", async () => {
    const shared = new Float32Array(36);
    const fn: SequenceFunction = (x) => {
      shared.set((causal(x) as Tensor).data);
      x.data.fill(7);
      return shared;
    };
    expect(await single.assertCausal(fn, options)).toMatchObject({ complete: true });
  });
});

describe("refusals", () => {
  const options = { length: 4, width: 2 };

  test("a function that differs from itself cannot be tested", async () => {
    let calls = 0;
    const dropout: SequenceFunction = (x) => x.data.map((value, at) => (at === 5 ? value + calls++ : value));
    expectError(await rejected(single.assertCausal(dropout, options)), "not-deterministic", "position 2", "dropout");
  });

  test("outputs that hold NaN, have other sizes, or are no rows of positions", async () => {
    const returning = async (value: unknown) =>
      rejected(loose(single).assertCausal(() => value, options) as Promise<unknown>);
    expectError(await returning(new Float32Array(8).fill(Number.NaN, 3)), "bad-values", "NaN (at index 3)");
    expectError(await returning(new Float32Array(7)), "bad-values", "length 4", "7 values");
    expectError(await returning({ data: new Float32Array(10), dims: [5, 2] }), "bad-values", "[5, 2]");
    expectError(await returning({ output: { data: new Float32Array(8), dims: [4, 2] } }), "bad-values", "'output'");
    expectError(await returning(undefined), "bad-values", "undefined");
    expectError(await returning([1, 2, 3, 4]), "bad-values", "[1, 2, 3, 4]");
    let calls = 0;
    const growing: SequenceFunction = () => new Float32Array(4 * ++calls);
    expectError(await rejected(single.assertCausal(growing, options)), "bad-values", "4 values first and 8");
  });

  test("options are checked, and fn's own errors pass through", async () => {
    const call = (fn: unknown, given: unknown) => rejected(loose(single).assertCausal(fn, given) as Promise<unknown>);
    expectError(await call(7, options), "bad-option", "a function", "7");
    expectError(await call(causal, { length: 4 }), "bad-option", "{ length, width }");
    expectError(await call(causal, { length: 4, widht: 2 }), "unknown-option", "width");
    expectError(await call(causal, { length: 4, width: 0 }), "bad-option", "width", "0");
    const own = new RangeError("mine");
    await expect(
      single.assertCausal(() => {
        throw own;
      }, options),
    ).rejects.toBe(own);
  });
});
