/** What the layouts of state-dicts.ts have in common: reading named tensors, and the four projections behind PyTorch's names. */
import { fail, kindOf, refuse, shape, show } from "./errors.js";
import { unknownName } from "./options.js";
import { readValues, tensorOf } from "./tensors.js";
import type { StateDict, Tensor } from "./types.js";

/** Tensors by name; a Map will do. */
export type NamedTensors = StateDict | ReadonlyMap<string, StateDict[string]>;

/** One projection as PyTorch's Linear has it: weight [outputs, inputs], bias [outputs]. */
export interface Linear {
  readonly weight: Tensor;
  readonly bias?: Tensor | undefined;
}

/** Query, key, value and output projection. */
export type Linears = readonly [Linear, Linear, Linear, Linear];

export interface StateReader {
  /** A float32 copy, or undefined where there is none. */
  take(name: string): Tensor | undefined;
  /** The same, or an error that tells where it may be. */
  need(name: string): Tensor;
  linear(name: string, weight?: string, bias?: string): Linear;
  missing(name: string): never;
  /** Throws where names were left over, but for those in `beside`. */
  end(beside: readonly string[]): void;
  /** Throws where a tensor that is there has other dims; a word stands for any length from 1 on. */
  expect(name: string, tensor: Tensor | undefined, dims: readonly (number | string)[], hint?: string): void;
}

export function reader(state: unknown, prefix: string, where: string): StateReader {
  if (typeof state !== "object" || state === null || Array.isArray(state)) {
    refuse("state-missing", `${where}: a state dict`, "an object of tensors by name", state);
  }
  // TensorFlow ends its names in ':0'.
  const plain = (name: string) => name.replace(/:0$/, "");
  const entries = kindOf(state) === "Map" ? [...(state as Map<string, unknown>)] : Object.entries(state);
  const given = new Map<string, unknown>(entries.map(([name, value]) => [plain(name), value]));
  const taken = new Set<string>();
  const read: StateReader = {
    take(name) {
      taken.add(name);
      const value = given.get(prefix + name);
      if (value === undefined) return undefined;
      const { source, dims } = readValues(value, `${where}: ${prefix}${name}`);
      return tensorOf(Float32Array.from(source), dims);
    },
    need: (name) => read.take(name) ?? read.missing(name),
    linear: (name, weight = ".weight", bias = ".bias") => ({
      weight: read.need(name + weight),
      bias: read.take(name + bias),
    }),
    missing(name) {
      const names = [...given.keys()];
      const elsewhere = names.filter((other) => other.endsWith(name)).map((other) => other.slice(0, -name.length));
      const hint =
        elsewhere.length > 0 ? `It is there with the prefix ${show(elsewhere)}.` : `There are: ${show(names)}.`;
      fail("state-missing", `${where}: ${prefix}${name} is missing. ${hint}`);
    },
    end(beside) {
      for (const name of given.keys()) {
        const own = name.slice(prefix.length);
        if (!name.startsWith(prefix) || taken.has(own) || beside.includes(own)) continue;
        unknownName(
          "state-unknown",
          `${where}: this layout has no parameter`,
          name,
          [...taken].map((other) => prefix + other),
        );
      }
    },
    expect(name, tensor, dims, hint = "") {
      const fits = (length: number, axis: number) =>
        typeof dims[axis] === "string" ? length > 0 : dims[axis] === length;
      if (!tensor || (tensor.dims.length === dims.length && tensor.dims.every(fits))) return;
      const received = shape(tensor.dims);
      fail(
        "state-shape",
        `${where}: ${prefix}${name} must have dims [${dims.join(", ")}]; received ${received}.${hint}`,
      );
    },
  };
  return read;
}

/** All projections have biases, or none. */
export function requireBiases(read: StateReader, names: readonly string[], linears: readonly Linear[]): void {
  const without = linears.findIndex(({ bias }) => !bias);
  if (without >= 0 && linears.some(({ bias }) => bias)) read.missing(names[without]!);
}

/** The weights fit one layer: [E, E], [kvWidth, keyDim], [kvWidth, valueDim], [E, E]. */
export function checkLinears(read: StateReader, names: readonly string[], [query, key, value, out]: Linears): void {
  const width = query.weight.dims[1] ?? "E";
  read.expect(names[0]!, query.weight, [width, width]);
  read.expect(names[1]!, key.weight, ["kvWidth", "keyDim"]);
  const kvWidth = key.weight.dims[0]!;
  if ((width as number) % kvWidth !== 0)
    read.expect(names[1]!, key.weight, [width, "keyDim"], ` Grouped: a divisor of ${width}.`);
  read.expect(names[2]!, value.weight, [kvWidth, "valueDim"]);
  read.expect(names[3]!, out.weight, [width, width]);
}

/** PyTorch's names for the four projections. */
export function assemble([query, key, value, out]: Linears): Record<string, Tensor> {
  const inputs = [query, key, value];
  const [q_proj_weight, k_proj_weight, v_proj_weight] = inputs.map(({ weight }) => weight) as [Tensor, Tensor, Tensor];
  const width = q_proj_weight.dims[1];
  // PyTorch stacks the three where all project from the same width.
  const together = k_proj_weight.dims[1] === width && v_proj_weight.dims[1] === width;
  const biases = [...inputs, out].map(({ weight, bias }) => {
    const outputs = weight.dims[0]!;
    return bias ?? tensorOf(new Float32Array(outputs), [outputs]);
  });
  const biased = [...inputs, out].some(({ bias }) => bias);
  return {
    ...(together
      ? { in_proj_weight: stack([q_proj_weight, k_proj_weight, v_proj_weight]) }
      : { q_proj_weight, k_proj_weight, v_proj_weight }),
    ...(biased ? { in_proj_bias: stack(biases.slice(0, 3)) } : {}),
    "out_proj.weight": out.weight,
    ...(biased ? { "out_proj.bias": biases[3]! } : {}),
  };
}

/** The four projections behind PyTorch's names; all have biases, or none. */
export function split(state: unknown, where: string): { linears: Linears; width: number; kvWidth: number } {
  const read = reader(state, "", where);
  const out = read.linear("out_proj");
  const bias = read.take("in_proj_bias");
  if (bias ? !out.bias : out.bias) read.missing(bias ? "out_proj.bias" : "in_proj_bias");
  read.expect("out_proj.weight", out.weight, ["E", "E"]);
  const width = out.weight.dims[0]!;
  const separate = ["q_proj_weight", "k_proj_weight", "v_proj_weight"];
  let weights: Tensor[];
  const query = read.take(separate[0]!);
  if (query) {
    weights = [query, read.need(separate[1]!), read.need(separate[2]!)];
    const linears = [...weights.map((weight) => ({ weight })), out] as unknown as Linears;
    checkLinears(read, [...separate, "out_proj.weight"], linears);
  } else {
    const packed = read.need("in_proj_weight");
    read.expect("out_proj.weight", out.weight, [width, width]);
    const kvWidth = (packed.dims[0]! - width) / 2;
    const fits = kvWidth > 0 && width % kvWidth === 0;
    read.expect("in_proj_weight", packed, [fits ? width + 2 * kvWidth : 3 * width, width]);
    weights = cut(packed, [width, kvWidth, kvWidth]);
  }
  read.end([]);
  const rows = weights.map(({ dims }) => dims[0]!);
  read.expect("in_proj_bias", bias, [rows[0]! + 2 * rows[1]!]);
  read.expect("out_proj.bias", out.bias, [width]);
  const biases = bias && cut(bias, rows);
  const linears = [...weights.map((weight, n) => ({ weight, bias: biases?.[n] })), out] as unknown as Linears;
  return { linears, width, kvWidth: rows[1]! };
}

/** One after another along the first axis. */
export function stack(parts: readonly Tensor[]): Tensor {
  const data = new Float32Array(parts.reduce((total, part) => total + part.data.length, 0));
  let start = 0;
  for (const part of parts) {
    data.set(part.data, start);
    start += part.data.length;
  }
  return tensorOf(data, [parts.reduce((rows, part) => rows + part.dims[0]!, 0), ...parts[0]!.dims.slice(1)]);
}

/** The inverse of `stack`. */
export function cut({ data, dims }: Tensor, rows: readonly number[]): Tensor[] {
  const width = data.length / dims[0]!;
  let start = 0;
  return rows.map((count) => {
    const from = start;
    start += count;
    return tensorOf(data.slice(from * width, start * width), [count, ...dims.slice(1)]);
  });
}

/** [rows, columns] → [columns, rows], whatever the columns are made of. */
export function transpose({ data }: Tensor, rows: number): Tensor {
  const columns = data.length / rows;
  const result = new Float32Array(data.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) result[column * rows + row] = data[row * columns + column]!;
  }
  return tensorOf(result, [columns, rows]);
}
