/** M4: the multi-head layer against PyTorch's (tests/fixtures/make_torch_fixtures.py) and against the reference. */
import { readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import type { LayerForwardOptions, MultiHeadAttentionConfig } from "lookback";
import { holds, worst } from "./accuracy-check.ts";
import type { ReferenceOptions } from "./reference.ts";
import { randomFloats, randomSource } from "./reference-data.ts";
import { type LayerShape, parametersOfTorch, referenceLayer } from "./reference-layer.ts";
import { describeVariants } from "./support/instances.ts";

interface StoredArray {
  dims: number[];
  data: (number | "Inf" | "-Inf")[];
}

interface TorchCase {
  name: string;
  config: Required<Omit<MultiHeadAttentionConfig, "kvHeads">>;
  causal: boolean;
  state: Record<string, StoredArray>;
  inputs: Partial<Record<"x" | "memory" | "memoryValues" | "mask" | "bias" | "keyMask", StoredArray>>;
  output: StoredArray;
  weights: StoredArray;
}

const fixtures = new URL("../fixtures/torch_layers.json", import.meta.url);
const torchCases: TorchCase[] = JSON.parse(readFileSync(fixtures, "utf8")).cases;

const infinities = { Inf: Infinity, "-Inf": -Infinity };
const floats = ({ dims, data }: StoredArray) => ({
  data: Float32Array.from(data, (x) => (typeof x === "string" ? infinities[x] : x)),
  dims,
});
const bits = ({ dims, data }: StoredArray) => ({ data: Uint8Array.from(data as number[]), dims });
const floatsOfAll = (arrays: Record<string, StoredArray>) =>
  Object.fromEntries(Object.entries(arrays).map(([name, array]) => [name, floats(array)]));
/** An error allowed everywhere: `part` of the largest number expected. */
const within = (part: number, expected: Float32Array | Float64Array) => {
  const allowed = part * Array.from(expected).reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  return () => allowed;
};

/** The masks of a fixture as options of the layer, which are those of the reference too. */
function maskOptions({ causal, inputs }: TorchCase): LayerForwardOptions & ReferenceOptions {
  return {
    ...(causal ? { causal } : {}),
    ...(inputs.mask ? { mask: bits(inputs.mask) } : {}),
    ...(inputs.bias ? { bias: floats(inputs.bias) } : {}),
    ...(inputs.keyMask ? { keyMask: bits(inputs.keyMask) } : {}),
  };
}

for (const item of torchCases) {
  test(`M4: the reference's layer equals PyTorch's: ${item.name}`, () => {
    const [x, expected] = [floats(item.inputs.x!), floats(item.output)];
    const keys = item.inputs.memory ? floats(item.inputs.memory) : x;
    const values = item.inputs.memoryValues ? floats(item.inputs.memoryValues) : keys;
    const [batch, queryLength] = x.dims as [number, number];
    const shape: LayerShape = {
      ...item.config,
      kvHeads: item.config.heads,
      batch,
      queryLength,
      keyLength: keys.dims[1]!,
    };
    const state = Object.fromEntries(Object.entries(item.state).map(([name, array]) => [name, floats(array).data]));
    const found = referenceLayer(
      parametersOfTorch(state, shape),
      shape,
      x.data,
      keys.data,
      values.data,
      maskOptions(item),
    );
    holds(worst(found.output, expected.data, within(2e-6, expected.data)), "output");
    holds(
      worst(found.softmax, floats(item.weights).data, () => 1e-6),
      "weights",
    );
  });
}

describeVariants((lb) => {
  for (const item of torchCases) {
    test(`M2, M4${item.inputs.keyMask ? ", R5" : ""}: the layer equals PyTorch's: ${item.name}`, () => {
      const layer = lb.multiHeadAttention(item.config);
      try {
        const { x, memory, memoryValues } = floatsOfAll(item.inputs as Record<string, StoredArray>);
        layer.load(floatsOfAll(item.state));
        const options: LayerForwardOptions = {
          ...(maskOptions(item) as LayerForwardOptions),
          ...(memory ? { memory } : {}),
          ...(memoryValues ? { memoryValues } : {}),
          weights: "softmax",
        };
        const { output, weights } = layer.forward(x!, options);
        const [expected, expectedWeights] = [floats(item.output), floats(item.weights)];
        expect(output.dims).toEqual(expected.dims);
        expect(weights?.dims).toEqual(expectedWeights.dims);
        holds(worst(output.data, expected.data, within(1e-5, expected.data)), "output");
        holds(
          worst(weights!.data, expectedWeights.data, () => 1e-5),
          "weights",
        );
      } finally {
        layer.dispose();
      }
    });

    test(`M3: parameters come back under PyTorch's names with the bits they were loaded with: ${item.name}`, () => {
      const layer = lb.multiHeadAttention(item.config);
      try {
        const state = floatsOfAll(item.state);
        layer.load(state);
        const saved = layer.state();
        expect(Object.keys(saved).sort()).toEqual(Object.keys(state).sort());
        for (const [name, { data, dims }] of Object.entries(state)) {
          expect(saved[name]!.dims).toEqual(dims);
          expect(Array.from(saved[name]!.data)).toEqual(Array.from(data));
        }
      } finally {
        layer.dispose();
      }
    });
  }

  test("M1, R11: fewer key/value heads, widths of their own and odd lengths equal the reference", () => {
    const shapes: LayerShape[] = [
      { batch: 2, queryLength: 5, keyLength: 5, embedDim: 12, heads: 4, kvHeads: 2, keyDim: 12, valueDim: 12 },
      { batch: 1, queryLength: 1, keyLength: 37, embedDim: 24, heads: 3, kvHeads: 1, keyDim: 7, valueDim: 10 },
      { batch: 3, queryLength: 33, keyLength: 17, embedDim: 66, heads: 6, kvHeads: 3, keyDim: 66, valueDim: 5 },
      { batch: 1, queryLength: 70, keyLength: 70, embedDim: 96, heads: 12, kvHeads: 12, keyDim: 96, valueDim: 96 },
    ];
    shapes.forEach((shape, n) => {
      const { batch, queryLength, keyLength, embedDim, heads, kvHeads, keyDim, valueDim } = shape;
      const random = randomSource(n);
      const tensor = (dims: number[], size = 1) => ({
        data: randomFloats(
          random,
          dims.reduce((a, b) => a * b, 1),
          size,
        ),
        dims,
      });
      const kvWidth = (embedDim / heads) * kvHeads;
      const same = keyDim === embedDim && valueDim === embedDim;
      const state = {
        ...(same
          ? { in_proj_weight: tensor([embedDim + 2 * kvWidth, embedDim], 0.3) }
          : {
              q_proj_weight: tensor([embedDim, embedDim], 0.3),
              k_proj_weight: tensor([kvWidth, keyDim], 0.3),
              v_proj_weight: tensor([kvWidth, valueDim], 0.3),
            }),
        in_proj_bias: tensor([embedDim + 2 * kvWidth]),
        "out_proj.weight": tensor([embedDim, embedDim], 0.3),
        "out_proj.bias": tensor([embedDim]),
      };
      const layer = lb.multiHeadAttention({ embedDim, heads, kvHeads, keyDim, valueDim });
      try {
        layer.load(state);
        const x = tensor([batch, queryLength, embedDim]);
        const cross = keyDim !== embedDim || valueDim !== embedDim || queryLength !== keyLength;
        const memory = cross ? tensor([batch, keyLength, keyDim]) : x;
        const memoryValues = keyDim === valueDim ? memory : tensor([batch, keyLength, valueDim]);
        const options = { causal: true, queryOffset: "end" } as const;
        const sources = cross ? { memory, ...(keyDim === valueDim ? {} : { memoryValues }) } : {};
        const found = layer.forward(x, { ...options, ...sources });
        const parameters = parametersOfTorch(
          Object.fromEntries(Object.entries(state).map(([k, { data }]) => [k, data])),
          shape,
        );
        const expected = referenceLayer(parameters, shape, x.data, memory.data, memoryValues.data, options);
        holds(worst(found.output.data, expected.output, within(1e-5, expected.output)), `shape ${n}`);
      } finally {
        layer.dispose();
      }
    });
  });
});
