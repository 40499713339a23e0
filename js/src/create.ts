import { attention } from "./attention.js";
import { makeCache } from "./cache.js";
import { diagnose } from "./diagnose.js";
import type { CausalReport, Diagnosis } from "./diagnose-types.js";
import { fail, kindOf, refuse, shape, show } from "./errors.js";
import { keepsWideTiles } from "./features.js";
import type { AttentionGradients } from "./gradient-types.js";
import { attentionBackward } from "./gradients.js";
import { Heap, heaps } from "./heap.js";
import type { KvCache } from "./kv-cache-types.js";
import { makeLinear } from "./linear.js";
import { type Loaded, loadModule } from "./load.js";
import { makeLayer } from "./multi-head.js";
import { flag, integer, notNegative, positiveInteger, readOptions } from "./options.js";
import { DISPOSE } from "./owned.js";
import type { Platform } from "./platform.js";
import { mulberry32 } from "./random.js";
import { rotary } from "./rotary.js";
import { product, readDims } from "./tensors.js";
import type { Trainer } from "./train/types.js";
import type {
  AttentionResult,
  Linear,
  Lookback,
  LookbackOptions,
  MemoryReport,
  MultiHeadAttention,
  Tensor,
  Variant,
  WasmTensor,
} from "./types.js";
import { makeTensor } from "./wasm-tensor.js";

const errors = { fail, kindOf, refuse, shape, show };
const readers = { flag, integer, notNegative, positiveInteger, readOptions, readDims };
/** For assert-causal.ts, which imports none of them. */
const TOOLS = { ...errors, ...readers, mulberry32, product };

class Instance implements Lookback {
  readonly variant: Variant;
  readonly fused: boolean;
  readonly threads: number;
  readonly threadsReason: string | undefined;
  readonly #heap: Heap;

  constructor(heap: Heap, { variant, threads }: Loaded) {
    this.#heap = heap;
    heaps.set(this, heap);
    this.variant = variant;
    this.threads = threads.count;
    this.threadsReason = threads.reason;
    this.fused = heap.raw.fusedMultiplyAdd();
  }

  get disposed(): boolean {
    return this.#heap.disposed;
  }

  attention(q: unknown, k: unknown, v: unknown, options?: unknown): AttentionResult<never> {
    return attention(this.#heap, q, k, v, options) as AttentionResult<never>;
  }

  attentionBackward(q: unknown, k: unknown, v: unknown, options: unknown): AttentionGradients<never> {
    return attentionBackward(this.#heap, q, k, v, options) as AttentionGradients<never>;
  }

  kvCache(config: unknown): KvCache {
    return makeCache(this.#heap, config);
  }

  rotary(x: unknown, options?: unknown): Tensor & WasmTensor {
    return rotary(this.#heap, x, options) as Tensor & WasmTensor;
  }

  multiHeadAttention(config: unknown): MultiHeadAttention {
    return makeLayer(this.#heap, config);
  }

  linear(config: unknown): Linear {
    return makeLinear(this.#heap, config);
  }

  tensor(data: unknown, dims: unknown): WasmTensor {
    return makeTensor(this.#heap, data, dims);
  }

  diagnose(q: unknown, k: unknown, v: unknown, options?: unknown): Diagnosis {
    return diagnose(this.#heap, q, k, v, options);
  }

  async assertCausal(fn: unknown, options: unknown): Promise<CausalReport> {
    const { assertCausal } = await import("./assert-causal.js"); // a tool for tests: no load for pages
    return assertCausal(fn, options, TOOLS);
  }

  async trainer(config: unknown): Promise<Trainer> {
    const { makeTrainer } = await import("./train/make-trainer.js"); // whoever does not train does not load it
    return makeTrainer(this.#heap, this, config);
  }

  memory(): MemoryReport {
    return this.#heap.report();
  }

  dispose(): void {
    this.#heap.dispose();
  }

  [DISPOSE](): void {
    this.dispose();
  }
}

export async function createOn(platform: Platform, options: LookbackOptions | undefined): Promise<Lookback> {
  const loaded = await loadModule(platform, options);
  loaded.raw.useWideTiles(keepsWideTiles());
  const heap = new Heap(loaded.raw);
  loaded.watch(heap);
  return new Instance(heap, loaded) as Lookback;
}
