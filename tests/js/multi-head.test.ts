/** The multi-head layer's API: its parameters go in and out, and it refuses what does not fit. */
import { expect, test } from "@jest/globals";
import type { ErrorCode, MultiHeadAttention, StateDict } from "lookback";
import { caught, expectAlive, expectError, product, tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";

const names = (layer: MultiHeadAttention) =>
  Object.fromEntries(Object.entries(layer.state()).map(([name, { dims }]) => [name, dims]));
const random = (layer: MultiHeadAttention, seed: number): Record<string, ReturnType<typeof tensor>> =>
  Object.fromEntries(Object.entries(names(layer)).map(([name, dims], i) => [name, tensor(dims, seed + i)]));

describeVariants((lb) => {
  test("M3: parameters have PyTorch's names and dims", () => {
    const same = lb.multiHeadAttention({ embedDim: 12, heads: 3 });
    expect(names(same)).toEqual({
      in_proj_weight: [36, 12],
      in_proj_bias: [36],
      "out_proj.weight": [12, 12],
      "out_proj.bias": [12],
    });
    const apart = lb.multiHeadAttention({ embedDim: 12, heads: 3, keyDim: 5, valueDim: 7, bias: false });
    expect(names(apart)).toEqual({
      q_proj_weight: [12, 12],
      k_proj_weight: [12, 5],
      v_proj_weight: [12, 7],
      "out_proj.weight": [12, 12],
    });
    const grouped = lb.multiHeadAttention({ embedDim: 12, heads: 6, kvHeads: 2 });
    expect(names(grouped)).toMatchObject({ in_proj_weight: [20, 12], in_proj_bias: [20] });
    expect(grouped.config).toEqual({
      embedDim: 12,
      heads: 6,
      kvHeads: 2,
      keyDim: 12,
      valueDim: 12,
      bias: true,
      seed: 0,
    });
    for (const layer of [same, apart, grouped]) layer.dispose();
  });

  test.each([
    { embedDim: 4, heads: 1 },
    { embedDim: 15, heads: 5, bias: false },
    { embedDim: 24, heads: 4, kvHeads: 2, keyDim: 11, valueDim: 3 },
  ])("M3: a state comes back bit for bit: %o", (config) => {
    const layer = lb.multiHeadAttention(config);
    const state = random(layer, 3);
    layer.load(state);
    expect(layer.state()).toEqual(state);
    layer.load(new Map(Object.entries(state)) as unknown as StateDict);
    expect(layer.state()).toEqual(state);
    layer.dispose();
  });

  test("M3: initial weights follow the seed and PyTorch's bounds", () => {
    const [a, b, c] = [0, 0, 1].map((seed) => lb.multiHeadAttention({ embedDim: 16, heads: 2, seed }));
    expect(a!.state()).toEqual(b!.state());
    expect(a!.state()).not.toEqual(c!.state());
    const state = a!.state();
    const largest = (name: string) => Math.max(...state[name]!.data.map(Math.abs));
    const [inner, outer] = [Math.sqrt(6 / 64), 1 / 4];
    expect(largest("in_proj_weight")).toBeLessThanOrEqual(inner);
    expect(largest("in_proj_weight")).toBeGreaterThan(inner * 0.9);
    expect(largest("out_proj.weight")).toBeLessThanOrEqual(outer);
    expect(largest("out_proj.weight")).toBeGreaterThan(outer * 0.9);
    expect(largest("in_proj_bias") + largest("out_proj.bias")).toBe(0);
    for (const layer of [a, b, c]) layer!.dispose();
  });

  test("M3: loading is all or nothing", () => {
    const layer = lb.multiHeadAttention({ embedDim: 6, heads: 2 });
    const x = tensor([1, 3, 6]);
    const before = { state: layer.state(), output: layer.forward(x).output, memory: lb.memory() };
    const good = random(layer, 9);
    const { "out_proj.bias": _, ...missing } = good;
    const refused: [ErrorCode, string[], StateDict][] = [
      ["state-missing", ["out_proj.bias", "[6]"], missing],
      ["state-unknown", ["in_proj.weight", "'in_proj_weight'"], { ...good, "in_proj.weight": tensor([18, 6]) }],
      ["state-shape", ["out_proj.weight", "[6, 6]", "[6, 5]"], { ...good, "out_proj.weight": tensor([6, 5]) }],
      [
        "dims-data-mismatch",
        ["in_proj_bias", "18", "17"],
        { ...good, in_proj_bias: { data: new Float32Array(17), dims: [18] } },
      ],
      ["not-float", ["in_proj_weight"], { ...good, in_proj_weight: { data: new Float64Array(108), dims: [18, 6] } }],
      ["state-missing", ["in_proj_weight"], {}],
      ["state-missing", ["state dict"], null as unknown as StateDict],
    ];
    for (const [code, shown, state] of refused) {
      expectError(
        caught(() => layer.load(state)),
        code,
        ...shown,
      );
      expect(layer.state()).toEqual(before.state);
      expect(layer.forward(x).output).toEqual(before.output);
      expect(lb.memory()).toEqual(before.memory);
    }
    layer.load(good);
    expect(layer.forward(x).output).not.toEqual(before.output);
    layer.dispose();
    expectAlive(lb);
  });

  test("M3: a state may live in wasm memory", () => {
    const layer = lb.multiHeadAttention({ embedDim: 6, heads: 2 });
    const state = random(layer, 4);
    const held = Object.fromEntries(
      Object.entries(state).map(([name, { data, dims }]) => [name, lb.tensor(data, dims)]),
    );
    layer.load(held);
    for (const one of Object.values(held)) one.dispose();
    expect(layer.state()).toEqual(state);
    layer.dispose();
  });

  test("M2: the output has the dims of x, also in two dims and from wasm memory", () => {
    const layer = lb.multiHeadAttention({ embedDim: 6, heads: 2 });
    const x = tensor([2, 3, 6]);
    const whole = layer.forward(x, { causal: true, weights: "softmax", logSumExp: true });
    expect([whole.output.dims, whole.weights.dims, whole.logSumExp.dims]).toEqual([
      [2, 3, 6],
      [2, 2, 3, 3],
      [2, 2, 3],
    ]);
    const inWasm = lb.tensor(x.data, x.dims);
    expect(layer.forward(inWasm, { causal: true }).output).toEqual(whole.output);
    const second = layer.forward({ data: x.data.subarray(18), dims: [3, 6] }, { causal: true });
    expect(second.output).toEqual({ data: whole.output.data.slice(18), dims: [3, 6] });
    inWasm.dispose();
    layer.dispose();
  });

  test("M2: x as its own memory is self-attention, and a memory projected once is the same again", () => {
    const layer = lb.multiHeadAttention({ embedDim: 12, heads: 4, kvHeads: 2 });
    const x = tensor([2, 5, 12], 1);
    expect(layer.forward(x, { memory: x })).toEqual(layer.forward(x));
    const memory = tensor([2, 7, 12], 2);
    const direct = layer.forward(x, { memory, weights: "softmax" });
    const projected = layer.project(memory);
    expect([projected.batch, projected.keyLength]).toEqual([2, 7]);
    for (let times = 0; times < 2; times++)
      expect(layer.forward(x, { memory: projected, weights: "softmax" })).toEqual(direct);
    expect(direct.weights.dims).toEqual([2, 4, 5, 7]);
    projected.dispose();
    layer.dispose();
  });

  test("M2: keys and values may come from memories of their own widths", () => {
    const layer = lb.multiHeadAttention({ embedDim: 4, heads: 2, keyDim: 3, valueDim: 5 });
    const [x, keys, values] = [tensor([1, 2, 4], 1), tensor([1, 6, 3], 2), tensor([1, 6, 5], 3)];
    const direct = layer.forward(x, { memory: keys, memoryValues: values }).output;
    const projected = layer.project(keys, values);
    expect(layer.forward(x, { memory: projected }).output).toEqual(direct);
    expect(direct.data.some((value) => value !== 0)).toBe(true);
    expect(product(direct.dims)).toBe(8);
    projected.dispose();
    layer.dispose();
  });

  test("M2: what does not fit is refused, and the layer goes on", () => {
    const layer = lb.multiHeadAttention({ embedDim: 4, heads: 2 });
    const other = lb.multiHeadAttention({ embedDim: 4, heads: 2, seed: 1 });
    const apart = lb.multiHeadAttention({ embedDim: 4, heads: 2, keyDim: 3, valueDim: 5 });
    const x = tensor([2, 3, 4]);
    const memory = layer.project(x);
    const before = layer.forward(x);
    // biome-ignore lint/suspicious/noExplicitAny: options that the types refuse
    const loose = layer as any;
    const refused: [ErrorCode, string[], () => unknown][] = [
      ["input-width", ["x", "embedDim", "[2, 3, 5]", "5"], () => layer.forward(tensor([2, 3, 5]))],
      ["bad-rank", ["[B, L, 4]", "[1, 2, 3, 4]"], () => layer.forward(tensor([1, 2, 3, 4]))],
      ["bad-dims", ["batch"], () => layer.forward(tensor([0, 3, 4]))],
      ["batch-mismatch", ["2", "3"], () => layer.forward(x, { memory: tensor([3, 3, 4]) })],
      ["input-width", ["memory", "keyDim"], () => layer.forward(x, { memory: tensor([2, 3, 5]) })],
      ["memory-missing", ["memoryValues"], () => layer.forward(x, { memoryValues: x })],
      ["memory-missing", ["keyDim 3", "valueDim 5"], () => apart.forward(x)],
      ["memory-missing", ["memoryValues", "[B, Lk, 5]"], () => apart.forward(x, { memory: tensor([2, 3, 3]) })],
      ["length-mismatch", ["6", "7"], () => apart.project(tensor([2, 6, 3]), tensor([2, 7, 5]))],
      ["batch-mismatch", ["2", "1"], () => apart.project(tensor([2, 6, 3]), tensor([1, 6, 5]))],
      ["stale-projection", ["another layer"], () => other.forward(x, { memory })],
      ["bad-option", ["memoryValues"], () => layer.forward(x, { memory, memoryValues: x })],
      [
        "query-offset-missing",
        ["3 queries", "5 keys"],
        () => layer.forward(x, { memory: tensor([2, 5, 4]), causal: true }),
      ],
      ["mask-shape", ["[3, 4]"], () => layer.forward(x, { mask: { data: new Uint8Array(12), dims: [3, 4] } })],
      ["unknown-option", ["forward has no option 'memmory'", "'memory'"], () => loose.forward(x, { memmory: x })],
      ["unknown-option", ["'heads'"], () => loose.forward(x, { heads: 2 })],
    ];
    for (const [code, shown, action] of refused) {
      expectError(caught(action), code, ...shown);
      expect(layer.forward(x)).toEqual(before);
    }
    layer.load(layer.state());
    expectError(
      caught(() => layer.forward(x, { memory })),
      "stale-projection",
      "load()",
      "again",
    );
    for (const one of [layer, other, apart, memory]) one.dispose();
    expectAlive(lb);
  });
});
