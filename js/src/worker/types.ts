/// <reference lib="esnext.disposable" preserve="true" />
/** The public types of `lookback/worker`: those of `lookback`, with promises. */

import type { Diagnosis } from "../diagnose-types.js";
import type {
  AttentionBackwardOptions,
  AttentionGradients,
  LayerBackwardOptions,
  LayerGradients,
} from "../gradient-types.js";
import type { KvCache, KvCacheAppendOptions, KvCacheConfig } from "../kv-cache-types.js";
import type { AttentionPart, MergedAttention, MergeOptions } from "../merge.js";
import type { RotaryOptions } from "../rotary-types.js";
import type {
  AttentionOptions,
  AttentionResult,
  FullLayerConfig,
  LayerCacheConfig,
  LayerForwardOptions,
  LayerStepOptions,
  LinearConfig,
  Lookback,
  LookbackOptions,
  MemoryReport,
  MultiHeadAttentionConfig,
  Only,
  ProjectedMemory,
  Tensor,
  TensorLike,
  TypedTensor,
  WasmTensor,
} from "../types.js";

/** What every call takes besides its own options: among them, or as one more argument where there are none. */
export interface WorkerCall {
  /**
   * Rejects with the signal's reason. A call that waits for others does not begin, a running one ends between two blocks of queries; a tensor
   * named by `out` then holds nothing of use, and a cache what it held before.
   */
  signal?: AbortSignal;
  /** Told how much of the call is done, from 0 to 1, between blocks of queries. */
  onProgress?: (fraction: number) => void;
  /** Hands the buffers of the call's arrays over instead of copying them: they are detached afterwards. Default false. */
  transfer?: boolean;
}

export interface WorkerOptions extends LookbackOptions {
  /** Gives up: the promise rejects with the signal's reason, and the worker ends. */
  signal?: AbortSignal;
}

/** Float data that may enter a calculation of the worker. */
export type WorkerFloats = TensorLike<Float32Array | ArrayBufferView> | TypedTensor | WorkerTensor;

/** A value of a call as the worker's calls take it: what lives in an instance's memory is the worker's. */
type InWorker<Value> = Value extends WasmTensor
  ? WorkerTensor
  : Value extends KvCache
    ? WorkerKvCache
    : Value extends ProjectedMemory
      ? WorkerProjectedMemory
      : Value;

/** Results are transferred, so only tensors of the worker are worth naming as targets. */
type Out<Options> = Options extends { out?: infer Targets | undefined }
  ? {
      out?: {
        [Name in keyof Targets]?: Name extends "parameters" ? Readonly<Record<string, WorkerTensor>> : WorkerTensor;
      };
    }
  : unknown;

type OptionsInWorker<Options> = { [Name in keyof Omit<Options, "out">]: InWorker<Options[Name]> } & Out<Options> &
  WorkerCall;

type Returned<Given, Name, Value> = Given extends { out: { [Key in Name & string]: WorkerTensor } }
  ? WorkerTensor
  : Value;

export type WorkerAttentionOptions = OptionsInWorker<AttentionOptions>;
export type WorkerAttentionResult<Given = WorkerAttentionOptions> = {
  [Name in keyof AttentionResult<Given>]: Returned<Given, Name, AttentionResult<Given>[Name]>;
};
export type WorkerAttentionBackwardOptions = OptionsInWorker<AttentionBackwardOptions>;
export type WorkerAttentionGradients<Given = WorkerAttentionBackwardOptions> = {
  [Name in keyof AttentionGradients<Given>]: Returned<Given, Name, AttentionGradients<Given>[Name]>;
};
export type WorkerLayerGradients<Given = WorkerLayerBackwardOptions> = {
  [Name in keyof LayerGradients]: Name extends "parameters"
    ? Record<string, Given extends { out: { parameters: object } } ? Tensor | WorkerTensor : Tensor>
    : Returned<Given, Name, LayerGradients[Name]>;
};
export type WorkerRotaryOptions = OptionsInWorker<RotaryOptions>;
export type WorkerLayerForwardOptions = OptionsInWorker<LayerForwardOptions>;
export type WorkerLayerBackwardOptions = OptionsInWorker<LayerBackwardOptions>;
export type WorkerLayerStepOptions = OptionsInWorker<LayerStepOptions>;
export type WorkerLinearForwardOptions = { out?: { output?: WorkerTensor } } & WorkerCall;
export type WorkerStateDict = Record<string, WorkerFloats>;

/** An object in the worker's memory. */
export interface WorkerObject {
  readonly disposed: boolean;
  /** Calls that were made before still end well. */
  dispose(): void;
  [Symbol.dispose](): void;
}

/** A tensor that lives in the worker's wasm memory: calls of the worker take it without a copy. */
export interface WorkerTensor extends WorkerObject {
  readonly dims: readonly number[];
  read(call?: WorkerCall): Promise<Float32Array>;
  write(data: ArrayLike<number>, call?: WorkerCall): Promise<void>;
}

export interface WorkerKvCache extends WorkerObject {
  readonly config: KvCache["config"];
  readonly capacity: number;
  /** As they are when the calls made before have ended; so are the next two. */
  readonly lengths: Promise<number[]>;
  readonly length: Promise<number>;
  readonly firstPosition: Promise<number>;
  append(k: WorkerFloats, v: WorkerFloats, options?: KvCacheAppendOptions & WorkerCall): Promise<void>;
  read(call?: WorkerCall): Promise<{ keys: Tensor; values: Tensor }>;
  truncate(length: number, call?: WorkerCall): Promise<void>;
  reset(call?: WorkerCall): Promise<void>;
  clone(call?: WorkerCall): Promise<WorkerKvCache>;
  save(call?: WorkerCall): Promise<Uint8Array>;
  load(bytes: Uint8Array | ArrayBuffer, call?: WorkerCall): Promise<void>;
}

export interface WorkerProjectedMemory extends WorkerObject {
  readonly batch: number;
  readonly keyLength: number;
}

export interface WorkerMultiHeadAttention extends WorkerObject {
  readonly config: Readonly<FullLayerConfig>;
  load(state: WorkerStateDict, call?: WorkerCall): Promise<void>;
  state(call?: WorkerCall): Promise<Record<string, Tensor>>;
  forward<Given extends WorkerLayerForwardOptions>(
    x: WorkerFloats,
    options?: Only<WorkerLayerForwardOptions, Given>,
  ): Promise<WorkerAttentionResult<Given>>;
  step<Given extends WorkerLayerStepOptions>(
    x: WorkerFloats,
    cache: WorkerKvCache,
    options?: Only<WorkerLayerStepOptions, Given>,
  ): Promise<WorkerAttentionResult<Given>>;
  backward<Given extends WorkerLayerBackwardOptions>(
    x: WorkerFloats,
    options: Only<WorkerLayerBackwardOptions, Given>,
  ): Promise<WorkerLayerGradients<Given>>;
  kvCache(config: LayerCacheConfig & WorkerCall): Promise<WorkerKvCache>;
  project(memory: WorkerFloats, memoryValues?: WorkerFloats, call?: WorkerCall): Promise<WorkerProjectedMemory>;
}

export interface WorkerLinear extends WorkerObject {
  readonly config: Readonly<Required<LinearConfig>>;
  load(state: WorkerStateDict, call?: WorkerCall): Promise<void>;
  state(call?: WorkerCall): Promise<Record<string, Tensor>>;
  forward<Given extends WorkerLinearForwardOptions>(
    x: WorkerFloats,
    options?: Only<WorkerLinearForwardOptions, Given>,
  ): Promise<Returned<Given, "output", Tensor>>;
}

/**
 * An instance of the engine in a worker of its own: the calls of `Lookback` as promises. They run one after the other, in the order in which
 * they were made; a call may use what an earlier one will have made. Arrays are copied on their way in, or handed over with `transfer`.
 */
export interface WorkerLookback
  extends Pick<Lookback, "variant" | "fused" | "threads" | "threadsReason" | "disposed" | "dispose"> {
  attention<Given extends WorkerAttentionOptions>(
    q: WorkerFloats,
    k: WorkerFloats | null,
    v: WorkerFloats | null,
    options?: Only<WorkerAttentionOptions, Given>,
  ): Promise<WorkerAttentionResult<Given>>;
  attentionBackward<Given extends WorkerAttentionBackwardOptions>(
    q: WorkerFloats,
    k: WorkerFloats,
    v: WorkerFloats,
    options: Only<WorkerAttentionBackwardOptions, Given>,
  ): Promise<WorkerAttentionGradients<Given>>;
  mergeAttention(parts: readonly AttentionPart[], options?: MergeOptions & WorkerCall): Promise<MergedAttention>;
  rotary<Given extends WorkerRotaryOptions>(
    x: WorkerFloats,
    options?: Only<WorkerRotaryOptions, Given>,
  ): Promise<Returned<Given, "output", Tensor>>;
  diagnose<Given extends WorkerAttentionOptions>(
    q: WorkerFloats,
    k: WorkerFloats | null,
    v: WorkerFloats | null,
    options?: Only<WorkerAttentionOptions, Given>,
  ): Promise<Diagnosis>;
  kvCache(config: KvCacheConfig & WorkerCall): Promise<WorkerKvCache>;
  multiHeadAttention(config: MultiHeadAttentionConfig & WorkerCall): Promise<WorkerMultiHeadAttention>;
  linear(config: LinearConfig & WorkerCall): Promise<WorkerLinear>;
  tensor(data: ArrayLike<number> | null, dims: readonly number[], call?: WorkerCall): Promise<WorkerTensor>;
  memory(call?: WorkerCall): Promise<MemoryReport>;
  /** Ends the worker at once: calls that have not ended are rejected with the code 'disposed'. */
  dispose(): void;
  [Symbol.dispose](): void;
}
