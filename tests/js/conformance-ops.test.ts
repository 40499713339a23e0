/** The ONNX project's cases of the operators around attention, those that the package has, read from beside the repository. */
import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import type { Lookback } from "lookback";
import { holds, worst } from "./accuracy-check.ts";
import { floats, numbers, type OnnxTensor } from "./onnx-cases.ts";
import { describeVariants } from "./support/instances.ts";

interface OperatorCase {
  op: string;
  name: string;
  attrs: Record<string, number | string>;
  inputs: string[];
  outputs: string[];
  tensors: Record<string, OnnxTensor>;
}

const file = new URL("../../../shared/conformance/onnx-ops.json", import.meta.url);
const present = existsSync(file);
const cases: OperatorCase[] = present ? JSON.parse(readFileSync(file, "utf8")) : [];

type Run = (lb: Lookback, item: OperatorCase) => { data: Float32Array; dims: number[] };

const RUNS: Record<string, Run> = {
  RotaryEmbedding(lb, { attrs, inputs, tensors }) {
    const { num_heads, rotary_embedding_dim, interleaved } = attrs as Record<string, number>;
    const ids = inputs.includes("position_ids") ? tensors.position_ids! : undefined;
    return lb.rotary(floats(tensors.input!), {
      cos: floats(tensors.cos_cache!),
      sin: floats(tensors.sin_cache!),
      ...(num_heads ? { heads: num_heads } : {}),
      ...(rotary_embedding_dim ? { dims: rotary_embedding_dim } : {}),
      ...(interleaved ? { interleaved: true } : {}),
      ...(ids ? { positions: { data: BigInt64Array.from(numbers(ids), BigInt), dims: ids.dims } } : {}),
    });
  },
  /** Attention's own softmax: scores of 0, and the numbers as a bias. */
  Softmax(lb, { attrs, tensors }) {
    const { data, dims } = floats(tensors.x!);
    const axis =
      ((attrs.axis as number | undefined) ?? -1) + (((attrs.axis as number | undefined) ?? -1) < 0 ? dims.length : 0);
    const size = dims[axis]!;
    const inner = dims.slice(axis + 1).reduce((a, b) => a * b, 1);
    const rows = data.length / size;
    const place = (row: number, j: number) => (Math.floor(row / inner) * size + j) * inner + (row % inner);
    const bias = Float32Array.from({ length: data.length }, (_, n) => data[place(Math.floor(n / size), n % size)]!);
    const zeros = (length: number) => ({ data: new Float32Array(length), dims: [1, 1, length, 1] });
    const { weights } = lb.attention(zeros(rows), zeros(size), zeros(size), {
      bias: { data: bias, dims: [rows, size] },
      weights: "softmax",
    });
    const result = new Float32Array(data.length);
    weights.data.forEach((w, n) => {
      result[place(Math.floor(n / size), n % size)] = w;
    });
    return { data: result, dims };
  },
};

/** Operators that belong to the decoder's layers. */
const NOT_YET: Record<string, string> = {
  LayerNormalization: "normalization",
  RMSNormalization: "normalization",
  Gelu: "activations",
  Swish: "activations",
};

if (!present) test.skip("ONNX conformance: ../shared/conformance is not beside this checkout", () => {});
else {
  test("R17: every operator of the ONNX cases is run or named as not there yet", () => {
    const operators = new Set(cases.map(({ op }) => op));
    expect([...operators].filter((op) => !(op in RUNS) && !(op in NOT_YET))).toEqual([]);
    expect([...operators].sort()).toEqual([...Object.keys(RUNS), ...Object.keys(NOT_YET)].sort());
  });

  describeVariants((lb) => {
    for (const item of cases) {
      const runs = RUNS[item.op];
      if (!runs) {
        test.todo(`${item.name}: not yet, needs ${NOT_YET[item.op]}`);
        continue;
      }
      test(`${item.op === "Softmax" ? "R22, R4" : "R17"}: ${item.name}`, () => {
        const expected = item.tensors[item.outputs[0]!]!;
        const found = runs(lb, item);
        expect(found.dims).toEqual(expected.dims);
        const wanted = numbers(expected);
        holds(
          worst(found.data, wanted, (n) => 1e-6 * Math.max(1, Math.abs(wanted[n]!))),
          item.outputs[0]!,
        );
      });
    }
  });
}
