/** Masks by themselves, and what they mean to a call. */
import { describe, expect, test } from "@jest/globals";
import { type Lookback, type Mask, type MaskTensor, masks } from "lookback";
import { tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";

const rows = (mask: Mask): string[] => String(mask).split("\n");

describe("masks", () => {
  test("R6: masks.causal(4) is the triangle, and its bias is exactly 0 on and below the diagonal and −∞ above", () => {
    const mask = masks.causal(4);
    expect(mask.dims).toEqual([4, 4]);
    expect([...mask.data]).toEqual([1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1]);
    const { data, dims } = mask.toBias();
    expect(dims).toEqual([4, 4]);
    for (let i = 0; i < 4; i++)
      for (let j = 0; j < 4; j++) expect(Object.is(data[i * 4 + j], j <= i ? 0 : -Infinity)).toBe(true);
  });

  test("R6: it draws itself, a row per query", () => {
    expect(rows(masks.causal(3))).toEqual(["■ · ·", "■ ■ ·", "■ ■ ■"]);
    expect(`${masks.causal(0)}`).toBe("(empty mask [0, 0])");
    const long = rows(masks.causal(100));
    expect(long).toHaveLength(25);
    expect(long[0]).toMatch(/^■ · .* · …$/);
    expect(long.at(-1)).toBe("⋮");
    const two = masks.from({ data: [true, false, false, true], dims: [2, 1, 2] });
    expect(rows(two)).toEqual(["■ ·", "", "· ■"]);
  });

  test("R6: lengths that differ are aligned as told", () => {
    expect(rows(masks.causal(2, 4, "start"))).toEqual(["■ · · ·", "■ ■ · ·"]);
    expect(rows(masks.causal(2, 4, "end"))).toEqual(["■ ■ ■ ·", "■ ■ ■ ■"]);
    expect(rows(masks.causal(3, 3, -1))).toEqual(["· · ·", "■ · ·", "■ ■ ·"]);
    expect(rows(masks.causal(2, 3, 5))).toEqual(["■ ■ ■", "■ ■ ■"]);
    expect(masks.causal(0, 3).dims).toEqual([0, 3]);
  });

  test("R8: and, or, not", () => {
    const [a, b] = [masks.causal(3), masks.causal(3, 3, -1)];
    expect(rows(a.and(b.not()))).toEqual(["■ · ·", "· ■ ·", "· · ■"]);
    expect(rows(b.or(a.not()))).toEqual(["· ■ ■", "■ · ■", "■ ■ ·"]);
    expect(rows(a.not().not())).toEqual(rows(a));
    const padding: MaskTensor = { data: Uint8Array.of(1, 1, 0, 1, 0, 0), dims: [2, 1, 1, 3] };
    const both = a.and(padding);
    expect(both.dims).toEqual([2, 1, 3, 3]);
    expect(rows(both)).toEqual(["■ · ·", "■ ■ ·", "■ ■ ·", "", "■ · ·", "■ · ·", "■ · ·"]);
    expect([both.visible(0, 0, 2, 1), both.visible(1, 0, 2, 1)]).toEqual([true, false]);
  });

  test("R3: a mask is what it was when it was made", () => {
    const data = Uint8Array.of(1, 0);
    const mask = masks.from({ data, dims: [1, 2] });
    data[1] = 1;
    mask.data[0] = 0;
    expect(rows(mask)).toEqual(["■ ·"]);
    expect(mask.visible(0, 0)).toBe(true);
    expect(() => (mask.dims as number[]).push(1)).toThrow();
  });

  test("R3: PyTorch's layer means the opposite, and masks.fromTorch turns it", () => {
    const torch = { data: [false, true, true, false, false, true, false, false, false], dims: [3, 3] };
    expect(rows(masks.fromTorch(torch))).toEqual(rows(masks.causal(3)));
    expect(rows(masks.fromTorch(masks.causal(3).toBias()))).toEqual(rows(masks.causal(3)));
    const stacked = masks.fromTorch({ data: Uint8Array.of(0, 1, 1, 0, 1, 1, 0, 0), dims: [4, 1, 2] }, { heads: 2 });
    expect(stacked.dims).toEqual([2, 2, 1, 2]);
    expect([...stacked.data]).toEqual([1, 0, 0, 1, 0, 0, 1, 1]);
  });
});

const x = tensor([2, 3, 4], 5);
const visible = (lb: Lookback, mask: Mask | MaskTensor): number[] =>
  Array.from(lb.attention(x, x, x, { heads: 2, mask, weights: "softmax" }).weights.data, (w) => (w > 0 ? 1 : 0));

describeVariants((lb) => {
  const bits = [1, 0, 1, 0, 1, 1, 1, 1, 0];
  const everywhere = [...bits, ...bits, ...bits, ...bits];

  test("R3: every type of mask data means the same", () => {
    const dims = [3, 3];
    const forms: (Mask | MaskTensor)[] = [
      { data: Uint8Array.from(bits), dims },
      { data: bits.map((bit) => bit === 1), dims },
      { data: Int32Array.from(bits), dims },
      { data: BigInt64Array.from(bits.map(BigInt)), dims },
      masks.from({ data: Uint8Array.from(bits), dims }),
      masks.fromTorch({ data: bits.map((bit) => bit === 0), dims }),
    ];
    for (const form of forms) expect(visible(lb, form)).toEqual(everywhere);
  });

  test("R3: every rank and every dim of 1 broadcasts", () => {
    const broadcast = (dims: number[], data: number[]) => visible(lb, { data: Uint8Array.from(data), dims });
    expect(broadcast([3], [1, 0, 1])).toEqual(new Array(12).fill([1, 0, 1]).flat());
    expect(broadcast([3, 1], [1, 0, 1])).toEqual(new Array(4).fill([1, 1, 1, 0, 0, 0, 1, 1, 1]).flat());
    expect(broadcast([2, 1, 1], [1, 0])).toEqual([
      ...Array(9).fill(1),
      ...Array(9).fill(0),
      ...Array(9).fill(1),
      ...Array(9).fill(0),
    ]);
    expect(broadcast([2, 1, 1, 1], [0, 1])).toEqual([...Array(18).fill(0), ...Array(18).fill(1)]);
    expect(broadcast([2, 1, 1, 3], [1, 0, 0, 0, 1, 1])).toEqual([
      ...Array(6).fill([1, 0, 0]).flat(),
      ...Array(6).fill([0, 1, 1]).flat(),
    ]);
    expect(broadcast([1, 2, 3, 3], [...bits, ...bits])).toEqual(everywhere);
    expect(broadcast([], [1])).toEqual(new Array(36).fill(1));
  });

  test("R6, R8: masks.causal as mask gives the bits of causal: true", () => {
    const byOption = lb.attention(x, x, x, { heads: 2, causal: true, weights: "softmax" });
    const byMask = lb.attention(x, x, x, { heads: 2, mask: masks.causal(3), weights: "softmax" });
    const byBias = lb.attention(x, x, x, { heads: 2, bias: masks.causal(3).toBias(), weights: "softmax" });
    expect(byMask).toEqual(byOption);
    expect(byBias).toEqual(byOption);
  });
});
