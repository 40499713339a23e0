/** M3, M4: parameters in the layouts of BERT, GPT-2, Llama and Keras, from and to PyTorch's names. */
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import type { Tensor } from "lookback";
import * as stateDicts from "lookback/state-dicts";
import { randomFloats, randomSource } from "./reference-data.ts";
import {
  type LayoutShape,
  type Parameters,
  referenceBert,
  referenceGPT2,
  referenceKeras,
  referenceLlama,
} from "./reference-layouts.ts";
import { caught, expectError, product } from "./support/helpers.ts";
import { describeVariants } from "./support/instances.ts";

type State = Record<string, Tensor>;

interface Layout {
  name: string;
  /** The dims of every parameter in this layout. */
  dims(shape: LayoutShape, biased: boolean): Record<string, number[]>;
  from(state: State, options?: stateDicts.StateDictOptions): State;
  to(state: State, shape: LayoutShape, options?: stateDicts.StateDictOptions): State;
  reference(p: Parameters, shape: LayoutShape, x: Float32Array): Float64Array;
  causal: boolean;
  grouped: boolean;
  /** What lies beside the parameters in real checkpoints. */
  beside: Record<string, number[]>;
}

const biasedNames = (dims: Record<string, number[]>, biased: boolean) =>
  Object.fromEntries(Object.entries(dims).filter(([name]) => biased || !name.endsWith("bias")));

const linearDims =
  ([query, key, value, out]: [string, string, string, string]) =>
  ({ heads, kvHeads, headDim }: LayoutShape, biased: boolean) => {
    const [E, KV] = [heads * headDim, kvHeads * headDim];
    const dims = {
      [`${query}.weight`]: [E, E],
      [`${query}.bias`]: [E],
      [`${key}.weight`]: [KV, E],
      [`${key}.bias`]: [KV],
      [`${value}.weight`]: [KV, E],
      [`${value}.bias`]: [KV],
      [`${out}.weight`]: [E, E],
      [`${out}.bias`]: [E],
    };
    return biasedNames(dims, biased);
  };

const layouts: Layout[] = [
  {
    name: "BERT",
    dims: linearDims(["self.query", "self.key", "self.value", "output.dense"]),
    from: stateDicts.fromBert,
    to: (state, _shape, options) => stateDicts.toBert(state, options),
    reference: referenceBert,
    causal: false,
    grouped: false,
    beside: { "output.LayerNorm.weight": [4], "output.LayerNorm.bias": [4] },
  },
  {
    name: "GPT-2",
    dims: ({ heads, headDim }) => {
      const E = heads * headDim;
      return { "c_attn.weight": [E, 3 * E], "c_attn.bias": [3 * E], "c_proj.weight": [E, E], "c_proj.bias": [E] };
    },
    from: stateDicts.fromGPT2,
    to: (state, _shape, options) => stateDicts.toGPT2(state, options),
    reference: referenceGPT2,
    causal: true,
    grouped: false,
    beside: { bias: [1, 1, 8, 8], masked_bias: [] },
  },
  {
    name: "Llama",
    dims: linearDims(["q_proj", "k_proj", "v_proj", "o_proj"]),
    from: stateDicts.fromLlama,
    to: (state, _shape, options) => stateDicts.toLlama(state, options),
    reference: referenceLlama,
    causal: true,
    grouped: true,
    beside: { "rotary_emb.inv_freq": [2] },
  },
  {
    name: "Keras",
    dims: ({ heads, kvHeads, headDim }, biased) => {
      const E = heads * headDim;
      const dims = {
        "query/kernel": [E, heads, headDim],
        "query/bias": [heads, headDim],
        "key/kernel": [E, kvHeads, headDim],
        "key/bias": [kvHeads, headDim],
        "value/kernel": [E, kvHeads, headDim],
        "value/bias": [kvHeads, headDim],
        "attention_output/kernel": [heads, headDim, E],
        "attention_output/bias": [E],
      };
      return biasedNames(dims, biased);
    },
    from: stateDicts.fromKeras,
    to: (state, { heads }, options) => stateDicts.toKeras(state, { ...options, heads }),
    reference: referenceKeras,
    causal: false,
    grouped: true,
    beside: {},
  },
];

/** Random parameters; every name and every place has numbers of its own. */
function fill(dims: Record<string, number[]>, seed: number, prefix = ""): State {
  const random = randomSource(seed);
  return Object.fromEntries(
    Object.entries(dims).map(([name, own]) => {
      return [prefix + name, { data: randomFloats(random, product(own), 0.5), dims: own }];
    }),
  );
}

const shapes = (grouped: boolean) =>
  fc
    .record({
      batch: fc.integer({ min: 1, max: 2 }),
      length: fc.integer({ min: 1, max: 6 }),
      kvHeads: fc.integer({ min: 1, max: 3 }),
      group: fc.integer({ min: 1, max: 3 }),
      headDim: fc.integer({ min: 1, max: 7 }),
      biased: fc.boolean(),
      seed: fc.nat(1000),
    })
    .map(({ group, kvHeads, ...rest }) => ({
      ...rest,
      heads: kvHeads * group,
      kvHeads: grouped ? kvHeads : kvHeads * group,
    }));

const same = (found: State, expected: State) => {
  expect(Object.keys(found).sort()).toEqual(Object.keys(expected).sort());
  for (const [name, { data, dims }] of Object.entries(expected)) {
    expect([name, found[name]!.dims]).toEqual([name, dims]);
    const differs = found[name]!.data.findIndex((value, n) => !Object.is(value, data[n]));
    if (differs >= 0) throw new Error(`${name}[${differs}]: ${found[name]!.data[differs]}, expected ${data[differs]}`);
  }
};

describe.each(layouts)("$name", ({ dims, from, to, beside, grouped }) => {
  test("M3: there and back again gives the same bits, either way", () => {
    fc.assert(
      fc.property(shapes(grouped), ({ biased, seed, ...shape }) => {
        const state = fill(dims(shape, biased), seed);
        const torch = from(state);
        const again = to(torch, shape);
        same(again, state);
        same(from(again), torch);
      }),
      { numRuns: 60 },
    );
  });

  test("M3: a prefix picks one layer out of a whole model, and what lies beside is left alone", () => {
    const shape = { batch: 1, length: 1, heads: 2, kvHeads: 2, headDim: 3 };
    const state = fill(dims(shape, true), 1);
    const model = {
      ...fill({ "embeddings.weight": [7, 6] }, 2),
      ...fill(dims(shape, true), 1, "layer.1.attn."),
      ...fill(beside, 3, "layer.1.attn."),
      ...fill(dims(shape, true), 4, "layer.10.attn."),
    };
    same(from(model, { prefix: "layer.1.attn." }), from(state));
    same(from(new Map(Object.entries(model)) as unknown as State, { prefix: "layer.1.attn." }), from(state));
    same(to(from(state), shape, { prefix: "layer.1.attn." }), fill(dims(shape, true), 1, "layer.1.attn."));
    const name = Object.keys(state)[0]!;
    const found = caught(() => from(model));
    expectError(found, "state-missing", name, "layer.1.attn.", "layer.10.attn.");
  });

  test("B2: nothing of the result is shared with what was given", () => {
    const shape = { batch: 1, length: 1, heads: 2, kvHeads: 2, headDim: 3 };
    const state = fill(dims(shape, true), 1);
    for (const { data } of Object.values(from(state))) data.fill(9);
    same(state, fill(dims(shape, true), 1));
    const torch = from(state);
    for (const { data } of Object.values(to(torch, shape))) data.fill(9);
    same(torch, from(state));
  });

  test("B4: a missing, an unknown and a misshapen parameter are named", () => {
    const shape = { batch: 1, length: 1, heads: 2, kvHeads: 2, headDim: 3 };
    const state = fill(dims(shape, true), 1);
    for (const [name, { data, dims: own }] of Object.entries(state)) {
      const { [name]: _gone, ...without } = state;
      // Llama's projections may lack a bias.
      if (!(name.endsWith("proj.bias") && from === stateDicts.fromLlama)) {
        expectError(
          caught(() => from(without)),
          "state-missing",
          name,
        );
      }
      // One more in the axis that no other width of a source may explain.
      const wrongDims = name.endsWith("kernel")
        ? [...own.slice(0, -1), own.at(-1)! + 1]
        : [own[0]! + 1, ...own.slice(1)];
      const wrong = { ...state, [name]: { data: new Float32Array(product(wrongDims)), dims: wrongDims } };
      expectError(
        caught(() => from(wrong)),
        "state-shape",
        "must have dims",
        "received",
      );
      expectError(
        caught(() => from({ ...state, [name]: { data, dims: [data.length, 1, 1, 1] } })),
        "state-shape",
        name,
      );
    }
    expectError(
      caught(() => from({ ...state, extra: state[Object.keys(state)[0]!]! })),
      "state-unknown",
      "extra",
    );
    expectError(
      caught(() => from([] as unknown as State)),
      "state-missing",
      "object of tensors",
    );
    expectError(
      caught(() => from(state, { prefx: "" } as stateDicts.StateDictOptions)),
      "unknown-option",
      "'prefix'",
    );
  });
});

describeVariants((lb) => {
  test.each(layouts)("M4: a layer loaded from $name gives what that layout's own forward gives", (layout) => {
    const { dims, from, to, reference, causal, grouped } = layout;
    fc.assert(
      fc.property(shapes(grouped), ({ biased, seed, ...shape }) => {
        const { batch, length, heads, kvHeads, headDim } = shape;
        const embedDim = heads * headDim;
        const state = fill(dims(shape, biased), seed);
        const x = {
          data: randomFloats(randomSource(seed + 1), batch * length * embedDim),
          dims: [batch, length, embedDim],
        };
        const bias = Object.keys(state).some((name) => name.endsWith("bias"));
        const layer = lb.multiHeadAttention({ embedDim, heads, kvHeads, bias });
        try {
          layer.load(from(state));
          const { output } = layer.forward(x, { causal });
          const expected = reference(state, shape, x.data);
          const allowed = 1e-5 * Math.max(...expected.map(Math.abs));
          expected.forEach((value, n) => {
            if (!(Math.abs(output.data[n]! - value) <= allowed))
              throw new Error(`${n}: ${output.data[n]}, expected ${value}`);
          });
          same(to(layer.state(), shape), state);
        } finally {
          layer.dispose();
        }
      }),
      { numRuns: 40 },
    );
  });

  test("M3: keys and values of widths of their own go to q_proj_weight, k_proj_weight, v_proj_weight and back", () => {
    const bert = fill(
      {
        "self.query.weight": [6, 6],
        "self.key.weight": [6, 4],
        "self.value.weight": [6, 5],
        "output.dense.weight": [6, 6],
      },
      1,
    );
    const torch = stateDicts.fromBert(bert);
    expect(Object.keys(torch)).toEqual(["q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight"]);
    same(stateDicts.toBert(torch), bert);
    const keras = stateDicts.toKeras(torch, { heads: 3 });
    expect(keras["key/kernel"]!.dims).toEqual([4, 3, 2]);
    same(stateDicts.fromKeras(keras), torch);
    const layer = lb.multiHeadAttention({ embedDim: 6, heads: 3, keyDim: 4, valueDim: 5, bias: false });
    layer.load(torch);
    same(layer.state() as State, torch);
    layer.dispose();
  });

  test("M3: tensors in wasm memory are parameters, too", () => {
    const state = fill(
      linearDims(["q_proj", "k_proj", "v_proj", "o_proj"])(
        { batch: 1, length: 1, heads: 2, kvHeads: 1, headDim: 2 },
        false,
      ),
      1,
    );
    const inWasm = Object.fromEntries(
      Object.entries(state).map(([name, { data, dims }]) => [name, lb.tensor(data, dims)]),
    );
    same(stateDicts.fromLlama(inWasm), stateDicts.fromLlama(state));
    for (const tensor of Object.values(inWasm)) tensor.dispose();
  });
});

describe("in particular", () => {
  const qwen = fill(
    {
      "q_proj.weight": [4, 4],
      "q_proj.bias": [4],
      "k_proj.weight": [2, 4],
      "k_proj.bias": [2],
      "v_proj.weight": [2, 4],
      "v_proj.bias": [2],
      "o_proj.weight": [4, 4],
    },
    7,
  );

  test("M3: Qwen's o_proj has no bias: it is 0 in the layer, and can be left out again", () => {
    const torch = stateDicts.fromLlama(qwen);
    expect([...torch["out_proj.bias"]!.data]).toEqual([0, 0, 0, 0]);
    same(stateDicts.toLlama(torch, { outputBias: false }), qwen);
    torch["out_proj.bias"]!.data[2] = 1;
    expectError(
      caught(() => stateDicts.toLlama(torch, { outputBias: false })),
      "bad-option",
      "out_proj.bias",
      "not 0",
    );
  });

  test("M3: TensorFlow's names end in ':0'", () => {
    const keras = fill(
      {
        "query/kernel": [4, 2, 2],
        "key/kernel": [4, 2, 2],
        "value/kernel": [4, 2, 2],
        "attention_output/kernel": [2, 2, 4],
      },
      1,
    );
    const tensorFlow = Object.fromEntries(Object.entries(keras).map(([name, value]) => [`mha/${name}:0`, value]));
    same(stateDicts.fromKeras(tensorFlow, { prefix: "mha/" }), stateDicts.fromKeras(keras));
  });

  test("B1: a Float16Array is taken where the engine has it", () => {
    const Float16 = (globalThis as { Float16Array?: new (data: number[]) => ArrayBufferView }).Float16Array;
    if (!Float16) return;
    const half = (dims: number[]) => ({ data: new Float16(new Array(product(dims)).fill(0.5)), dims });
    const torch = stateDicts.fromGPT2({
      "c_attn.weight": half([2, 6]),
      "c_attn.bias": half([6]),
      "c_proj.weight": half([2, 2]),
      "c_proj.bias": half([2]),
    });
    expect(torch.in_proj_weight).toEqual({ data: new Float32Array(12).fill(0.5), dims: [6, 2] });
  });
});
