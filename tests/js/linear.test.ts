/** lb.linear: a linear layer alone, with the multi-head layer's projections, parameters and lifetimes. */
import { expect, test } from "@jest/globals";
import type { ErrorCode, Linear, StateDict, Tensor } from "lookback";
import { holds, worst } from "./accuracy-check.ts";
import { caught, expectAlive, expectError, product, tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";

type State = { weight: Tensor } & Record<string, Tensor>;

const stateOf = ({ config: { inputs, outputs, bias } }: Linear, seed = 1): State => ({
  weight: tensor([outputs, inputs], seed),
  ...(bias ? { bias: tensor([outputs], seed + 1) } : {}),
});

/** Every output in float64, and the sum of the sizes of its terms. */
function reference(x: Tensor, { weight, bias }: State) {
  const [outputs, inputs] = weight.dims as [number, number];
  const values = new Float64Array((product(x.dims) / inputs) * outputs);
  const sizes = values.slice();
  for (let n = 0; n < values.length; n++) {
    const [row, output] = [Math.floor(n / outputs), n % outputs];
    values[n] = bias?.data[output] ?? 0;
    sizes[n] = Math.abs(values[n]!);
    for (let i = 0; i < inputs; i++) {
      const term = x.data[row * inputs + i]! * weight.data[output * inputs + i]!;
      values[n]! += term;
      sizes[n]! += Math.abs(term);
    }
  }
  return { values, sizes };
}

describeVariants((lb) => {
  test.each([true, false])("R22: equals float64 at every size of tail, bias %p", (bias) => {
    for (const inputs of [1, 3, 8, 17, 64, 197]) {
      for (const outputs of [1, 4, 7, 8, 9, 16, 29]) {
        const layer = lb.linear({ inputs, outputs, bias });
        const state = stateOf(layer, inputs + outputs);
        layer.load(state);
        for (const rows of [1, 2, 3, 4, 5, 6, 7, 13, 24]) {
          const x = tensor([rows, inputs], rows);
          const found = layer.forward(x);
          const { values, sizes } = reference(x, state);
          expect(found.dims).toEqual([rows, outputs]);
          holds(
            worst(found.data, values, (n) => 1e-6 * sizes[n]!),
            `${rows} rows, ${inputs} → ${outputs}`,
          );
        }
        layer.dispose();
      }
    }
  });

  test("R1: x has any number of dims, the last is the width", () => {
    const layer = lb.linear({ inputs: 6, outputs: 5 });
    const x = tensor([2, 3, 4, 6]);
    const flat = layer.forward({ data: x.data, dims: [24, 6] }).data;
    expect(layer.forward(x)).toEqual({ data: flat, dims: [2, 3, 4, 5] });
    expect(layer.forward({ data: x.data.subarray(0, 6), dims: [6] })).toEqual({ data: flat.slice(0, 5), dims: [5] });
    for (const dims of [
      [0, 6],
      [2, 0, 6],
    ]) {
      const nothing = { data: new Float32Array(), dims: [...dims.slice(0, -1), 5] };
      expect(layer.forward({ data: new Float32Array(), dims })).toEqual(nothing);
    }
    layer.dispose();
  });

  test("R15: a row alone has the bits it has among others, whatever the others hold", () => {
    for (const [inputs, outputs] of [
      [5, 3],
      [64, 24],
      [131, 13],
    ] as const) {
      const layer = lb.linear({ inputs, outputs });
      layer.load(stateOf(layer));
      for (const rows of [2, 5, 7, 16, 31]) {
        const x = tensor([rows, inputs], rows);
        const together = layer.forward(x).data;
        const spoilt = { data: x.data.slice().fill(NaN, inputs), dims: x.dims };
        expect(layer.forward(spoilt).data.slice(0, outputs)).toEqual(together.slice(0, outputs));
        for (let row = 0; row < rows; row++) {
          const alone = layer.forward({ data: x.data.slice(row * inputs, (row + 1) * inputs), dims: [1, inputs] });
          expect(alone.data).toEqual(together.slice(row * outputs, (row + 1) * outputs));
        }
      }
      layer.dispose();
    }
  });

  test.each([
    { inputs: 1, outputs: 1 },
    { inputs: 7, outputs: 19, bias: false },
    { inputs: 33, outputs: 8 },
  ])("M3: a state comes back bit for bit, from arrays, a Map or wasm memory: %o", (config) => {
    const layer = lb.linear(config);
    expect(layer.config).toEqual({ bias: true, seed: 0, dtype: "f32", ...config });
    const state = stateOf(layer, 5);
    layer.load(state);
    expect(layer.state()).toEqual(state);
    const other = stateOf(layer, 8);
    layer.load(new Map(Object.entries(other)) as unknown as StateDict);
    expect(layer.state()).toEqual(other);
    const held = Object.fromEntries(Object.entries(state).map(([name, of]) => [name, lb.tensor(of.data, of.dims)]));
    layer.load(held);
    for (const one of Object.values(held)) one.dispose();
    expect(layer.state()).toEqual(state);
    layer.dispose();
  });

  test("M3: the initial weight is a multi-head layer's in-projection of that seed and size, the bias 0", () => {
    const [linear, other, layer] = [
      lb.linear({ inputs: 12, outputs: 36, seed: 7 }),
      lb.linear({ inputs: 12, outputs: 36 }),
      lb.multiHeadAttention({ embedDim: 12, heads: 3, seed: 7 }),
    ];
    const { weight, bias } = linear.state();
    expect(weight).toEqual(layer.state().in_proj_weight);
    expect(weight).not.toEqual(other.state().weight);
    expect(bias).toEqual({ data: new Float32Array(36), dims: [36] });
    for (const one of [linear, other, layer]) one.dispose();
  });

  test("M2: a projection by lb.linear has the bits of the layer's own", () => {
    const layer = lb.multiHeadAttention({ embedDim: 12, heads: 1 });
    const linear = lb.linear({ inputs: 12, outputs: 12 });
    const { in_proj_weight, in_proj_bias, "out_proj.weight": weight, "out_proj.bias": bias } = layer.state();
    const x = tensor([1, 1, 12]);
    // One token sees itself alone, so its output is the out-projection of its value.
    const part = { data: in_proj_weight!.data.slice(2 * 144), dims: [12, 12] };
    linear.load({ weight: part, bias: { data: in_proj_bias!.data.slice(24), dims: [12] } });
    const value = linear.forward(x);
    linear.load({ weight: weight!, bias: bias! });
    expect(linear.forward(value)).toEqual(layer.forward(x).output);
    for (const one of [linear, layer]) one.dispose();
  });

  test("M3, B4: loading is all or nothing, and says what does not fit", () => {
    const layer = lb.linear({ inputs: 6, outputs: 4 });
    const plain = lb.linear({ inputs: 6, outputs: 4, bias: false });
    const x = tensor([3, 6]);
    const good = stateOf(layer, 9);
    const before = { state: layer.state(), output: layer.forward(x), memory: lb.memory() };
    const refused: [ErrorCode, string[], Linear, unknown][] = [
      ["state-missing", ["bias [4]", "weight, bias"], layer, { weight: good.weight }],
      ["state-missing", ["weight [4, 6]"], layer, { bias: good.bias }],
      ["state-unknown", ["'weights'", "'weight'"], layer, { ...good, weights: good.weight }],
      ["state-unknown", ["'bias'"], plain, good],
      ["state-shape", ["weight", "[4, 6]", "[6, 4]", "transposed"], layer, { ...good, weight: tensor([6, 4]) }],
      ["state-shape", ["weight", "[4, 6]", "[24]"], layer, { ...good, weight: tensor([24]) }],
      ["state-shape", ["bias", "[4]", "[6]"], layer, { ...good, bias: tensor([6]) }],
      ["not-float", ["bias"], layer, { ...good, bias: { data: new Float64Array(4), dims: [4] } }],
      ["dims-data-mismatch", ["24", "23"], layer, { ...good, weight: { data: new Float32Array(23), dims: [4, 6] } }],
      ["state-missing", ["state dict"], layer, [good.weight, good.bias]],
    ];
    for (const [code, shown, target, state] of refused) {
      expectError(
        caught(() => target.load(state as StateDict)),
        code,
        ...shown,
      );
      expect({ state: layer.state(), output: layer.forward(x), memory: lb.memory() }).toEqual(before);
    }
    layer.load(good);
    expect(layer.forward(x)).not.toEqual(before.output);
    for (const one of [layer, plain]) one.dispose();
  });

  test("B4: what does not fit is refused, and the layer goes on", () => {
    const layer = lb.linear({ inputs: 6, outputs: 4 });
    const x = tensor([3, 6]);
    const before = { output: layer.forward(x), memory: lb.memory() };
    // biome-ignore lint/suspicious/noExplicitAny: options that the types refuse
    const [loose, any] = [layer as any, lb as any];
    const refused: [ErrorCode, string[], () => unknown][] = [
      ["bad-option", ["outputs is missing"], () => any.linear({ inputs: 6 })],
      ["bad-option", ["inputs", "integer ≥ 1", "0"], () => any.linear({ inputs: 0, outputs: 4 })],
      ["bad-option", ["linear: options"], () => any.linear(6, 4)],
      ["unknown-option", ["'output'", "'outputs'"], () => any.linear({ inputs: 6, output: 4 })],
      ["too-large", ["2", "bytes"], () => any.linear({ inputs: 2 ** 16, outputs: 2 ** 16 })],
      ["input-width", ["[..., 6]", "[3, 4]"], () => layer.forward(tensor([3, 4]))],
      ["input-width", ["[]"], () => layer.forward({ data: new Float32Array(1), dims: [] })],
      ["not-a-tensor", ["x"], () => loose.forward(x.data)],
      ["unknown-option", ["'output'"], () => loose.forward(x, { output: x })],
      ["bad-out", ["out.output", "[3, 4]", "[4, 3]"], () => layer.forward(x, { out: { output: tensor([4, 3]) } })],
      ["bad-out", ["12", "11"], () => layer.forward(x, { out: { output: new Float32Array(11) } })],
      ["bad-out", ["out.weights"], () => loose.forward(x, { out: { weights: new Float32Array(12) } })],
    ];
    for (const [code, shown, action] of refused) {
      expectError(caught(action), code, ...shown);
      expect(layer.forward(x)).toEqual(before.output);
      expect(lb.memory().bytes).toBe(before.memory.bytes);
      expect(lb.memory().allocations).toBe(before.memory.allocations);
    }
    layer.dispose();
    expectAlive(lb);
  });

  test("B1, B2: wasm tensors and arrays in and out, the input's own too", () => {
    const layer = lb.linear({ inputs: 6, outputs: 6 });
    layer.load(stateOf(layer));
    const x = tensor([7, 6]);
    const expected = layer.forward(x);
    const [input, target] = [lb.tensor(x.data, x.dims), lb.tensor(null, [7, 6])];
    expect(layer.forward(input)).toEqual(expected);
    expect(layer.forward(input, { out: { output: target } })).toBe(target);
    expect([target.read(), input.read()]).toEqual([expected.data, x.data]);
    const array = new Float32Array(42);
    expect(layer.forward(input, { out: { output: array } }).data).toBe(array);
    expect(array).toEqual(expected.data);
    expect(layer.forward(input, { out: { output: input } })).toBe(input);
    expect(input.read()).toEqual(expected.data);
    const own = { data: x.data.slice(), dims: x.dims };
    layer.forward(own, { out: { output: own } });
    expect(own.data).toEqual(expected.data);
    for (const one of [layer, input, target]) one.dispose();
  });

  test("B3: a layer is counted while it lives, whatever it loads, and dead after its disposal", () => {
    const held = () => {
      const { bytes, allocations } = lb.memory();
      return { bytes, allocations };
    };
    const before = held();
    const layer = lb.linear({ inputs: 10, outputs: 20 });
    const living = held();
    expect(living.allocations).toBe(before.allocations + 1);
    expect(living.bytes).toBeGreaterThanOrEqual(before.bytes + 4 * 20 * 11);
    const state = layer.state();
    const result = layer.forward(tensor([3, 10]));
    const copy = result.data.slice();
    layer.load(stateOf(layer, 3));
    expect(held()).toEqual(living);
    expect(layer.disposed).toBe(false);
    layer.dispose();
    layer.dispose();
    layer[Symbol.dispose]();
    expect(layer.disposed).toBe(true);
    expect(held()).toEqual(before);
    expect(result.data).toEqual(copy);
    for (const use of [() => layer.forward(tensor([3, 10])), () => layer.load(state), () => layer.state()]) {
      expectError(caught(use), "disposed", "linear layer");
    }
    expectAlive(lb);
  });
});
