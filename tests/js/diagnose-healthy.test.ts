/** lb.diagnose stays silent where all is well, and looks at long inputs without L² memory. */
import { describe, expect, test } from "@jest/globals";
import { masks } from "lookback";
import { bits, expectHealthy, normal, operands } from "./support/diagnosis.js";
import { describeVariants } from "./support/instances.js";

describeVariants((lb) => {
  describe("nothing is found in", () => {
    const [q, k, v] = operands([2, 4, 24, 16]);

    test.each([2, 3, 4, 5, 8, 24, 65])("causal attention over %i tokens", (length) => {
      for (let seed = 1; seed <= 5; seed++) {
        expectHealthy(lb.diagnose(...operands([2, 4, length, 16], length, seed), { causal: true }));
        expectHealthy(lb.diagnose(...operands([2, 4, length, 64], length, seed), { mask: masks.causal(length) }));
      }
    });

    test("an encoder, which may see everything", () => {
      const diagnosis = lb.diagnose(q, k, v);
      expectHealthy(diagnosis);
      expect(diagnosis.examined).toMatchObject({ batch: 2, heads: 4, queryLength: 24, keyLength: 24, rows: 24 });
      expect(diagnosis.examined.futureWeight).toBeGreaterThan(0.5);
      expect(String(diagnosis)).toContain("to later keys");
    });

    test("causal attention, where no weight goes to the future", () => {
      const diagnosis = lb.diagnose(q, k, v, { causal: true });
      expect(diagnosis.examined.futureWeight).toBe(0);
      expect(String(diagnosis)).not.toContain("later keys");
    });

    test("cross-attention, with and without a mask of its own", () => {
      for (const [queryLength, keyLength] of [
        [5, 24],
        [24, 5],
        [1, 24],
      ] as const) {
        const own = operands([2, 4, queryLength, 16], keyLength);
        const diagnosis = lb.diagnose(...own);
        expectHealthy(diagnosis);
        expect(diagnosis.examined.futureWeight).toBeUndefined();
        expectHealthy(lb.diagnose(...own, { mask: bits(queryLength, keyLength, (i, j) => (i + j) % 3 !== 0) }));
        expectHealthy(lb.diagnose(...own, { causal: true, queryOffset: queryLength > keyLength ? "start" : "end" }));
      }
    });

    test("sliding windows, symmetric and causal, as masks", () => {
      expectHealthy(lb.diagnose(q, k, v, { mask: bits(24, 24, (i, j) => Math.abs(i - j) <= 2) }));
      expectHealthy(lb.diagnose(q, k, v, { mask: bits(24, 24, (i, j) => j <= i && j > i - 6) }));
      expectHealthy(lb.diagnose(q, k, v, { mask: bits(24, 24, (i, j) => Math.abs(i - j) <= 2 || i === 0 || j === 0) }));
    });

    test("documents packed into one row, and a token that does not see itself", () => {
      const same = (i: number, j: number) => Math.floor(i / 5) === Math.floor(j / 5);
      expectHealthy(lb.diagnose(q, k, v, { mask: bits(24, 24, same) }));
      expectHealthy(lb.diagnose(q, k, v, { mask: bits(24, 24, (i, j) => same(i, j) && j <= i) }));
      expectHealthy(lb.diagnose(q, k, v, { mask: bits(24, 24, (i, j) => i !== j) }));
    });

    test.each([1, 2, 9, 20])("padding of all but %i tokens, right and left, with and without causal", (real) => {
      for (const sees of [(j: number) => j < real, (j: number) => j >= 24 - real]) {
        const keys = bits(1, 24, (_, j) => sees(j));
        const square = bits(24, 24, (_, j) => sees(j));
        const both = bits(24, 24, (i, j) => sees(i) && sees(j)); // padded rows are hidden as well
        for (const mask of [keys, square, both]) {
          expectHealthy(lb.diagnose(q, k, v, { mask }));
          expectHealthy(lb.diagnose(q, k, v, { mask, causal: true }));
          expectHealthy(lb.diagnose(q, k, v, { mask: masks.causal(24).and(mask) }));
        }
      }
    });

    test("a bias of distances and one of −∞", () => {
      const distance = Float32Array.from({ length: 576 }, (_, at) => -0.3 * Math.abs(Math.floor(at / 24) - (at % 24)));
      expectHealthy(lb.diagnose(q, k, v, { bias: { data: distance, dims: [24, 24] } }));
      expectHealthy(lb.diagnose(q, k, v, { bias: masks.causal(24).toBias() }));
    });

    test("grouped queries, 3-D layouts, wasm tensors and empty lengths", () => {
      const x = normal([2, 24, 64], 9);
      const memory = normal([2, 24, 32], 10);
      expectHealthy(lb.diagnose(x, memory, memory, { heads: 4, kvHeads: 2, causal: true }));
      const [a, b, c] = operands([1, 2, 6, 8]).map(({ data, dims }) => lb.tensor(data, dims));
      const before = lb.memory();
      expectHealthy(lb.diagnose(a!, b!, c!, { causal: true }));
      expect(lb.memory().bytes).toBe(before.bytes);
      for (const tensor of [a, b, c]) tensor!.dispose();
      expectHealthy(lb.diagnose(...operands([1, 2, 0, 8])));
    });
  });

  test("R23: long inputs are looked at in slices spread evenly, with memory far below L²", () => {
    const [length, heads] = [6000, 8];
    const [q, k, v] = operands([1, heads, length, 16]);
    const before = lb.memory();
    const diagnosis = lb.diagnose(q, k, v, { causal: true });
    expectHealthy(diagnosis);
    const { rows } = diagnosis.examined;
    expect(rows).toBeGreaterThan(100);
    expect(rows).toBeLessThan(length);
    expect(String(diagnosis)).toContain(`${rows} rows were looked at`);
    const after = lb.memory();
    expect(after).toMatchObject({ bytes: before.bytes, allocations: before.allocations });
    expect(after.reserved - before.reserved).toBeLessThan((heads * length * length * 4) / 20);
  });

  test("a long input's first and last rows are among those looked at", () => {
    const [length, heads] = [6000, 8];
    const [q, k, v] = operands([1, heads, length, 16]);
    q.data.fill(Number.NaN, (length - 1) * 16, length * 16);
    q.data.fill(Number.NaN, length * 16, (length + 1) * 16);
    const finding = lb.diagnose(q, k, v, { causal: true })[0]!;
    expect(finding).toMatchObject({ code: "non-finite", heads: [0, 1], rows: [0, length - 1] });
    expect(finding.numbers).toMatchObject({ places: 2, visible: 2 });
  });
});
