/** lb.diagnose: what each finding says of scales and of whole heads. */
import { describe, expect, test } from "@jest/globals";
import type { Tensor } from "lookback";
import { codes, expectHealthy, expectShown, find, normal, only, operands } from "./support/diagnosis.js";
import { describeVariants } from "./support/instances.js";

describeVariants((lb) => {
  const [heads, length, headDim] = [4, 32, 32];
  const [q, k, v] = operands([2, heads, length, headDim]);
  const places = length * headDim;

  /** A copy with one head (in every batch row) rewritten. */
  const withHead = ({ data, dims }: Tensor, head: number, write: (values: Float32Array, b: number) => void): Tensor => {
    const copy = data.slice();
    for (let b = 0; b < 2; b++) write(copy.subarray((b * heads + head) * places, (b * heads + head + 1) * places), b);
    return { data: copy, dims };
  };

  describe("scale-forgotten", () => {
    test.each([1, Math.sqrt(headDim), headDim])("scale %d collapses the weights", (scale) => {
      for (const causal of [false, true]) {
        const finding = only(lb.diagnose(q, k, v, { scale, causal }), "scale-forgotten");
        expect(finding.severity).toBe("warning");
        expect(finding.numbers).toMatchObject({ scale, usual: 1 / Math.sqrt(headDim) });
        expect(finding.numbers.evenness).toBeLessThan(0.5);
        expectShown(finding, "1/√headDim = 0.177", "all but one-hot", "Leave scale out");
      }
    });

    test("scale 1/headDim makes them all but equal", () => {
      const finding = only(lb.diagnose(q, k, v, { scale: 1 / headDim }), "scale-forgotten");
      expectShown(finding, "Scale 0.0313 is 0.177 times", "all but equal", "1/√headDim");
    });

    test("is silent where q was scaled before, where the head is small, and where weights are healthy", () => {
      const scaled = { data: q.data.map((value) => value / Math.sqrt(headDim)), dims: q.dims };
      expectHealthy(lb.diagnose(scaled, k, v, { scale: 1 }));
      expectHealthy(lb.diagnose(...operands([2, 2, 16, 4]), { scale: 1 }));
      expectHealthy(lb.diagnose(q, k, v, { scale: 0.25 }));
      const large = { data: q.data.map((value) => value * Math.sqrt(headDim)), dims: q.dims };
      expectHealthy(lb.diagnose(large, k, v, { scale: 1 / headDim })); // as in µP, with projections to match
    });
  });

  describe("saturated", () => {
    test("names the heads, and how far apart the scores are", () => {
      const all = only(lb.diagnose({ data: q.data.map((value) => 200 * value), dims: q.dims }, k, v), "saturated");
      expect(all.heads).toEqual([0, 1, 2, 3]);
      expect(all.numbers.spread).toBeGreaterThan(400);
      expectShown(all, "4 of 4 heads", "scores of a row lie", "Normalise q and k");
      const one = withHead(q, 2, (values) => values.set(values.map((value) => 200 * value)));
      const finding = only(lb.diagnose(one, k, v, { causal: true }), "saturated");
      expect(finding).toMatchObject({ severity: "warning", heads: [2] });
      expectShown(finding, "(head 2)");
    });

    test("is silent about a head that looks sharply, yet within the range of softmax", () => {
      // Every query is nearly its own key: scores of 12 on the diagonal and about 0 elsewhere.
      const own = { data: k.data.map((value) => value * 2), dims: k.dims };
      const { weights } = lb.attention(own, k, v, { weights: "softmax" });
      expect(weights.data[0]).toBeGreaterThan(0.9);
      expectHealthy(lb.diagnose(own, k, v));
    });
  });

  describe("uniform-heads", () => {
    test("one head with q of zeros is worth a note, all heads a warning", () => {
      const one = only(
        lb.diagnose(
          withHead(q, 1, (values) => values.fill(0)),
          k,
          v,
        ),
        "uniform-heads",
      );
      expect(one).toMatchObject({ severity: "info", heads: [1], numbers: { heads: 1 } });
      expectShown(one, "1 of 4 heads (head 1)", "mean of the values", "scaled twice");
      const all = only(
        lb.diagnose({ data: q.data.map((value) => value / 50), dims: q.dims }, k, v, { causal: true }),
        "uniform-heads",
      );
      expect(all).toMatchObject({ severity: "warning", heads: [0, 1, 2, 3] });
    });

    test("is silent about a single head that is merely mild", () => {
      expectHealthy(lb.diagnose({ data: q.data.map((value) => value / 3), dims: q.dims }, k, v));
    });
  });

  describe("sink-heads", () => {
    /** Key `key` in the direction that all queries of the head share. */
    const sunk = (head: number, key: number): [Tensor, Tensor] => [
      withHead(q, head, (values) => {
        for (let i = 0; i < length; i++) values[i * headDim] = 6;
      }),
      withHead(k, head, (values) =>
        values.fill(0, key * headDim, (key + 1) * headDim).fill(6, key * headDim, key * headDim + 1),
      ),
    ];

    test("names the heads and the token that has most of the weight", () => {
      for (const key of [0, 5]) {
        const finding = only(lb.diagnose(...sunk(3, key), v, { causal: true }), "sink-heads");
        expect(finding).toMatchObject({ severity: "info", heads: [3], keys: [key] });
        expect(finding.numbers.share).toBeGreaterThan(0.8);
        expectShown(finding, `(head 3, key ${key})`, "first token", "much larger");
      }
    });

    test("is silent about a head in which every row looks at itself", () => {
      expectHealthy(lb.diagnose({ data: k.data.map((value) => value * 2), dims: k.dims }, k, v, { causal: true }));
    });
  });

  describe("copied-heads", () => {
    const copied = (tensor: Tensor, from: number, to: number, noise = 0): Tensor => {
      const random = normal([2 * places], 77, noise).data;
      return withHead(tensor, to, (values, b) => {
        const start = (b * heads + from) * places;
        values.set(values.map((_, at) => tensor.data[start + at]! + random[b * places + at]!));
      });
    };

    test("names heads with equal weights", () => {
      const finding = only(lb.diagnose(copied(q, 0, 2), copied(k, 0, 2), v, { causal: true }), "copied-heads");
      expect(finding).toMatchObject({ severity: "info", heads: [0, 2], numbers: { difference: 0 } });
      expectShown(finding, "2 of 4 heads (heads 0, 2)", "weights are the same", "different rows");
      const near = only(lb.diagnose(copied(q, 1, 3, 1e-4), copied(k, 1, 3, 1e-4), v), "copied-heads");
      expect(near.heads).toEqual([1, 3]);
      expect(near.numbers.difference).toBeGreaterThan(0);
    });

    test("one finding for a group of copies, a warning where all heads are one", () => {
      const of = (tensor: Tensor) => copied(copied(copied(tensor, 0, 1), 0, 2), 0, 3);
      const finding = only(lb.diagnose(of(q), of(k), v), "copied-heads");
      expect(finding).toMatchObject({ severity: "warning", heads: [0, 1, 2, 3] });
    });

    test("is silent about heads that are alike, not equal", () => {
      expectHealthy(lb.diagnose(copied(q, 0, 2, 0.3), copied(k, 0, 2, 0.3), v));
      const same = lb.diagnose(copied(q, 0, 2), k, v); // grouped by accident, but with keys of their own
      expectHealthy(same);
    });
  });

  test("a few rows are no habit: one query over many keys is not judged", () => {
    const [one, keys, values] = operands([1, heads, 1, headDim], length);
    one.data.fill(0);
    expectHealthy(lb.diagnose(one, keys, values));
    expect(codes(lb.diagnose(one, keys, values, { scale: 1 }))).toEqual([]);
  });

  test("findings of several kinds stand side by side", () => {
    const zero = withHead(q, 1, (values) => values.fill(0));
    const diagnosis = lb.diagnose(
      withHead(zero, 2, (values) => values.set(values.map((value) => 200 * value))),
      k,
      v,
    );
    expect(codes(diagnosis)).toEqual(["saturated", "uniform-heads"]);
    expect(find(diagnosis, "uniform-heads").heads).toEqual([1]);
  });
});
