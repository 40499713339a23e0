import { makeCache, readCache } from "./cache.js";
import { finishResults, planInputs, planScores, rawCall, SCORE_OPTIONS } from "./call.js";
import { fail, shape } from "./errors.js";
import type { LayerGradients } from "./gradient-types.js";
import { ofDims } from "./gradients.js";
import { type At, type Heap, Job, type Place } from "./heap.js";
import type { KvCache } from "./kv-cache-types.js";
import type { RawAttentionCall, RawLayerCall, RawRotary } from "./module.js";
import { flag, integer, later, type OptionsOf, positiveInteger, readOptions, required } from "./options.js";
import { bias, type Parameter, Parameterized, type Projection, planProjections, weight } from "./parameters.js";
import { ProjectedKeysValues } from "./projected-memory.js";
import { planResults, tensorsOf } from "./results.js";
import { NO_ROTARY, readEmbedding, readPositions } from "./rotary.js";
import type { RotaryEmbedding } from "./rotary-types.js";
import { checkGroups, type Geometry } from "./shapes.js";
import { type Operand, readFloats } from "./tensors.js";
import type { AttentionResult, FullLayerConfig, MultiHeadAttention, ProjectedMemory, StateDict } from "./types.js";

type LayerConfig = Readonly<FullLayerConfig>;
type Projections = Readonly<Record<"query" | "key" | "value" | "out", Projection>>;

const CONFIG = {
  embedDim: positiveInteger,
  heads: positiveInteger,
  kvHeads: positiveInteger,
  keyDim: positiveInteger,
  valueDim: positiveInteger,
  bias: flag,
  seed: integer,
  rotary: later<RotaryEmbedding>(),
};
const { cache, causal, queryOffset, ...STEP_SCORES } = SCORE_OPTIONS;
const STEP = { ...STEP_SCORES, positions: later<unknown>() };
const FORWARD = { memory: later<unknown>(), memoryValues: later<unknown>(), ...SCORE_OPTIONS, ...STEP };
const BACKWARD = { ...FORWARD, gradOutput: later<unknown>(), out: later<unknown>() };
const GRADIENTS = { gradX: later<unknown>(), gradMemory: later<unknown>(), gradMemoryValues: later<unknown>() };
type Gradient = keyof typeof GRADIENTS;
const CACHE = { batch: positiveInteger, capacity: positiveInteger, dtype: later<unknown>(), rolling: later<unknown>() };

/** M1: the whole configuration, or an error with the numbers that do not fit. */
function readConfig(given: unknown): LayerConfig {
  const where = "multiHeadAttention";
  const { embedDim, heads, ...rest } = required(readOptions(given, CONFIG, where), ["embedDim", "heads"], where);
  if (embedDim % heads !== 0) {
    const fitting = Array.from({ length: 64 }, (_, n) => n + 1).filter((n) => embedDim % n === 0);
    fail(
      "embed-dim-not-divisible",
      `embedDim must be a multiple of heads; received embedDim ${embedDim} and heads ${heads}. Heads that fit: ${fitting.join(", ")}.`,
    );
  }
  const config = {
    kvHeads: heads,
    keyDim: embedDim,
    valueDim: embedDim,
    bias: true,
    seed: 0,
    ...rest,
    embedDim,
    heads,
  } as LayerConfig;
  checkGroups(heads, config.kvHeads);
  return config;
}

const kvWidth = ({ embedDim, heads, kvHeads }: LayerConfig): number => (embedDim / heads) * kvHeads;

/** M3: PyTorch's names; it stacks the in-projections where all project from the same width. */
function parametersOf(config: LayerConfig, { query, key, value, out }: Projections): Parameter[] {
  const { embedDim, keyDim, valueDim } = config;
  const inProjection =
    keyDim === embedDim && valueDim === embedDim
      ? [weight("in_proj_weight", query, key, value)]
      : [weight("q_proj_weight", query), weight("k_proj_weight", key), weight("v_proj_weight", value)];
  const outProjection = { ...weight("out_proj.weight", out), bound: 1 / Math.sqrt(embedDim) };
  const biases = [bias("in_proj_bias", query, key, value), bias("out_proj.bias", out)];
  return [...inProjection, outProjection, ...(config.bias ? biases : [])];
}

/** [B, L, width] or [L, width]. */
interface Sequence {
  readonly operand: Operand;
  readonly batch: number;
  readonly length: number;
}

function readSequence(value: unknown, name: string, width: number, option: string, heap: Heap): Sequence {
  const operand = readFloats(value, name, heap);
  const { dims } = operand;
  const accepted = `[B, L, ${width}] or [L, ${width}] (${option})`;
  if (dims.length !== 2 && dims.length !== 3)
    fail("bad-rank", `${name} must be ${accepted}; received dims ${shape(dims)}.`);
  if (dims.at(-1) !== width)
    fail("input-width", `${name} must be ${accepted}; the last dim of ${shape(dims)} is ${dims.at(-1)}.`);
  const batch = dims.length === 3 ? dims[0]! : 1;
  if (batch < 1) fail("bad-dims", `${name}: the batch of ${shape(dims)} is 0.`);
  return { operand, batch, length: dims.at(-2)! };
}

/** Keys and values to be: sources still to be projected, or projected already. */
type Memory = { keys: Sequence; values: Sequence } | ProjectedKeysValues;

/** Where a call finds what it reads. */
type Sources = Partial<Record<"keys" | "values" | "projectedKeys" | "projectedValues", Place>> & {
  readonly source: Place;
  readonly positions: Place | undefined;
};

class Layer extends Parameterized implements MultiHeadAttention {
  readonly config: LayerConfig;
  readonly #heap: Heap;
  readonly #projections: Projections;
  readonly #rotary: RawRotary;
  /** Counts loads: what was projected with older weights is stale. */
  #generation = 0;

  constructor(heap: Heap, given: unknown) {
    super(heap, "This multi-head layer");
    this.#heap = heap;
    this.config = Object.freeze(readConfig(given));
    const { rotary, embedDim, heads, keyDim, valueDim, seed } = this.config;
    this.#rotary =
      rotary !== undefined ? readEmbedding(rotary, embedDim / heads, "multiHeadAttention: rotary") : NO_ROTARY;
    const inner = kvWidth(this.config);
    const { bytes, parts } = planProjections(heap, this.config.bias, [
      [embedDim, embedDim],
      [keyDim, inner],
      [valueDim, inner],
      [embedDim, embedDim],
    ]);
    const [query, key, value, out] = parts;
    this.#projections = { query, key, value, out };
    this.begin(bytes, parametersOf(this.config, this.#projections), seed);
  }

  override load(state: StateDict): void {
    super.load(state);
    this.#generation++;
  }

  project(memory: unknown, memoryValues?: unknown): ProjectedMemory {
    this.block();
    const { keys, values } = this.#readMemory(memory, memoryValues);
    const heap = this.#heap;
    const { key, value } = this.#projections;
    const floats = keys.batch * keys.length * kvWidth(this.config);
    const projected = new ProjectedKeysValues(heap, this, this.#generation, keys.batch, keys.length, floats);
    try {
      const job = new Job(heap, "project");
      const inputs = { keys: job.input(keys.operand.source), values: job.input(values.operand.source) };
      const rows = keys.batch * keys.length;
      job.run(
        undefined,
        (raw, at) =>
          raw.linear(this.linear(at, key, inputs.keys, projected.keys(), rows)) ||
          raw.linear(this.linear(at, value, inputs.values, projected.values(), rows)),
      );
      return projected;
    } catch (error) {
      projected.dispose();
      throw error;
    }
  }

  step(x: unknown, cache: unknown, given?: unknown): AttentionResult<never> {
    this.block();
    const options = readOptions(given, STEP, "step");
    return this.#run(x, { ...options, causal: true, cache: readCache(cache, this.#heap) });
  }

  kvCache(given: unknown): KvCache {
    this.block();
    const { embedDim, heads, kvHeads } = this.config;
    const sizes = readOptions(given, CACHE, "kvCache");
    return makeCache(this.#heap, { ...sizes, kvHeads, headDim: embedDim / heads });
  }

  forward(x: unknown, given?: unknown): AttentionResult<never> {
    this.block();
    return this.#run(x, readOptions(given, FORWARD, "forward"));
  }

  #run(x: unknown, options: OptionsOf<typeof FORWARD>): AttentionResult<never> {
    const job = new Job(this.#heap, "forward");
    const { input, geometry, operands } = this.#operands("forward", job, x, options);
    const plan = planScores(job, this.#heap, geometry, options, input.operand.dims);
    const from: Sources = { ...operands, positions: this.#positions(job, input, options) };
    const record = (at: At, workspace = 0, workspaceBytes = 0) =>
      this.#record(at, from, rawCall(plan, at, workspace, workspaceBytes), at(plan.results.output?.output.place));
    job.run(
      (raw, at) => raw.layerWorkspaceBytes(record(at)),
      (raw, at, workspace, bytes) => raw.layerForward(record(at, workspace, bytes)),
      {
        begin: (raw, at, workspace, bytes) => raw.layerBegin(record(at, workspace, bytes)),
        run: "layerRun",
        end: "layerEnd",
      },
    );
    return finishResults(plan) as AttentionResult<never>;
  }

  backward(x: unknown, given: unknown): LayerGradients<never> {
    this.block();
    const where = "backward";
    const {
      gradOutput,
      out: targets,
      ...options
    } = required(readOptions(given, BACKWARD, where), ["gradOutput"], where);
    if (options.cache !== undefined || ProjectedKeysValues.is(options.memory)) {
      fail("bad-option", `${where}: a cache or a projected memory keeps no gradients; give the tokens themselves.`);
    }
    const job = new Job(this.#heap, where);
    const { input, memory, geometry, operands } = this.#operands(where, job, x, options);
    const gradient = ofDims(
      readFloats(gradOutput, `${where}: gradOutput`, this.#heap),
      where,
      "gradOutput",
      input.operand.dims,
    );
    const gradientPlace = job.input(gradient.source);
    const plan = planInputs(job, this.#heap, geometry, options);
    const from: Sources = { ...operands, positions: this.#positions(job, input, options) };
    const { keys, values } = memory as { keys: Sequence; values: Sequence };
    const dims = {
      gradX: input.operand.dims,
      ...(keys !== input && { gradMemory: keys.operand.dims }),
      ...(values !== keys && { gradMemoryValues: values.operand.dims }),
    };
    const { sources, parameters } = this.#planGradients(job, dims, targets);
    const { gradX, gradMemory = gradX, gradMemoryValues = gradMemory } = sources;
    const gradients = (at: At, part: Projection) =>
      this.rawGradients(at, part, (name) => parameters[name]!.output.place);
    const { query, key, value, out } = this.#projections;
    const record = (at: At, workspace = 0, workspaceBytes = 0) => ({
      forward: this.#record(at, from, rawCall(plan, at, workspace, workspaceBytes), 0),
      gradOutput: at(gradientPlace),
      gradInput: at(gradX!.output.place),
      gradMemoryKeys: at(gradMemory!.output.place),
      gradMemoryValues: at(gradMemoryValues!.output.place),
      query: gradients(at, query),
      key: gradients(at, key),
      value: gradients(at, value),
      outputProjection: gradients(at, out),
    });
    job.run(
      (raw, at) => raw.layerBackwardWorkspaceBytes(record(at)),
      (raw, at, workspace, bytes) => raw.layerBackward(record(at, workspace, bytes)),
    );
    return { ...tensorsOf(sources), parameters: tensorsOf(parameters) } as LayerGradients<never>;
  }

  /** Room for the gradients that have dims and for those of all parameters, or where `out` wants them. Call it after every job.input(). */
  #planGradients(job: Job, dims: Partial<Record<Gradient, readonly number[]>>, out: unknown) {
    const { parameters: targets, ...own } = readOptions(out, { ...GRADIENTS, parameters: later<unknown>() }, "out");
    for (const name of Object.keys(own) as Gradient[])
      if (dims[name] === undefined) fail("bad-out", `out.${name} is given, but no memory whose gradient it would be.`);
    const sources = planResults<Gradient>(job, this.#heap, dims, own, GRADIENTS);
    const shapes = this.parameterDims;
    const named = Object.fromEntries(Object.keys(shapes).map((name) => [name, later<unknown>()]));
    return { sources, parameters: planResults(job, this.#heap, shapes, targets, named, "out.parameters", sources) };
  }

  /** What a call reads, in its job. */
  #operands(where: string, job: Job, x: unknown, options: OptionsOf<typeof FORWARD>) {
    const { embedDim, heads, kvHeads } = this.config;
    const input = readSequence(x, "x", embedDim, "embedDim", this.#heap);
    const memory = this.#memoryOf(input, options);
    const [memoryBatch, keyLength] = ProjectedKeysValues.is(memory)
      ? [memory.batch, memory.keyLength]
      : [memory.keys.batch, memory.keys.length];
    if (memoryBatch !== input.batch) {
      fail("batch-mismatch", `${where}: x has a batch of ${input.batch}, the memory of ${memoryBatch}.`);
    }
    const headDim = embedDim / heads;
    const sizes = { batch: input.batch, queryLength: input.length, keyLength };
    const geometry: Geometry = { ...sizes, heads, kvHeads, headDim, valueDim: headDim };
    const source = job.input(input.operand.source);
    const read = ProjectedKeysValues.is(memory)
      ? { projectedKeys: memory.keys(), projectedValues: memory.values() }
      : { keys: job.input(memory.keys.operand.source), values: job.input(memory.values.operand.source) };
    return { input, memory, geometry, operands: { ...read, source } };
  }

  #record(at: At, from: Sources, attention: RawAttentionCall, output: number): RawLayerCall {
    const { query, key, value, out } = this.#projections;
    return {
      attention,
      rotary: this.#rotary,
      positions: at(from.positions),
      input: at(from.source),
      memoryKeys: at(from.keys),
      memoryValues: at(from.values),
      projectedKeys: at(from.projectedKeys),
      projectedValues: at(from.projectedValues),
      output,
      query: this.raw(at, query),
      key: this.raw(at, key),
      value: this.raw(at, value),
      outputProjection: this.raw(at, out),
    };
  }

  /** Where the rows of x stand, [B, L], for a layer that turns them. After the plan, which knows whether the cache fits. */
  #positions(job: Job, { batch, length }: Sequence, options: OptionsOf<typeof FORWARD>): Place | undefined {
    const { positions, cache, memory } = options;
    if (this.config.rotary === undefined) {
      if (positions !== undefined) fail("bad-option", "forward: positions need a layer with option rotary.");
      return undefined;
    }
    if (memory !== undefined) {
      fail(
        "bad-option",
        "forward: a layer with rotary positions has no cross-attention (memory): they are those of one sequence.",
      );
    }
    const starts = cache === undefined ? undefined : readCache(cache, this.#heap).lengths;
    const rows = readPositions(positions, positions === undefined ? starts : undefined, batch, length);
    return job.input(Int32Array.from({ length: batch * length }, (_, at) => rows[at % rows.length]!));
  }

  #memoryOf(input: Sequence, { memory, memoryValues, cache }: OptionsOf<typeof FORWARD>): Memory {
    if (memory !== undefined && cache !== undefined) {
      fail(
        "bad-option",
        "forward: a cache holds the tokens of self-attention; for a memory use layer.project(memory) instead.",
      );
    }
    if (ProjectedKeysValues.is(memory)) {
      if (memoryValues !== undefined)
        fail("bad-option", "forward: memoryValues is part of a projected memory already; leave it out.");
      memory.check(this, this.#generation);
      return memory;
    }
    if (memory !== undefined) return this.#readMemory(memory, memoryValues);
    const { embedDim, keyDim, valueDim } = this.config;
    if (memoryValues !== undefined) fail("memory-missing", "forward: memoryValues is given without memory.");
    if (keyDim !== embedDim || valueDim !== embedDim) {
      fail(
        "memory-missing",
        `forward: this layer has keyDim ${keyDim} and valueDim ${valueDim} besides embedDim ${embedDim}: give memory.`,
      );
    }
    return { keys: input, values: input };
  }

  #readMemory(memory: unknown, memoryValues: unknown): { keys: Sequence; values: Sequence } {
    const { keyDim, valueDim } = this.config;
    const keys = readSequence(memory, "memory", keyDim, "keyDim", this.#heap);
    if (memoryValues === undefined && keyDim !== valueDim) {
      fail(
        "memory-missing",
        `keyDim is ${keyDim} and valueDim ${valueDim}: give memoryValues [B, Lk, ${valueDim}] besides memory.`,
      );
    }
    const values =
      memoryValues === undefined ? keys : readSequence(memoryValues, "memoryValues", valueDim, "valueDim", this.#heap);
    if (keys.batch !== values.batch)
      fail("batch-mismatch", `memory has a batch of ${keys.batch}, memoryValues of ${values.batch}.`);
    if (keys.length !== values.length) {
      fail(
        "length-mismatch",
        `memory and memoryValues must have the same length; received ${keys.length} and ${values.length}.`,
      );
    }
    return { keys, values };
  }
}

export const makeLayer = (heap: Heap, config: unknown): MultiHeadAttention =>
  new Layer(heap, config) as MultiHeadAttention;
