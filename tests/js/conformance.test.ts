/** The ONNX project's own cases of Attention (opset 23 and 24), read from beside the repository where they are. */
import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import { holds, worst } from "./accuracy-check.ts";
import { KINDS, kindOf, numbers, type OnnxCase, type OnnxTensor, referCase, runCase } from "./onnx-cases.ts";
import { foldHeads } from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

const file = new URL("../../../shared/conformance/onnx-attention.json", import.meta.url);
const present = existsSync(file);
const cases: OnnxCase[] = present ? JSON.parse(readFileSync(file, "utf8")) : [];
/** The cases' numbers are float32 results of numpy, whose inputs lie in [0, 1). */
const TOLERANCE = 2e-6;

/** Float32 sums of up to a few dozen products: relative where a number is large, absolute near 0; ONNX's lowest number stands for −∞. */
function expectNumbers(actual: ArrayLike<number> | undefined, expected: OnnxTensor, what: string): void {
  const wanted = numbers(expected).map((x) => (x <= -3.4e38 ? -Infinity : x));
  const allowed = (n: number) => TOLERANCE * Math.max(1, Math.abs(wanted[n]!));
  holds(worst(actual ?? [], wanted, allowed), what);
}

if (!present) test.skip("ONNX conformance: ../shared/conformance is not beside this checkout", () => {});
else {
  test("R1: all 46 ONNX cases are here, with nothing in them that the runner does not know", () => {
    expect(cases).toHaveLength(46);
    for (const { op, attrs, inputs, outputs } of cases) {
      expect(op).toBe("Attention");
      const known = ["is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softcap"];
      expect(Object.keys(attrs).filter((name) => !known.includes(name))).toEqual([]);
      const inputNames = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen", ""];
      expect(inputs.filter((name) => !inputNames.includes(name))).toEqual([]);
      const outputNames = ["Y", "present_key", "present_value", "qk_matmul_output", ""];
      expect(outputs.filter((name) => !outputNames.includes(name))).toEqual([]);
    }
  });

  test("R5, R16: the reference gives the results of all cases", () => {
    for (const item of cases) {
      const { result, shape, keys, values } = referCase(item);
      const { batch, heads, queryLength, valueDim } = shape;
      const { Y, qk_matmul_output, present_key, present_value } = item.tensors;
      const folded = Y!.dims.length === 3;
      const output = folded ? foldHeads(result.output, batch, heads, queryLength, valueDim) : result.output;
      expectNumbers(output, Y!, `${item.name}: Y`);
      const kind = kindOf(item);
      if (kind) expectNumbers(result[kind], qk_matmul_output!, `${item.name}: qk_matmul_output`);
      if (present_key) expectNumbers(keys, present_key, `${item.name}: present_key`);
      if (present_value) expectNumbers(values, present_value, `${item.name}: present_value`);
    }
  });

  describeVariants((lb) => {
    for (const item of cases) {
      test(`${rulesOf(item)}: ${item.name}`, () => {
        const { Y, qk_matmul_output, present_key, present_value } = item.tensors;
        const { raw, present: stored } = runCase(lb, item);
        expect(raw.output.dims).toEqual(Y!.dims);
        expectNumbers((raw.output as { data: Float32Array }).data, Y!, "Y");
        if (item.outputs.includes("qk_matmul_output")) {
          expect(raw.weights?.dims).toEqual(qk_matmul_output!.dims);
          expectNumbers(raw.weights?.data, qk_matmul_output!, "qk_matmul_output");
        }
        for (const [expected, actual] of [
          [present_key, stored?.keys],
          [present_value, stored?.values],
        ] as const) {
          if (!expected) continue;
          expect(actual?.dims).toEqual(expected.dims);
          expect(Array.from(actual!.data)).toEqual(Array.from(Float32Array.from(numbers(expected))));
        }
      });
    }
    test("R12: the cases ask for every qk_matmul_output_mode but the one that is only capped", () => {
      expect(new Set(cases.map(kindOf))).toEqual(new Set([undefined, ...KINDS.filter((kind) => kind !== "capped")]));
    });
  });
}

/** The rules a case speaks of, for its name. */
function rulesOf({ attrs, inputs, outputs, tensors }: OnnxCase): string {
  const rules = ["R1"];
  if (attrs.scale !== undefined) rules.push("R2");
  if (inputs.includes("attn_mask")) rules.push(tensors.attn_mask!.dtype === "bool" ? "R3" : "R4");
  if (inputs.includes("nonpad_kv_seqlen")) rules.push("R5");
  if (attrs.is_causal) rules.push("R6");
  const grouped =
    tensors.Q!.dims.length === 4 ? tensors.Q!.dims[1] !== tensors.K!.dims[1] : attrs.q_num_heads !== attrs.kv_num_heads;
  if (grouped) rules.push("R11");
  if (outputs.includes("qk_matmul_output")) rules.push("R12");
  if (inputs.includes("past_key")) rules.push("R16");
  return rules.join(" ");
}
