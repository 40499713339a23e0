/** lb.linear with weights of 16 and of 8 bits: what is stored, how far off it is, and what comes back. */
import { expect, test } from "@jest/globals";
import type { ErrorCode, Linear, Tensor } from "lookback";
import { holds, worst } from "./accuracy-check.ts";
import { caught, expectError, tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";

const TYPES = [
  { dtype: "f16" },
  { dtype: "bf16" },
  { dtype: "int8", group: 16 },
  { dtype: "int8" },
  { dtype: "int8", group: 256 },
] as const;

/** Of rows of numbers: the largest size in each number's group. */
function largestOfGroups({ data, dims }: Tensor, group: number): Float64Array {
  const width = dims[1]!;
  const largest = new Float64Array(data.length);
  for (let row = 0; row < data.length; row += width) {
    for (let first = row; first < row + width; first += group) {
      const end = Math.min(first + group, row + width);
      largest.fill(Math.max(...data.subarray(first, end).map(Math.abs)), first, end);
    }
  }
  return largest;
}

/** Bounds of |w − ŵ| for each weight. */
function bounds(weight: Tensor, { config: { dtype, group } }: Linear): (n: number) => number {
  if (dtype === "int8") {
    const largest = largestOfGroups(weight, group!);
    return (n) => (largest[n]! / 254) * 1.0001;
  }
  const digits = dtype === "f16" ? 11 : 8;
  return (n) => Math.max(Math.abs(weight.data[n]!) * 2 ** -digits, 2 ** -25);
}

const loaded = (layer: Linear, seed = 1) => {
  const { inputs, outputs } = layer.config;
  const state = { weight: tensor([outputs, inputs], seed), bias: tensor([outputs], seed + 1) };
  layer.load(state);
  return state;
};

describeVariants((lb) => {
  test.each(TYPES)("M3: a state goes in as float32 and comes back as what is stored, within bounds: %o", (type) => {
    for (const [inputs, outputs] of [
      [1, 1],
      [67, 21],
      [300, 8],
    ] as const) {
      const layer = lb.linear({ inputs, outputs, ...type });
      expect(layer.config).toEqual({
        inputs,
        outputs,
        bias: true,
        seed: 0,
        ...(type.dtype === "int8" ? { group: 64 } : {}),
        ...type,
      });
      const { weight, bias } = loaded(layer);
      const stored = layer.state();
      expect(stored.bias).toEqual(bias);
      holds(
        worst(stored.weight!.data, Float64Array.from(weight.data), bounds(weight, layer)),
        `${inputs} → ${outputs}`,
      );
      layer.load(stored);
      holds(
        worst(
          layer.state().weight!.data,
          Float64Array.from(stored.weight!.data),
          (n) => 2e-7 * Math.abs(stored.weight!.data[n]!) + 1e-30,
        ),
        "again",
      );
      layer.dispose();
    }
  });

  test.each(TYPES)("R22: a result is the stored weight's, within the rounding of inputs: %o", (type) => {
    for (const rows of [1, 2, 3, 4, 5, 130]) {
      const [inputs, outputs] = [197, 29];
      const layer = lb.linear({ inputs, outputs, ...type });
      loaded(layer);
      const { weight, bias } = layer.state() as { weight: Tensor; bias: Tensor };
      const x = tensor([rows, inputs], rows);
      const values = new Float64Array(rows * outputs);
      const bound = values.slice();
      const inputGroups = largestOfGroups(x, layer.config.group ?? inputs);
      for (let n = 0; n < values.length; n++) {
        const [row, output] = [Math.floor(n / outputs), n % outputs];
        values[n] = bias.data[output]!;
        for (let i = 0; i < inputs; i++) {
          const w = weight.data[output * inputs + i]!;
          values[n]! += x.data[row * inputs + i]! * w;
          bound[n]! += 1e-6 * Math.abs(x.data[row * inputs + i]! * w);
          if (type.dtype === "int8") bound[n]! += (inputGroups[row * inputs + i]! / 65000) * Math.abs(w);
        }
      }
      holds(
        worst(layer.forward(x).data, values, (n) => bound[n]!),
        `${rows} rows`,
      );
      layer.dispose();
    }
  });

  test.each(TYPES)("R15: a row alone has the bits it has among others: %o", (type) => {
    const [inputs, outputs] = [131, 45];
    const layer = lb.linear({ inputs, outputs, ...type });
    loaded(layer);
    const x = tensor([37, inputs]);
    const together = layer.forward(x).data;
    for (const count of [1, 2, 3, 4, 7]) {
      for (let row = 0; row + count <= 37; row += 5) {
        const some = { data: x.data.slice(row * inputs, (row + count) * inputs), dims: [count, inputs] };
        expect(layer.forward(some).data).toEqual(together.slice(row * outputs, (row + count) * outputs));
      }
    }
    layer.dispose();
  });

  test("B3: memory held is that of the stored type", () => {
    const held = (options: object) => {
      const before = lb.memory().bytes;
      const layer = lb.linear({ inputs: 512, outputs: 512, bias: false, ...options });
      const bytes = lb.memory().bytes - before;
      layer.dispose();
      return bytes;
    };
    const weights = 512 * 512;
    expect(held({})).toBe(4 * weights);
    for (const dtype of ["f16", "bf16"]) expect(held({ dtype })).toBe(2 * weights);
    expect(held({ dtype: "int8" })).toBe((1 + 4 / 64) * weights);
    expect(held({ dtype: "int8", group: 32 })).toBe((1 + 4 / 32) * weights);
  });

  test("a weight of many parts is packed and read back whole", () => {
    // More than one part of 1 MiB, whose rows do not end with a panel's.
    const layer = lb.linear({ inputs: 1000, outputs: 701, bias: false });
    const weight = tensor([701, 1000], 3);
    layer.load({ weight });
    const { data, dims } = layer.state().weight!;
    expect(dims).toEqual(weight.dims);
    expect(data.findIndex((value, n) => value !== weight.data[n])).toBe(-1);
    layer.dispose();
  });

  test("R10, R22: NaN and infinities among the weights spoil their int8 group's outputs and no others", () => {
    const layer = lb.linear({ inputs: 40, outputs: 9, dtype: "int8", group: 16 });
    const { weight, bias } = loaded(layer);
    const x = tensor([5, 40], 4);
    const clean = layer.forward(x).data;
    for (const planted of [NaN, Infinity, -Infinity]) {
      const spoilt = { data: weight.data.slice(), dims: weight.dims };
      spoilt.data[3 * 40 + 20] = planted;
      layer.load({ weight: spoilt, bias });
      const stored = layer.state().weight!.data;
      stored.forEach((value, n) => {
        expect(Number.isNaN(value)).toBe(Math.floor(n / 40) === 3 && Math.floor((n % 40) / 16) === 1);
      });
      layer.forward(x).data.forEach((value, n) => {
        expect(value).toEqual(n % 9 === 3 ? NaN : clean[n]);
      });
    }
    layer.dispose();
  });

  test("B4: a type or a group that does not exist is refused", () => {
    // biome-ignore lint/suspicious/noExplicitAny: options that the types refuse
    const any = lb as any;
    const before = lb.memory();
    const refused: [ErrorCode, string[], object][] = [
      ["bad-option", ["dtype", "'f32', 'f16', 'bf16' or 'int8'", '"int4"'], { dtype: "int4" }],
      ["bad-option", ["group", "multiple of 16", "24"], { dtype: "int8", group: 24 }],
      ["bad-option", ["group", "256", "512"], { dtype: "int8", group: 512 }],
      ["bad-option", ["group", "integer ≥ 1", "0"], { dtype: "int8", group: 0 }],
      ["bad-option", ["group", "'int8'", "64", "'bf16'"], { dtype: "bf16", group: 64 }],
      ["bad-option", ["group", "'f32'"], { group: 32 }],
      ["unknown-option", ["'type'"], { type: "int8" }],
    ];
    for (const [code, shown, options] of refused) {
      expectError(
        caught(() => any.linear({ inputs: 32, outputs: 4, ...options })),
        code,
        ...shown,
      );
      expect(lb.memory()).toEqual(before);
    }
  });
});
