/** M2, R20: the gradients of a layer against central differences of the float64 reference. */
import { expect, test } from "@jest/globals";
import type { LayerBackwardOptions, MultiHeadAttentionConfig, Tensor } from "lookback";
import { expectSameBits } from "./accuracy-check.ts";
import type { ReferenceOptions } from "./reference.ts";
import { randomFloats, randomSource } from "./reference-data.ts";
import { parametersOfTorch, referenceLayer } from "./reference-layer.ts";
import type { ReferenceRotary } from "./reference-rotary.ts";
import { tensor } from "./support/helpers.ts";
import { describeVariants } from "./support/instances.ts";
import { loose, type Refusal, testRefusals } from "./support/refusals.ts";

// Taken once: inside Jest's realm a look-up of a global is slow.
const { abs, max } = Math;
const product = (dims: readonly number[]) => dims.reduce((a, b) => a * b, 1);

interface Case {
  config: MultiHeadAttentionConfig;
  x: number[];
  memory?: number[];
  memoryValues?: number[];
  options?: Omit<LayerBackwardOptions, "gradOutput" | "memory" | "memoryValues">;
}

const CASES: Record<string, Case> = {
  "self-attention": { config: { embedDim: 8, heads: 2 }, x: [2, 5, 8], options: { causal: true } },
  "grouped queries, no biases": { config: { embedDim: 8, heads: 4, kvHeads: 2, bias: false }, x: [1, 6, 8] },
  "rotary positions": {
    config: { embedDim: 8, heads: 2, rotary: { base: 100 } },
    x: [2, 5, 8],
    options: { causal: true, softcap: 2 },
  },
  "cross-attention": { config: { embedDim: 8, heads: 2 }, x: [2, 3, 8], memory: [2, 5, 8] },
  "a memory of other widths": {
    config: { embedDim: 8, heads: 2, keyDim: 6, valueDim: 5 },
    x: [2, 3, 8],
    memory: [2, 4, 6],
    memoryValues: [2, 4, 5],
    options: { keyLengths: [4, 2] },
  },
  dropout: { config: { embedDim: 8, heads: 2 }, x: [2, 5, 8], options: { dropout: { p: 0.3, seed: 4 } } },
};

describeVariants((lb) => {
  test.each(Object.entries(CASES))("M2, R20: gradients of everything that enters: %s", (_, given) => {
    const { config, options = {} } = given;
    const random = randomSource(3);
    const make = (dims: readonly number[], size = 1): Tensor => ({
      data: randomFloats(random, product(dims), size),
      dims: [...dims],
    });
    const layer = lb.multiHeadAttention(config);
    const state = Object.fromEntries(Object.entries(layer.state()).map(([name, { dims }]) => [name, make(dims, 0.6)]));
    layer.load(state);
    const x = make(given.x);
    const memory = given.memory && make(given.memory);
    const memoryValues = given.memoryValues && make(given.memoryValues);
    const gradOutput = make(given.x);
    const sources = { ...(memory && { memory }), ...(memoryValues && { memoryValues }) };
    const { gradX, gradMemory, gradMemoryValues, parameters } = layer.backward(x, {
      ...options,
      ...sources,
      gradOutput,
    } as LayerBackwardOptions);

    const [batch, queryLength] = given.x as [number, number];
    const full = { kvHeads: config.heads, keyDim: config.embedDim, valueDim: config.embedDim, ...config };
    const shape = { batch, queryLength, keyLength: (given.memory ?? given.x)[1]!, ...full };
    const positions = Array.from({ length: batch * queryLength }, (_, row) => row % queryLength);
    const rotary = config.rotary && {
      options: { ...config.rotary, dims: config.embedDim / config.heads } as ReferenceRotary,
      queryPositions: positions,
      keyPositions: positions,
    };
    const loss = (numbers: Record<string, Float64Array>) => {
      const own = numbers.memory ?? numbers.x!;
      const { output } = referenceLayer(
        parametersOfTorch(numbers, shape),
        shape,
        numbers.x!,
        own,
        numbers.memoryValues ?? own,
        options as ReferenceOptions,
        rotary,
      );
      return output.reduce((sum, value, n) => sum + value * gradOutput.data[n]!, 0);
    };
    const inputs = { x, ...sources, ...state };
    const numbers = Object.fromEntries(
      Object.entries(inputs).map(([name, { data }]) => [name, Float64Array.from(data)]),
    );
    const found: Record<string, Tensor | undefined> = {
      x: gradX,
      memory: gradMemory,
      memoryValues: gradMemoryValues,
      ...parameters,
    };
    expect(Object.keys(parameters)).toEqual(Object.keys(state));
    for (const [name, { dims }] of Object.entries(inputs)) {
      expect(found[name]?.dims).toEqual(dims);
      const values = numbers[name]!;
      const exact = values.map((middle, n) => {
        values[n] = middle + 1e-5;
        const above = loss(numbers);
        values[n] = middle - 1e-5;
        const below = loss(numbers);
        values[n] = middle;
        return (above - below) / 2e-5;
      });
      const allowed = 1e-4 * exact.reduce((most, value) => max(most, abs(value)), 0) + 1e-6;
      for (const [n, value] of exact.entries()) {
        if (!(abs(found[name]!.data[n]! - value) <= allowed))
          throw new Error(`gradient of ${name}[${n}] is ${found[name]!.data[n]}, not ${value} ± ${allowed}`);
      }
    }
    expect(gradMemory === undefined).toBe(memory === undefined);
    layer.dispose();
  });

  test("R15, M2: a batch of one has the bits that [L, embedDim] has", () => {
    const layer = lb.multiHeadAttention({ embedDim: 16, heads: 2 });
    const [x, g] = [tensor([7, 16]), tensor([7, 16], 2)];
    const flat = layer.backward(x, { gradOutput: g });
    const batch = layer.backward({ ...x, dims: [1, 7, 16] }, { gradOutput: { ...g, dims: [1, 7, 16] } });
    expect(flat.gradX.dims).toEqual([7, 16]);
    expectSameBits(flat.gradX, batch.gradX, "gradX");
    for (const [name, gradient] of Object.entries(flat.parameters))
      expectSameBits(gradient, batch.parameters[name], name);
    layer.dispose();
  });

  test("B2, M2: gradients go where out says: arrays, tensors, the operands themselves, and parameters by name", () => {
    const config = { embedDim: 8, heads: 2, keyDim: 6, valueDim: 5 };
    const layer = lb.multiHeadAttention(config);
    const [x, memory, memoryValues, gradOutput] = [
      tensor([2, 3, 8]),
      tensor([2, 4, 6], 2),
      tensor([2, 4, 5], 3),
      tensor([2, 3, 8], 4),
    ];
    const plain = layer.backward(x, { memory, memoryValues, gradOutput });
    const kept = lb.tensor(x.data, x.dims);
    const inside = lb.tensor(null, [8, 8]);
    const gradMemory = new Float32Array(2 * 4 * 6);
    const bias = tensor([24], 5);
    const held = lb.memory();
    const found = layer.backward(kept, {
      ...{ memory, memoryValues, gradOutput },
      out: {
        gradX: kept,
        gradMemory,
        gradMemoryValues: memoryValues,
        parameters: { q_proj_weight: inside, in_proj_bias: bias },
      },
    });
    expect(found.gradX).toBe(kept);
    expectSameBits(kept.read(), plain.gradX, "gradX");
    expect(found.gradMemory?.data).toBe(gradMemory);
    expectSameBits(gradMemory, plain.gradMemory, "gradMemory");
    expect(found.gradMemoryValues?.data).toBe(memoryValues.data);
    expectSameBits(memoryValues, plain.gradMemoryValues, "gradMemoryValues");
    const { q_proj_weight, in_proj_bias, ...others } = found.parameters;
    expect(q_proj_weight).toBe(inside);
    expectSameBits(inside.read(), plain.parameters.q_proj_weight, "q_proj_weight");
    expect((in_proj_bias as Tensor).data).toBe(bias.data);
    expectSameBits(bias, plain.parameters.in_proj_bias, "in_proj_bias");
    expect(Object.keys(found.parameters)).toEqual(Object.keys(plain.parameters));
    for (const [name, gradient] of Object.entries(others))
      expectSameBits(gradient as Tensor, plain.parameters[name], name);
    expect(lb.memory()).toMatchObject({ bytes: held.bytes, allocations: held.allocations });
    for (const each of [kept, inside, layer]) each.dispose();
  });

  test("B2: the stacked weights of self-attention go into one tensor, whatever their parts", () => {
    const layer = lb.multiHeadAttention({ embedDim: 24, heads: 4, kvHeads: 2 });
    const [x, gradOutput] = [tensor([1, 5, 24]), tensor([1, 5, 24], 2)];
    const plain = layer.backward(x, { gradOutput, causal: true });
    const inside = lb.tensor(null, plain.parameters.in_proj_weight!.dims);
    const again = { in_proj_weight: inside, in_proj_bias: plain.parameters.in_proj_bias!.data.slice() };
    for (let round = 0; round < 2; round++) {
      layer.backward(x, { gradOutput, causal: true, out: { gradX: gradOutput, parameters: again } });
      expectSameBits(inside.read(), plain.parameters.in_proj_weight, "in_proj_weight");
      expectSameBits(again.in_proj_bias, plain.parameters.in_proj_bias!.data, "in_proj_bias");
      expectSameBits(gradOutput, plain.gradX, "gradX");
      gradOutput.data.set(tensor([1, 5, 24], 2).data);
    }
    inside.dispose();
    layer.dispose();
  });

  const x = tensor([1, 4, 8]);
  const withLayer = (own: typeof lb, action: (layer: ReturnType<typeof lb.multiHeadAttention>) => unknown) => {
    const layer = own.multiHeadAttention({ embedDim: 8, heads: 2 });
    try {
      action(layer);
    } finally {
      layer.dispose();
    }
  };
  const REFUSALS: Refusal[] = [
    [
      "B4: no gradient of the output",
      "bad-option",
      ["gradOutput is missing"],
      (own) => withLayer(own, (layer) => loose(layer as never).backward(x, {})),
    ],
    [
      "B4: a gradient of another shape",
      "gradient-shape",
      ["backward: gradOutput", "[1, 3, 8]", "[1, 4, 8]"],
      (own) => withLayer(own, (layer) => layer.backward(x, { gradOutput: tensor([1, 3, 8]) })),
    ],
    [
      "B4: a projected memory",
      "bad-option",
      ["projected memory"],
      (own) =>
        withLayer(own, (layer) => {
          const memory = layer.project(x);
          try {
            loose(layer as never).backward(x, { memory, gradOutput: x });
          } finally {
            memory.dispose();
          }
        }),
    ],
  ];
  const shared = new Float32Array(64);
  const OUTS: [what: string, out: object, ...shown: string[]][] = [
    ["a gradient of no memory", { gradMemory: new Float32Array(32) }, "out.gradMemory", "no memory"],
    ["a target of another size", { gradX: new Float32Array(31) }, "out.gradX", "[1, 4, 8]", "31 values"],
    ["a target that is none", { parameters: { in_proj_bias: [0] } }, "out.parameters.in_proj_bias", "24 values"],
    [
      "two targets in the same memory",
      { gradX: shared.subarray(32), parameters: { "out_proj.weight": shared } },
      "out.parameters.out_proj.weight and out.gradX share memory",
    ],
  ];
  for (const [what, out, ...shown] of OUTS) {
    const call = (layer: ReturnType<typeof lb.multiHeadAttention>) =>
      loose(layer as never).backward(x, { gradOutput: x, out });
    REFUSALS.push([`B2, B4: ${what}`, "bad-out", shown, (own) => withLayer(own, call)]);
  }
  REFUSALS.push([
    "B4: a parameter that the layer does not have",
    "unknown-option",
    ["out.parameters", "Did you mean 'in_proj_bias'?"],
    (own) =>
      withLayer(own, (layer) =>
        layer.backward(x, { gradOutput: x, out: { parameters: { in_proj_bais: new Float32Array(24) } } }),
      ),
  ]);
  testRefusals(lb, REFUSALS);
});
