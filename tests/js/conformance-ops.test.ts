/** The ONNX project's cases of the operators around attention, those that the package has, read from beside the repository. */
import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import type { Lookback } from "lookback";
import { gelu, layerNorm, rmsNorm, silu } from "../../dist/model/layers.js";
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
  /** stash_type is the type of the sums: float32, as here. */
  LayerNormalization: (lb, { attrs, tensors }) =>
    layerNorm(lb, floats(tensors.X!), {
      ...norm(attrs),
      weight: floats(tensors.W!),
      ...(tensors.B ? { bias: floats(tensors.B) } : {}),
    }),
  RMSNormalization: (lb, { attrs, tensors }) =>
    rmsNorm(lb, floats(tensors.X!), { ...norm(attrs), weight: floats(tensors.W!) }),
  Gelu: (lb, { attrs, tensors }) =>
    gelu(lb, floats(tensors.x!), { approximate: attrs.approximate === "tanh" ? "tanh" : "none" }),
  Swish(lb, { attrs, tensors }) {
    expect(attrs.alpha ?? 1).toBe(1);
    return silu(lb, floats(tensors.x!));
  },
};

function norm(attrs: OperatorCase["attrs"]): { axis: number; epsilon: number } {
  expect(attrs.stash_type ?? 1).toBe(1);
  return { axis: (attrs.axis as number | undefined) ?? -1, epsilon: (attrs.epsilon as number | undefined) ?? 1e-5 };
}

const RULES: Record<string, string> = { Softmax: "R22, R4", RotaryEmbedding: "R17" };

if (!present) test.skip("ONNX conformance: ../shared/conformance is not beside this checkout", () => {});
else {
  test("every operator of the ONNX cases is run", () => {
    expect([...new Set(cases.map(({ op }) => op))].sort()).toEqual(Object.keys(RUNS).sort());
  });

  describeVariants((lb) => {
    for (const item of cases) {
      test(`${RULES[item.op] ?? "R22"}: ${item.name}`, () => {
        const expected = item.tensors[item.outputs[0]!]!;
        const found = RUNS[item.op]!(lb, item);
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
