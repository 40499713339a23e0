/** lb.diagnose: what each finding says of masks, biases, rows and inputs. */
import { describe, expect, test } from "@jest/globals";
import { masks } from "lookback";
import { bits, codes, expectHealthy, expectShown, find, lowBias, only, operands } from "./support/diagnosis.js";
import { caught, expectError } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";
import { loose } from "./support/refusals.js";

describeVariants((lb) => {
  const length = 12;
  const [q, k, v] = operands([2, 3, length, 16]);
  const triangle = masks.causal(length);

  describe("rows-see-nothing", () => {
    test("names rows, and the batch rows and heads where these are not all", () => {
      const mask = bits(length, length, (i) => i !== 4 && i !== 5);
      const finding = only(lb.diagnose(q, k, v, { mask }), "rows-see-nothing");
      expect(finding).toMatchObject({ severity: "warning", rows: [4, 5], numbers: { rows: 12, examined: 72 } });
      expect(finding.batches).toBeUndefined();
      expectShown(finding, "12 of 72 rows (rows 4–5)", "output is 0", "Let them see a key");

      const one = { data: new Uint8Array(2 * 3 * length * length).fill(1), dims: [2, 3, length, length] };
      one.data.fill(0, ((1 * 3 + 2) * length + 7) * length, ((1 * 3 + 2) * length + 8) * length);
      const single = only(lb.diagnose(q, k, v, { mask: one }), "rows-see-nothing");
      expect(single).toMatchObject({ batches: [1], heads: [2], rows: [7], numbers: { rows: 1 } });
      expectShown(single, "1 of 72 rows (batch row 1, head 2, row 7) see no key");
    });

    test("tells rows before key 0 from others", () => {
      const finding = only(lb.diagnose(q, k, v, { causal: true, queryOffset: -2 }), "rows-see-nothing");
      expect(finding.rows).toEqual([0, 1]);
      expectShown(finding, "check queryOffset");
      const crossed = only(
        lb.diagnose(...operands([1, 2, 9, 16], 6), { causal: true, queryOffset: "end" }),
        "rows-see-nothing",
      );
      expect(crossed.rows).toEqual([0, 1, 2]);
    });

    test("is an error where no row sees anything", () => {
      const finding = only(lb.diagnose(q, k, v, { mask: bits(1, length, () => false) }), "rows-see-nothing");
      expect(finding).toMatchObject({ severity: "error", numbers: { rows: 72, examined: 72 } });
      expectShown(finding, "72 of 72 rows", "inverted");
    });

    test("is silent about rows of padding, but not about a batch row that is nothing else", () => {
      const keys = Uint8Array.from({ length: 2 * length }, (_, at) => +(at < length && at >= 5));
      const mask = { data: keys, dims: [2, 1, 1, length] };
      const finding = only(lb.diagnose(q, k, v, { mask, causal: true }), "rows-see-nothing");
      expect(finding.batches).toEqual([1]);
      expect(finding.rows).toEqual(Array.from({ length }, (_, i) => i));
    });
  });

  describe("mask-inverted", () => {
    test.each([
      ["the complement of causal", triangle.not()],
      ["the complement of a causal window", masks.from(bits(length, length, (i, j) => j <= i && j > i - 4)).not()],
      ["the complement of causal with padding", masks.from(bits(length, length, (i, j) => j <= i && j < 10)).not()],
    ])("%s", (_name, mask) => {
      const finding = find(lb.diagnose(q, k, v, { mask }), "mask-inverted");
      expect(finding).toMatchObject({ severity: "warning", numbers: { future: 1 } });
      expectShown(finding, "100 % of the future", "inverted", "masks.fromTorch", ".not()");
      expect(codes(lb.diagnose(q, k, v, { mask: mask.not() }))).toEqual([]);
    });

    test("also with causal: true, where it leaves nothing to see", () => {
      const diagnosis = lb.diagnose(q, k, v, { mask: triangle.not(), causal: true });
      expect(codes(diagnosis)).toEqual(["rows-see-nothing", "mask-inverted"]);
      expect(diagnosis[0]!.severity).toBe("error");
    });

    test("as a bias, and in some heads only", () => {
      expect(find(lb.diagnose(q, k, v, { bias: triangle.not().toBias() }), "mask-inverted").message).toMatch(
        /^The bias shows 100 % of the future/,
      );
      const data = new Uint8Array(3 * length * length);
      for (const [h, mask] of [triangle, triangle.not(), triangle].entries()) data.set(mask.data, h * length * length);
      const finding = find(lb.diagnose(q, k, v, { mask: { data, dims: [3, length, length] } }), "mask-inverted");
      expect(finding.heads).toEqual([1]);
      expectShown(finding, "(head 1)");
    });

    test("a transposed triangle", () => {
      const finding = only(lb.diagnose(q, k, v, { mask: bits(length, length, (i, j) => j >= i) }), "mask-inverted");
      expectShown(finding, "transposed", "rows are queries");
    });
  });

  describe("future-leak", () => {
    test("a mask that is causal but for some places: which, how many, and how much weight goes there", () => {
      const mask = bits(length, length, (i, j) => j <= i || (i === 2 && j === 9) || (i === 6 && j === 7));
      const finding = only(lb.diagnose(q, k, v, { mask }), "future-leak");
      expect(finding).toMatchObject({
        severity: "warning",
        rows: [2, 6],
        keys: [7, 9],
        numbers: { cells: 2, share: 2 / 66 },
      });
      const { weights } = lb.attention(q, k, v, { mask, weights: "softmax" });
      let most = 0;
      for (let head = 0; head < 6; head++) {
        most = Math.max(
          most,
          weights.data[(head * length + 2) * length + 9]!,
          weights.data[(head * length + 6) * length + 7]!,
        );
      }
      expect(finding.numbers.weight).toBeCloseTo(most, 5);
      expectShown(finding, "2 of 66 places", "(rows 2, 6, keys 7, 9)", "causal: true", "of their weight");
      expectHealthy(lb.diagnose(q, k, v, { mask, causal: true }));
    });

    test("four tokens with one leak", () => {
      const mask = bits(4, 4, (i, j) => j <= i || (i === 0 && j === 3));
      const finding = only(lb.diagnose(...operands([1, 2, 4, 16]), { mask }), "future-leak");
      expect(finding).toMatchObject({ rows: [0], keys: [3] });
    });

    test("a triangle one key too wide", () => {
      for (const size of [4, 5, length]) {
        const finding = only(
          lb.diagnose(...operands([1, 2, size, 16]), { mask: masks.causal(size, size, 1) }),
          "future-leak",
        );
        expect(finding.numbers.cells).toBe(size - 1);
        expectShown(finding, "one key too wide", "causal: true");
      }
    });

    test("a prefix that sees itself may well be meant", () => {
      const finding = only(
        lb.diagnose(q, k, v, { mask: bits(length, length, (i, j) => j <= i || j < 4) }),
        "future-leak",
      );
      expect(finding).toMatchObject({ severity: "info", keys: [1, 2, 3] });
      expectShown(finding, "a prefix of 4 keys", "prefix-LM", "If that is not meant");
    });

    test("in a bias of large negatives, and in one batch row only", () => {
      const data = new Float32Array(2 * length * length);
      const causal = lowBias(
        bits(length, length, (i, j) => j <= i),
        -1e9,
      ).data;
      data.set(causal, 0);
      data.set(causal, length * length);
      data[length * length + 11] = 0;
      const diagnosis = lb.diagnose(q, k, v, { bias: { data, dims: [2, 1, length, length] } });
      expect(codes(diagnosis).sort()).toEqual(["bias-is-mask", "future-leak"]);
      expect(find(diagnosis, "future-leak")).toMatchObject({ batches: [1], rows: [0], keys: [11] });
    });

    test("is a guess where queries and keys differ in length and nobody says how they are aligned", () => {
      const mask = bits(8, length, (i, j) => j <= i + 4 || (i === 0 && j === 10));
      const own = operands([1, 2, 8, 16], length);
      const finding = only(lb.diagnose(...own, { mask }), "future-leak");
      expect(finding).toMatchObject({ severity: "info", rows: [0], keys: [10] });
      expectShown(finding, "queryOffset");
      expect(finding.numbers.weight).toBeUndefined();
      expect(only(lb.diagnose(...own, { mask, queryOffset: "end" }), "future-leak").severity).toBe("warning");
      for (const offset of ["start", "end"] as const) {
        expectHealthy(lb.diagnose(...own, { mask: masks.causal(8, length, offset) }));
      }
    });
  });

  describe("bias-is-mask", () => {
    test.each([-10000, -65504, -1e9, -3.4028234663852886e38])("%d where −∞ was meant", (low) => {
      const causal = bits(length, length, (i, j) => j <= i);
      const finding = only(lb.diagnose(q, k, v, { bias: lowBias(causal, low) }), "bias-is-mask");
      expect(finding).toMatchObject({
        severity: "warning",
        numbers: { values: 66, lowest: Math.fround(low), rows: 0 },
      });
      expectShown(finding, "66 of 144 places", "option mask", "−Infinity");
      expectHealthy(lb.diagnose(q, k, v, { bias: lowBias(causal, -Infinity) }));
    });

    test("names the rows that have them at every key, which a mask would make 0", () => {
      const padded = bits(length, length, (i, j) => j <= i && i < 10);
      const finding = find(lb.diagnose(q, k, v, { bias: lowBias(padded, -1e9) }), "bias-is-mask");
      expect(finding).toMatchObject({ rows: [10, 11], numbers: { rows: 12 } });
      expectShown(finding, "12 rows (rows 10–11) that have them at every key", "a mask gives 0");
    });

    test("is silent about a steep bias", () => {
      const data = Float32Array.from({ length: length * length }, (_, at) => -9000 * (at % 2));
      expect(codes(lb.diagnose(q, k, v, { bias: { data, dims: [length, length] } }))).toEqual([]);
    });
  });

  describe("bias-zero-one", () => {
    test("a mask of 0 and 1 in the wrong option", () => {
      const bias = { data: Float32Array.from(triangle.data), dims: [length, length] };
      const finding = only(lb.diagnose(q, k, v, { bias }), "bias-zero-one");
      expect(finding.severity).toBe("warning");
      expectShown(finding, "option mask", "Uint8Array.from(data)");
    });

    test("is silent where there are other numbers, or one number only", () => {
      const data = Float32Array.from(triangle.data);
      data[3] = 0.5;
      expectHealthy(lb.diagnose(q, k, v, { bias: { data, dims: [length, length] } }));
      expectHealthy(lb.diagnose(q, k, v, { bias: { data: new Float32Array(length).fill(1), dims: [length] } }));
      expectHealthy(lb.diagnose(q, k, v, { bias: { data: new Float32Array(length), dims: [length] } }));
    });
  });

  describe("non-finite", () => {
    const at = (b: number, h: number, i: number, d: number) => ((b * 3 + h) * length + i) * 16 + d;
    const planted = (from: typeof q, value: number, ...places: number[]) => {
      const data = from.data.slice();
      for (const place of places) data[place] = value;
      return { data, dims: from.dims };
    };

    test("in q: the rows", () => {
      const finding = only(lb.diagnose(planted(q, Number.NaN, at(1, 2, 5, 7), at(1, 2, 5, 8)), k, v), "non-finite");
      expect(finding).toMatchObject({ severity: "error", batches: [1], heads: [2], rows: [5] });
      expect(finding.numbers).toEqual({ values: 2, places: 1, visible: 1 });
      expectShown(
        finding,
        "q holds 2 values",
        "NaN at batch row 1, head 2, position 5, dim 7",
        "spoil these rows",
        "find the overflow",
      );
    });

    test.each(["k", "v"] as const)("in %s: the keys, and whether anything sees them", (name) => {
      const bad = planted(name === "k" ? k : v, -Infinity, at(0, 1, 3, 0), at(0, 1, 11, 15));
      const [keys, values] = name === "k" ? [bad, v] : [k, bad];
      const seen = only(lb.diagnose(q, keys, values), "non-finite");
      expect(seen).toMatchObject({ severity: "error", heads: [1], keys: [3, 11], numbers: { places: 2, visible: 2 } });
      expectShown(
        seen,
        `${name} holds 2 values`,
        "-Infinity at batch row 0, head 1, position 3, dim 0",
        "every row that sees them",
        "mask these keys",
      );

      const mask = bits(1, length, (_, j) => j !== 3 && j !== 11);
      const hidden = only(lb.diagnose(q, keys, values, { mask }), "non-finite");
      expect(hidden).toMatchObject({ severity: "info", numbers: { places: 2, visible: 0 } });
      expectShown(hidden, "None of them is visible");
      const half = only(lb.diagnose(q, keys, values, { mask: bits(1, length, (_, j) => j !== 3) }), "non-finite");
      expect(half).toMatchObject({ severity: "error", numbers: { places: 2, visible: 1 } });
    });

    test("with grouped queries a key head belongs to several query heads", () => {
      const [few, values] = [operands([2, 1, length, 16])[1], operands([2, 1, length, 16])[2]];
      few.data[(1 * length + 4) * 16] = Number.NaN;
      const mask = bits(2 * 3 * length, length, (row, j) => j !== 4 || Math.floor(row / length) % 3 === 2);
      const finding = only(
        lb.diagnose(q, few, values, { mask: { data: mask.data, dims: [2, 3, length, length] } }),
        "non-finite",
      );
      expect(finding).toMatchObject({ severity: "error", batches: [1], keys: [4], numbers: { visible: 1 } });
    });

    test("in the bias, and by overflow of q·k", () => {
      const data = new Float32Array(length * length);
      data[2 * length + 6] = Number.NaN;
      const bias = only(lb.diagnose(q, k, v, { bias: { data, dims: [length, length] } }), "non-finite");
      expect(bias).toMatchObject({ severity: "error", rows: [2], keys: [6], numbers: { scores: 6 } });
      expectShown(bias, "The bias is NaN there");
      const huge = { data: new Float32Array(q.data.length).fill(1e30), dims: q.dims };
      const overflow = only(lb.diagnose(huge, huge, v), "non-finite");
      expectShown(overflow, "leaves float32", "normalise q and k");
      expect(overflow.numbers.scores).toBe(6 * length * length);
    });
  });

  describe("the call itself", () => {
    test("has the options and the errors of attention", () => {
      expectError(
        caught(() => loose(lb).diagnose(q, k, v, { isCausal: true })),
        "unknown-option",
        "causal",
      );
      expectError(
        caught(() => lb.diagnose(q, operands([1, 3, 4, 16])[1], v)),
        "batch-mismatch",
        "2",
      );
      const square = bits(length - 1, length, () => true);
      expectError(
        caught(() => lb.diagnose(q, k, v, { mask: square })),
        "mask-shape",
        `[${length - 1}, ${length}]`,
      );
      const [short] = operands([2, 3, 5, 16]);
      expectError(
        caught(() => lb.diagnose(short, k, v, { causal: true })),
        "query-offset-missing",
        "5 queries",
      );
      expectError(
        caught(() => lb.diagnose(q, k, v, { queryOffset: [1] })),
        "bad-query-offset",
        "batch of 2",
      );
    });

    test("reports as an array that prints itself, the gravest first", () => {
      const bad = { data: q.data.slice(), dims: q.dims };
      bad.data[0] = Number.NaN;
      const bias = lowBias(
        bits(length, length, (i, j) => j <= i || j < 4),
        -1e9,
      );
      const diagnosis = lb.diagnose(bad, k, v, { bias });
      expect(diagnosis.map(({ severity }) => severity)).toEqual(["error", "warning", "info"]);
      expect(Array.isArray(diagnosis)).toBe(true);
      expect(JSON.parse(JSON.stringify(diagnosis))).toHaveLength(3);
      expect(String(diagnosis).split("\n")).toHaveLength(4);
      expect(String(diagnosis)).toMatch(/^3 findings in 2 batch rows, 3 heads, 12 × 12 scores/);
    });

    test("changes no input and ignores where results were to go", () => {
      const out = { output: new Float32Array(q.data.length) };
      const before = q.data.slice();
      lb.diagnose(q, k, v, { causal: true, weights: "scores", logSumExp: true, out });
      expect(out.output.every((value) => value === 0)).toBe(true);
      expect(q.data).toEqual(before);
    });
  });
});
