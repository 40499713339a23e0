import { fail, kindOf, refuse, shape } from "./errors.js";
import { type Block, checkBytes, type Heap, Job, type Place } from "./heap.js";
import { unknownName } from "./options.js";
import { mulberry32 } from "./random.js";
import { product, readFloats, tensorOf } from "./tensors.js";
import type { FullLayerConfig, Tensor } from "./types.js";

export type LayerConfig = Readonly<FullLayerConfig>;

/** One projection: where its packed weight [outputs, inputs] and its bias lie in the layer's block. */
export interface Projection {
  readonly inputs: number;
  readonly outputs: number;
  readonly weightOffset: number;
  /** Undefined in a layer without biases. */
  readonly biasOffset: number | undefined;
}

export interface Projections {
  readonly query: Projection;
  readonly key: Projection;
  readonly value: Projection;
  readonly out: Projection;
  readonly bytes: number;
}

export const kvWidth = (config: LayerConfig): number => (config.embedDim / config.heads) * config.kvHeads;

const align = (bytes: number): number => Math.ceil(bytes / 64) * 64;

/** Lays the four projections out in one block. */
export function planProjections(heap: Heap, config: LayerConfig): Projections {
  let bytes = 0;
  const place = (inputs: number, outputs: number): Projection => {
    checkBytes(inputs * outputs * 4, "A weight of the layer");
    const weightOffset = bytes;
    bytes += align(heap.raw.packedLinearBytes(inputs, outputs));
    const biasOffset = config.bias ? bytes : undefined;
    if (config.bias) bytes += align(outputs * 4);
    return { inputs, outputs, weightOffset, biasOffset };
  };
  const { embedDim, keyDim, valueDim } = config;
  const query = place(embedDim, embedDim);
  const key = place(keyDim, kvWidth(config));
  const value = place(valueDim, kvWidth(config));
  const out = place(embedDim, embedDim);
  checkBytes(bytes, "The layer");
  return { query, key, value, out, bytes };
}

/** One parameter by PyTorch's name: the projections whose rows it stacks. */
interface Parameter {
  readonly name: string;
  readonly dims: readonly number[];
  readonly parts: readonly Projection[];
  readonly isBias: boolean;
}

function parameters(config: LayerConfig, { query, key, value, out }: Projections): Parameter[] {
  const stacked = [query, key, value];
  const rows = stacked.reduce((total, part) => total + part.outputs, 0);
  const matrix = (name: string, part: Projection) => ({
    name,
    dims: [part.outputs, part.inputs],
    parts: [part],
    isBias: false,
  });
  const { embedDim, keyDim, valueDim } = config;
  // PyTorch stacks the three where all project from the same width.
  const inProjection =
    keyDim === embedDim && valueDim === embedDim
      ? [{ name: "in_proj_weight", dims: [rows, embedDim], parts: stacked, isBias: false }]
      : [matrix("q_proj_weight", query), matrix("k_proj_weight", key), matrix("v_proj_weight", value)];
  const biases = [
    { name: "in_proj_bias", dims: [rows], parts: stacked, isBias: true },
    { name: "out_proj.bias", dims: [out.outputs], parts: [out], isBias: true },
  ];
  return [...inProjection, matrix("out_proj.weight", out), ...(config.bias ? biases : [])];
}

type Values = ReadonlyMap<string, Float32Array>;

/** Checks a whole state dict before anything is used. Values in wasm memory are copied out. */
export function readState(heap: Heap, config: LayerConfig, projections: Projections, state: unknown): Values {
  if (typeof state !== "object" || state === null || Array.isArray(state)) {
    refuse("state-missing", "load: a state dict", "an object of tensors by name", state);
  }
  const known = parameters(config, projections);
  const names = known.map(({ name }) => name);
  const given = new Map<string, unknown>(
    kindOf(state) === "Map" ? (state as Map<string, unknown>) : Object.entries(state),
  );
  for (const name of given.keys())
    if (!names.includes(name)) unknownName("state-unknown", "load: this layer has no parameter", name, names);
  const values = new Map<string, Float32Array>();
  for (const { name, dims } of known) {
    const value = given.get(name);
    if (value === undefined)
      fail("state-missing", `load: ${name} ${shape(dims)} is missing; the layer takes ${names.join(", ")}.`);
    const operand = readFloats(value, name, heap);
    if (shape(operand.dims) !== shape(dims)) {
      fail("state-shape", `load: ${name} must have dims ${shape(dims)}; received ${shape(operand.dims)}.`);
    }
    const { source } = operand;
    values.set(name, "heap" in source ? heap.read(source, product(dims)) : Float32Array.from(source));
  }
  return values;
}

/** A new block with all parameters, packed for the core. */
export function packState(
  heap: Heap,
  owner: object,
  config: LayerConfig,
  projections: Projections,
  values: Values,
): Block {
  const block = heap.own(owner, projections.bytes, "the layer");
  try {
    for (const { name, parts, isBias } of parameters(config, projections)) {
      let start = 0;
      for (const part of parts) {
        const { inputs, outputs, weightOffset, biasOffset } = part;
        const length = isBias ? outputs : outputs * inputs;
        const data = values.get(name)!.subarray(start, start + length);
        start += length;
        if (isBias) heap.write(block, data, length, biasOffset);
        else {
          const job = new Job(heap, "load");
          const weight = job.input(data);
          const packed: Place = { block, offset: weightOffset };
          job.run(undefined, (raw, at) => raw.packLinear(at(weight), inputs, outputs, at(packed)));
        }
      }
    }
    return block;
  } catch (error) {
    heap.release(block);
    throw error;
  }
}

export function unpackState(
  heap: Heap,
  block: Block,
  config: LayerConfig,
  projections: Projections,
): Record<string, Tensor> {
  const state: Record<string, Tensor> = {};
  for (const { name, dims, parts, isBias } of parameters(config, projections)) {
    const data = new Float32Array(product(dims));
    let start = 0;
    for (const { inputs, outputs, weightOffset, biasOffset } of parts) {
      if (isBias) data.set(heap.read(block, outputs, biasOffset), start);
      else {
        const job = new Job(heap, "state");
        const packed: Place = { block, offset: weightOffset };
        const weight = job.output(outputs * inputs, data.subarray(start, start + outputs * inputs));
        job.run(undefined, (raw, at) => raw.unpackLinear(at(packed), inputs, outputs, at(weight.place)));
      }
      start += isBias ? outputs : outputs * inputs;
    }
    state[name] = tensorOf(data, dims);
  }
  return state;
}

/** PyTorch's initial distribution: in-projections Xavier-uniform, out-projection ±1/√embedDim, biases 0. */
export function initialState(config: LayerConfig, projections: Projections): Values {
  const random = mulberry32(config.seed);
  const values = new Map<string, Float32Array>();
  for (const { name, dims, isBias } of parameters(config, projections)) {
    const [rows, columns] = dims as [number, number];
    const bound = isBias ? 0 : name === "out_proj.weight" ? 1 / Math.sqrt(columns) : Math.sqrt(6 / (rows + columns));
    values.set(
      name,
      Float32Array.from({ length: product(dims) }, () => (isBias ? 0 : (2 * random() - 1) * bound)),
    );
  }
  return values;
}
