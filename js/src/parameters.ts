import { fail, kindOf, refuse, shape } from "./errors.js";
import { type At, type Block, checkBytes, type Heap, Job, type Place } from "./heap.js";
import type { RawLinear, RawLinearCall } from "./module.js";
import { unknownName } from "./options.js";
import { Owned } from "./owned.js";
import { mulberry32 } from "./random.js";
import { product, readFloats, tensorOf } from "./tensors.js";
import type { StateDict, Tensor } from "./types.js";

/** How weights are stored, in the core's numbers. */
export type Format = Pick<RawLinear, "type" | "group">;

export const FLOAT32: Format = { type: 0, group: 0 };

/** A linear map: where its packed weight [outputs, inputs] and its bias lie in its owner's block. */
export interface Projection extends Format {
  readonly inputs: number;
  readonly outputs: number;
  readonly weightOffset: number;
  /** Undefined in a layer without biases. */
  readonly biasOffset: number | undefined;
}

type Size = readonly [inputs: number, outputs: number];

/** Rows of a weight go in and out in parts of about so many bytes: scratch memory stays small. */
const PART_BYTES = 2 ** 20;

const align = (bytes: number): number => Math.ceil(bytes / 64) * 64;

/** Lays projections out in one block. */
export function planProjections<const Sizes extends readonly Size[]>(
  heap: Heap,
  bias: boolean,
  sizes: Sizes,
  format = FLOAT32,
) {
  let bytes = 0;
  const parts = sizes.map(([inputs, outputs]): Projection => {
    checkBytes(inputs * outputs * 4, "A weight of the layer");
    const weightOffset = bytes;
    bytes += align(heap.raw.packedLinearBytes(inputs, outputs, format.type, format.group));
    const biasOffset = bias ? bytes : undefined;
    if (bias) bytes += align(outputs * 4);
    return { inputs, outputs, weightOffset, biasOffset, ...format };
  });
  checkBytes(bytes, "The layer");
  return { bytes, parts: parts as { [Index in keyof Sizes]: Projection } };
}

/** One parameter by PyTorch's name: the projections whose rows it stacks. A weight has two dims, a bias one. */
export interface Parameter {
  readonly name: string;
  readonly dims: readonly number[];
  readonly parts: readonly Projection[];
  /** Initial weights are uniform in ± this; default Xavier's. */
  readonly bound?: number;
}

/** [first row, count] of parts that cover all rows of a weight. */
function* partsOf({ inputs, outputs }: Projection): Generator<readonly [first: number, count: number]> {
  const step = Math.max(1, Math.floor(PART_BYTES / (4 * inputs)));
  for (let first = 0; first < outputs; first += step) yield [first, Math.min(step, outputs - first)];
}

const rowsOf = (parts: readonly Projection[]): number => parts.reduce((rows, { outputs }) => rows + outputs, 0);

export const weight = (name: string, ...parts: [Projection, ...Projection[]]): Parameter => ({
  name,
  dims: [rowsOf(parts), parts[0].inputs],
  parts,
});

export const bias = (name: string, ...parts: Projection[]): Parameter => ({ name, dims: [rowsOf(parts)], parts });

type Values = ReadonlyMap<string, Float32Array>;

/** Checks a whole state dict before anything is used. Values in wasm memory are copied out. */
function readState(heap: Heap, known: readonly Parameter[], state: unknown): Values {
  if (typeof state !== "object" || state === null || Array.isArray(state)) {
    refuse("state-missing", "load: a state dict", "an object of tensors by name", state);
  }
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
    const { source, dims: own } = readFloats(value, name, heap);
    if (shape(own) !== shape(dims)) {
      const hint = shape([...own].reverse()) === shape(dims) ? " It looks transposed." : "";
      fail("state-shape", `load: ${name} must have dims ${shape(dims)}; received ${shape(own)}.${hint}`);
    }
    values.set(name, "heap" in source ? heap.read(source, product(dims)) : Float32Array.from(source));
  }
  return values;
}

/** Xavier-uniform weights unless a parameter has a bound of its own, and biases of 0. */
function initialState(parameters: readonly Parameter[], seed: number): Values {
  const random = mulberry32(seed);
  return new Map(
    parameters.map(({ name, dims, bound }) => {
      const [rows, columns] = dims as [number, number?];
      const values = new Float32Array(product(dims));
      if (columns === undefined) return [name, values];
      const most = bound ?? Math.sqrt(6 / (rows + columns));
      return [name, values.map(() => (2 * random() - 1) * most)];
    }),
  );
}

/** What owns linear maps, and takes and gives their parameters by name. */
export abstract class Parameterized extends Owned {
  readonly #heap: Heap;
  #bytes = 0;
  #parameters: readonly Parameter[] = [];

  constructor(heap: Heap, what: string) {
    super(heap, what);
    this.#heap = heap;
  }

  /** The constructor's last step: memory for the parameters, and their initial values. */
  protected begin(bytes: number, parameters: readonly Parameter[], seed: number): void {
    this.#bytes = bytes;
    this.#parameters = parameters;
    this.#pack(initialState(parameters, seed));
  }

  load(state: StateDict): void {
    this.block();
    this.#pack(readState(this.#heap, this.#parameters, state));
  }

  state(): Record<string, Tensor> {
    const block = this.block();
    const state: Record<string, Tensor> = {};
    for (const { name, dims, parts } of this.#parameters) {
      const data = new Float32Array(product(dims));
      let start = 0;
      for (const part of parts) {
        const { inputs, outputs } = part;
        if (dims.length === 1) data.set(this.#heap.read(block, outputs, part.biasOffset), start);
        else this.#unpack(block, part, data.subarray(start, start + outputs * inputs));
        start += dims.length === 1 ? outputs : outputs * inputs;
      }
      state[name] = tensorOf(data, dims);
    }
    return state;
  }

  /** By PyTorch's names. */
  protected get parameterDims(): Record<string, readonly number[]> {
    return Object.fromEntries(this.#parameters.map(({ name, dims }) => [name, dims]));
  }

  /** The core's record of where a linear map's gradients go; `placeOf` tells it of a parameter, whose gradient is plain rows. */
  protected rawGradients(at: At, wanted: Projection, placeOf: (name: string) => Place) {
    const find = (rank: number): Place | undefined => {
      for (const { name, dims, parts } of this.#parameters) {
        if (dims.length !== rank || !parts.includes(wanted)) continue;
        const before = rowsOf(parts.slice(0, parts.indexOf(wanted)));
        const { block, offset } = placeOf(name);
        return { block, offset: offset + 4 * before * (dims[1] ?? 1) };
      }
      return undefined;
    };
    return { weight: at(find(2)), bias: at(find(1)) };
  }

  /** The core's record of one of the linear maps. */
  protected raw(at: At, part: Projection): RawLinear {
    return rawLinear(at, this.block(), part);
  }

  /** The core's record for `rows` rows through one of the linear maps. */
  protected linear(
    at: At,
    part: Projection,
    input: Place,
    output: Place,
    rows: number,
    workspace = 0,
    workspaceBytes = 0,
  ): RawLinearCall {
    return { layer: this.raw(at, part), input: at(input), output: at(output), rows, workspace, workspaceBytes };
  }

  /** A new block with all parameters, packed for the core. The old one stays until the new one is complete. */
  #pack(values: Values): void {
    const heap = this.#heap;
    const block = heap.own(this, this.#bytes, "the layer");
    try {
      for (const { name, dims, parts } of this.#parameters) this.#write(block, dims, parts, values.get(name)!);
    } catch (error) {
      heap.release(block);
      throw error;
    }
    this.hold(block);
  }

  #write(block: Block, dims: readonly number[], parts: readonly Projection[], values: Float32Array): void {
    let start = 0;
    for (const part of parts) {
      const { inputs, outputs } = part;
      const length = dims.length === 1 ? outputs : outputs * inputs;
      const data = values.subarray(start, start + length);
      start += length;
      if (dims.length === 1) {
        this.#heap.write(block, data, length, part.biasOffset);
        continue;
      }
      for (const [first, count] of partsOf(part)) {
        const job = new Job(this.#heap, "load");
        const rows = job.input(data.subarray(first * inputs, (first + count) * inputs));
        job.run(undefined, (raw, at) =>
          raw.packLinear(
            { values: at(rows), type: 0, transposed: false, first, count, stride: 0 },
            rawLinear(at, block, part),
          ),
        );
      }
    }
  }

  #unpack(block: Block, part: Projection, target: Float32Array): void {
    const { inputs } = part;
    for (const [first, count] of partsOf(part)) {
      const job = new Job(this.#heap, "state");
      const rows = job.output(count * inputs, target.subarray(first * inputs, (first + count) * inputs));
      job.run(undefined, (raw, at) => raw.unpackLinear(rawLinear(at, block, part), first, count, at(rows.place)));
    }
  }
}

/** A linear map whose parameters lie in `block`. */
function rawLinear(at: At, block: Block, { weightOffset, biasOffset, ...layer }: Projection): RawLinear {
  const bias = biasOffset === undefined ? undefined : { block, offset: biasOffset };
  return { ...layer, weight: at({ block, offset: weightOffset }), bias: at(bias) };
}
