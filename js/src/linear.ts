import { fail, shape } from "./errors.js";
import { type At, type Heap, Job } from "./heap.js";
import { flag, integer, later, oneOf, positiveInteger, readOptions, required } from "./options.js";
import { bias, Parameterized, type Projection, planProjections, weight } from "./parameters.js";
import { planResults } from "./results.js";
import { product, readFloats } from "./tensors.js";
import type { FullLinearConfig, Linear, Tensor, WasmTensor } from "./types.js";

/** In the order of the core's numbers. */
const TYPES = ["f32", "f16", "bf16", "int8"] as const;
const CONFIG = {
  inputs: positiveInteger,
  outputs: positiveInteger,
  bias: flag,
  seed: integer,
  dtype: oneOf(...TYPES),
  group: positiveInteger,
};
const DEFAULT_GROUP = 64;
const FORWARD = { out: later<unknown>() };

function readConfig(given: unknown): FullLinearConfig {
  const { group, ...rest } = required(readOptions(given, CONFIG, "linear"), ["inputs", "outputs"], "linear");
  const config = { bias: true, seed: 0, dtype: "f32", ...rest } as FullLinearConfig;
  if (config.dtype !== "int8") {
    if (group !== undefined)
      fail(
        "bad-option",
        `linear: group is of dtype 'int8', which shares scales; received ${group} with '${config.dtype}'.`,
      );
    return config;
  }
  const size = group ?? DEFAULT_GROUP;
  if (size % 16 !== 0 || size > 256)
    fail("bad-option", `linear: group must be a multiple of 16 from 16 to 256; received ${size}.`);
  return { ...config, group: size };
}

class LinearLayer extends Parameterized {
  readonly config: Readonly<FullLinearConfig>;
  readonly #heap: Heap;
  readonly #projection: Projection;

  constructor(heap: Heap, given: unknown) {
    super(heap, "This linear layer");
    this.#heap = heap;
    this.config = Object.freeze(readConfig(given));
    const { inputs, outputs, seed, dtype, group = 0 } = this.config;
    const format = { type: TYPES.indexOf(dtype), group };
    const { bytes, parts } = planProjections(heap, this.config.bias, [[inputs, outputs]], format);
    const [part] = parts;
    this.#projection = part;
    this.begin(bytes, [weight("weight", part), ...(this.config.bias ? [bias("bias", part)] : [])], seed);
  }

  forward(x: unknown, given?: unknown): Tensor | WasmTensor {
    this.block();
    const { out } = readOptions(given, FORWARD, "forward");
    const { inputs, outputs } = this.config;
    const { source, dims } = readFloats(x, "x", this.#heap);
    if (dims.at(-1) !== inputs)
      fail("input-width", `x must be [..., ${inputs}] (inputs); received dims ${shape(dims)}.`);
    const before = dims.slice(0, -1);
    const job = new Job(this.#heap, "forward");
    const input = job.input(source);
    const output = planResults(job, this.#heap, { output: [...before, outputs] }, out).output!;
    const record = (at: At, ...workspace: number[]) =>
      this.linear(at, this.#projection, input, output.output.place, product(before), ...workspace);
    job.run(
      (raw, at) => raw.linearWorkspaceBytes(record(at)),
      (raw, at, workspace, bytes) => raw.linear(record(at, workspace, bytes)),
    );
    return output.tensor();
  }
}

export const makeLinear = (heap: Heap, config: unknown): Linear => new LinearLayer(heap, config) as Linear;
