import { fail, shape } from "./errors.js";
import { type Heap, Job } from "./heap.js";
import { flag, integer, later, positiveInteger, readOptions, required } from "./options.js";
import { bias, Parameterized, type Projection, planProjections, weight } from "./parameters.js";
import { planResults } from "./results.js";
import { product, readFloats } from "./tensors.js";
import type { Linear, LinearConfig, Tensor, WasmTensor } from "./types.js";

const CONFIG = { inputs: positiveInteger, outputs: positiveInteger, bias: flag, seed: integer };
const FORWARD = { out: later<unknown>() };

class LinearLayer extends Parameterized {
  readonly config: Readonly<Required<LinearConfig>>;
  readonly #heap: Heap;
  readonly #projection: Projection;

  constructor(heap: Heap, given: unknown) {
    super(heap, "This linear layer");
    this.#heap = heap;
    const options = required(readOptions(given, CONFIG, "linear"), ["inputs", "outputs"], "linear");
    this.config = Object.freeze({ bias: true, seed: 0, ...options } as Required<LinearConfig>);
    const { inputs, outputs, seed } = this.config;
    const { bytes, parts } = planProjections(heap, this.config.bias, [[inputs, outputs]]);
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
    job.run(undefined, (raw, at) =>
      raw.linear(this.linear(at, this.#projection, input, output.output.place, product(before))),
    );
    return output.tensor();
  }
}

export const makeLinear = (heap: Heap, config: unknown): Linear => new LinearLayer(heap, config) as Linear;
