/** What the operator's text says (opset 24) and the given cases leave out, held against the reference on random cases and by hand. */
import { expect, test } from "@jest/globals";
import { expectSameBits, expectWeights, holds, rowBound, worst } from "./accuracy-check.ts";
import { kindOf, type OnnxCase, type OnnxTensor, referCase, runCase } from "./onnx-cases.ts";
import { describeCase, randomCase } from "./onnx-random.ts";
import { randomFloats, randomSource } from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

const CASES = 400;
const cases = Array.from({ length: CASES }, (_, n) => randomCase(5000 + n, { partialMasks: true }));
const references = cases.map(referCase);

const random = randomSource(24);
const draw = (...dims: number[]): OnnxTensor => ({
  dtype: "f32",
  dims,
  data: randomFloats(
    random,
    dims.reduce((a, b) => a * b, 1),
  ),
});
const bool = (dims: number[], data: number[]): OnnxTensor => ({ dtype: "bool", dims, data });
const INPUTS = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"];

function makeCase(tensors: Record<string, OnnxTensor>, attrs: OnnxCase["attrs"] = {}): OnnxCase {
  const inputs = INPUTS.map((name) => (name in tensors ? name : ""));
  const outputs = [
    "Y",
    "",
    "",
    "qk_matmul_output" in attrs || attrs.qk_matmul_output_mode !== undefined ? "qk_matmul_output" : "",
  ];
  return { op: "Attention", name: "a case by hand", opset: 24, attrs, inputs, outputs, tensors };
}

describeVariants((lb) => {
  test(`R1–R6, R11, R12, R16: ${CASES} random cases of everything the operator takes equal the reference`, () => {
    cases.forEach((item, n) => {
      const { result, shape, keys, values } = references[n]!;
      const found = runCase(lb, item);
      const allowed = (at: number) => {
        const row = Math.floor(at / shape.valueDim);
        return rowBound(result, row) + 1e-5 * result.largestValue[row]!;
      };
      holds(worst(found.output, result.output, allowed), describeCase(item));
      const kind = kindOf(item);
      if (kind) expectWeights(found.weights, kind, result, shape, describeCase(item));
      if (found.present) {
        expectSameBits(found.present.keys, keys, "present_key");
        expectSameBits(found.present.values, values, "present_value");
      }
    });
  });

  test("R3, R4: a mask with fewer columns than keys hides the rest, whether it is boolean or added", () => {
    const tensors = { Q: draw(1, 2, 3, 8), K: draw(1, 2, 6, 8), V: draw(1, 2, 6, 8) };
    const short = bool([3, 4], [1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0]);
    const rows = [0, 1, 2].map((i) => Array.from({ length: 4 }, (_, j) => (short.data as number[])[i * 4 + j]!));
    const whole = bool(
      [3, 6],
      rows.flatMap((row) => [...row, 0, 0]),
    );
    const expected = runCase(lb, makeCase({ ...tensors, attn_mask: whole })).output;
    expectSameBits(runCase(lb, makeCase({ ...tensors, attn_mask: short })).output, expected, "boolean");
    const added = {
      dtype: "f32" as const,
      dims: [3, 4],
      data: (short.data as number[]).map((x) => (x ? 0 : ("-Inf" as const))),
    };
    expectSameBits(runCase(lb, makeCase({ ...tensors, attn_mask: added })).output, expected, "added");
  });

  test("R6, R16: past, causal and a mask meet: query i sees key j iff j ≤ past + i and the mask allows it", () => {
    const [past, count] = [3, 4];
    const seen = Array.from({ length: count * (past + count) }, (_, n) => Number(n % 3 !== 0));
    const { weights } = runCase(
      lb,
      makeCase(
        {
          ...{ Q: draw(2, count, 12), K: draw(2, count, 6), V: draw(2, count, 10) },
          ...{ past_key: draw(2, 2, past, 3), past_value: draw(2, 2, past, 5) },
          attn_mask: bool([count, past + count], seen),
        },
        { q_num_heads: 4, kv_num_heads: 2, is_causal: 1, qk_matmul_output_mode: 3 },
      ),
    );
    weights!.forEach((w, n) => {
      const [i, j] = [Math.floor(n / (past + count)) % count, n % (past + count)];
      expect(w > 0).toBe(j <= past + i && seen[i * (past + count) + j] === 1);
    });
  });

  test("R5, R6: nonpad_kv_seqlen puts the last query at the last valid key of its row, and hides what is behind", () => {
    const lengths = [6, 3, 1, 0];
    const { weights } = runCase(
      lb,
      makeCase(
        {
          ...{ Q: draw(4, 1, 3, 8), K: draw(4, 1, 6, 8), V: draw(4, 1, 6, 8) },
          nonpad_kv_seqlen: { dtype: "i64", dims: [4], data: lengths },
        },
        { is_causal: 1, qk_matmul_output_mode: 3 },
      ),
    );
    weights!.forEach((w, n) => {
      const [b, i, j] = [Math.floor(n / 18), Math.floor(n / 6) % 3, n % 6];
      expect(w > 0).toBe(j < lengths[b]! && j <= i + lengths[b]! - 3);
    });
  });

  test("R4, R12: a cap comes before the mask: masked places stay −∞, visible ones stay within the cap plus their bias", () => {
    const tensors = { Q: draw(1, 2, 4, 16), K: draw(1, 2, 5, 16), V: draw(1, 2, 5, 16) };
    const data = Array.from({ length: 20 }, (_, n) => (n % 5 === n >> 2 ? ("-Inf" as const) : (n % 3) - 1));
    const mask: OnnxTensor = { dtype: "f32", dims: [4, 5], data };
    const call = (mode: number) =>
      runCase(lb, makeCase({ ...tensors, attn_mask: mask }, { scale: 9, softcap: 0.5, qk_matmul_output_mode: mode }));
    const [scores, capped, masked, softmax] = [0, 1, 2, 3].map((mode) => call(mode).weights!);
    capped!.forEach((x, n) => {
      expect(Math.abs(x)).toBeLessThanOrEqual(0.5);
      expect(Math.abs(x - 0.5 * Math.tanh(scores![n]! / 0.5))).toBeLessThan(2e-7);
      const added = data[n % 20]!;
      if (added === "-Inf") expect([masked![n], softmax![n]]).toEqual([-Infinity, 0]);
      else expect(Math.abs(masked![n]! - (x + added))).toBeLessThan(2e-7);
    });
    expect(scores!.some((x) => Math.abs(x) > 1)).toBe(true);
  });

  test("R3: boolean masks of every rank broadcast from the right, over queries and heads as well", () => {
    const tensors = { Q: draw(2, 4, 3, 8), K: draw(2, 2, 5, 8), V: draw(2, 2, 5, 8) };
    const full = (read: (b: number, h: number, i: number, j: number) => number) =>
      bool(
        [2, 4, 3, 5],
        Array.from({ length: 120 }, (_, n) =>
          read(Math.floor(n / 60), Math.floor(n / 15) % 4, Math.floor(n / 5) % 3, n % 5),
        ),
      );
    const bit = (...index: number[]) => Number((index.reduce((sum, x, d) => sum + x * (d + 2), 1) * 7) % 3 > 0);
    const ranks: [number[], (b: number, h: number, i: number, j: number) => number[]][] = [
      [[3, 5], (_b, _h, i, j) => [i, j]],
      [[1, 5], (_b, _h, _i, j) => [0, j]],
      [[4, 3, 5], (_b, h, i, j) => [h, i, j]],
      [[1, 3, 5], (_b, _h, i, j) => [0, i, j]],
      [[2, 1, 1, 5], (b, _h, _i, j) => [b, 0, 0, j]],
      [[1, 4, 3, 5], (_b, h, i, j) => [0, h, i, j]],
      [[2, 1, 3, 5], (b, _h, i, j) => [b, 0, i, j]],
    ];
    for (const [dims, index] of ranks) {
      const count = dims.reduce((a, b) => a * b, 1);
      const data = new Array<number>(count);
      for (let n = 0; n < count; n++) {
        const places: number[] = [];
        for (let d = dims.length - 1, rest = n; d >= 0; rest = Math.floor(rest / dims[d]!), d--)
          places.unshift(rest % dims[d]!);
        data[n] = bit(...places);
      }
      const short = runCase(lb, makeCase({ ...tensors, attn_mask: bool(dims, data) })).output;
      const whole = runCase(lb, makeCase({ ...tensors, attn_mask: full((...at) => bit(...index(...at))) })).output;
      expectSameBits(short, whole, `mask [${dims}]`);
    }
  });
});
