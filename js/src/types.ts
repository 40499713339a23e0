/// <reference lib="esnext.disposable" preserve="true" />
/** The public types of `lookback`. Shapes use the words of the field: B batch, H heads, Lq / Lk query and key length. */
import type { AssertCausalOptions, CausalReport, Diagnosis, SequenceFunction } from "./diagnose-types.js";
import type {
  AttentionBackwardOptions,
  AttentionGradients,
  Dropout,
  LayerBackwardOptions,
  LayerGradients,
} from "./gradient-types.js";
import type { KvCache, KvCacheAppendOptions, KvCacheConfig } from "./kv-cache-types.js";
import type { Positions, RotaryEmbedding, RotaryOptions } from "./rotary-types.js";
import type { Trainer, TrainerConfig } from "./train/types.js";

/** A dense tensor in row-major order: what onnxruntime's and transformers.js' tensors already are. */
export interface TensorLike<Data = ArrayLike<number> | ArrayBufferView> {
  readonly data: Data;
  readonly dims: readonly number[];
}

/** A tensor of onnxruntime or transformers.js, where only `type` tells (at run time) what the data is; here it is checked. */
export interface TypedTensor {
  readonly type: string;
  readonly data: unknown;
  readonly dims: readonly number[];
}

/** Float data that may enter a calculation: float32, or Float16Array where the engine has it (converted). */
export type FloatTensor = TensorLike<Float32Array | ArrayBufferView> | TypedTensor | WasmTensor;

/** 1 (true) = may attend. */
export type MaskData = Uint8Array | boolean[] | Int32Array | BigInt64Array;

/** A boolean mask given as data. */
export type MaskTensor = TensorLike<MaskData> | TypedTensor;

/** A tensor that is returned: a plain copy outside of wasm memory. */
export interface Tensor {
  data: Float32Array;
  dims: number[];
}

export interface IntTensor {
  data: Int32Array;
  dims: number[];
}

/** A float32 tensor that lives in wasm memory, so that calls need not copy it. */
export interface WasmTensor {
  readonly dims: readonly number[];
  readonly disposed: boolean;
  /** A copy of the values. */
  read(): Float32Array;
  /** Replaces all values; `data` must have exactly as many. */
  write(data: ArrayLike<number>): void;
  dispose(): void;
  [Symbol.dispose](): void;
}

/** Which stage of the calculation to return, in ONNX's order of `qk_matmul_output_mode` 3, 0, 1, 2. */
export type WeightsKind = "softmax" | "scores" | "capped" | "masked";

export interface WeightsRequest {
  kind?: WeightsKind;
  /** Query heads to return, in this order; default all. */
  heads?: readonly number[];
  /** Query rows [from, to) to return; default all. */
  queries?: readonly [number, number];
}

/** Figures of every row's weights, gathered in one pass: memory stays far below [Lq, Lk]. */
export interface SummaryRequest {
  /** The k heaviest keys of every row. */
  topK?: number;
  entropy?: boolean;
  distance?: boolean;
  /** The weights as a picture of [R, C] cells, R ≤ Lq and C ≤ Lk. */
  map?: readonly [number, number];
}

/** What a SummaryRequest gives. */
export interface Summary {
  /** [B, H, Lq, k], by falling weight, then rising key; index −1 and weight 0 where a row sees fewer keys. */
  topK?: { indices: IntTensor; weights: Tensor };
  /** [B, H, Lq], −Σ w·ln w in nats. */
  entropy?: Tensor;
  /** [B, H, Lq], Σ w·(i + offset − j): how far back a row looks. */
  distance?: Tensor;
  /** [B, H, R, C]: the mean over a cell's rows of the weight that they give to its keys. */
  map?: Tensor;
}

/** Sets the position of query row 0: 'start' = 0, 'end' = Lk − Lq (keyLengths[b] − Lq), a number, or one number per batch row. */
export type QueryOffset = "start" | "end" | number | readonly number[] | Int32Array;

export interface AttentionOptions extends KvCacheAppendOptions {
  /** Query heads; required for 2-D and 3-D inputs, where heads are folded into the last dimension. */
  heads?: number;
  /** Key/value heads (grouped-query attention); default `heads`. */
  kvHeads?: number;
  /** Multiplies Q·Kᵀ; default 1/√headDim. */
  scale?: number;
  /** scores become softcap · tanh(scores / softcap). */
  softcap?: number;
  /** Key j is visible to query i iff j ≤ i + offset. */
  causal?: boolean;
  /** The position of query row 0, for causal, window, alibi and distance. With a cache it is the row's length, and this is an error. */
  queryOffset?: QueryOffset;
  /** Key j is visible to query i iff i + offset − left ≤ j ≤ i + offset + right; a side left out is Infinity. */
  window?: { left?: number; right?: number };
  /** Boolean mask, 1 = may attend, broadcast from the right to [B, H, Lq, Lk]. */
  mask?: Mask | MaskTensor;
  /** Float bias, added after scale and softcap, broadcast from the right to [B, H, Lq, Lk]; −∞ masks. */
  bias?: FloatTensor;
  /** Valid keys of each batch row, from the first on. With a cache: valid new tokens, only these are stored. */
  keyLengths?: KvCacheAppendOptions["keyLengths"];
  /** [B, Lk], 1 = a real token. With a cache: [B, new tokens], remembered. */
  keyMask?: KvCacheAppendOptions["keyMask"];
  /** Subtracts slope·|i + offset − j|; true = the published slopes, or one per head. */
  alibi?: boolean | PerHead;
  /** One logit per head that joins the softmax but has no value. */
  sinks?: PerHead;
  /**
   * Appends k and v, then attends over all tokens stored; k = v = null attends without appending. mask, bias and weights have
   * cache.length − cache.firstPosition columns (before the call), then the new ones.
   */
  cache?: KvCache;
  /**
   * For training: sets weights to 0 with probability p, after softmax, and multiplies the others by 1 / (1 − p). Which ones depends on the
   * seed and the place [b, h, i + offset, j] alone; give every step another seed. Returned weights and logSumExp are those before it.
   */
  dropout?: Dropout;
  /** Returns the attention weights (or an earlier stage of them), [B, H, Lq, Lk]. */
  weights?: WeightsKind | WeightsRequest;
  /** Returns log(Σ exp(score)) per row, [B, H, Lq]. */
  logSumExp?: boolean;
  summary?: SummaryRequest;
  /**
   * Writes results into the caller's arrays or wasm tensors instead of new ones. A target may be an input as well. The result then holds
   * the caller's array (in a Tensor) or the wasm tensor itself.
   */
  out?: { output?: OutTarget; weights?: OutTarget; logSumExp?: OutTarget };
}

/** One number per head, [H]. */
export type PerHead = readonly number[] | Float32Array | FloatTensor;

/** Has exactly as many values as the result (an array) or exactly its dims (a tensor). */
export type OutTarget = Float32Array | TensorLike<Float32Array> | WasmTensor;

/** What came out under a name: the wasm tensor if `out` named one, else a Tensor. */
export type Returned<Options, Name extends string> = Options extends { out: { [Key in Name]: WasmTensor } }
  ? WasmTensor
  : Tensor;

/** A result that is there where the options ask for it. */
export type Asked<Options, Name extends string, Request, Value> = Options extends { [Key in Name]: Request }
  ? { [Key in Name]: Value }
  : { [Key in Name]?: Value };

type Summarized<Request> = Asked<Request, "topK", number, NonNullable<Summary["topK"]>> &
  Asked<Request, "entropy", true, Tensor> &
  Asked<Request, "distance", true, Tensor> &
  Asked<Request, "map", readonly [number, number], Tensor>;

/** `weights` [B, H, Lq, Lk] (or the requested heads and rows), `logSumExp` [B, H, Lq] and `summary` are there where the options ask for them. */
export type AttentionResult<Options = AttentionOptions> = {
  /** In the layout of the query: [B, H, Lq, Dv] or [B, Lq, H·Dv] or [Lq, H·Dv]. */
  output: Returned<Options, "output">;
} & Asked<Options, "weights", WeightsKind | WeightsRequest, Returned<Options, "weights">> &
  Asked<Options, "logSumExp", true, Returned<Options, "logSumExp">> &
  (Options extends { summary: infer Request extends SummaryRequest }
    ? { summary: Summarized<Request> }
    : { summary?: Summary });

/** Refuses names that are no options while `Given` keeps the precise type for the result. */
export type Only<Options, Given> = Given & { [Name in Exclude<keyof Given, keyof Options>]: never };

/** A boolean mask that knows its meaning: true = may attend. Dims usually [Lq, Lk]. Immutable. */
export interface Mask {
  readonly dims: readonly number[];
  /** 0 / 1, row-major; a copy. */
  readonly data: Uint8Array;
  /** Visible where both are; dims broadcast from the right. */
  and(other: Mask | MaskTensor): Mask;
  /** Visible where one of them is; dims broadcast from the right. */
  or(other: Mask | MaskTensor): Mask;
  not(): Mask;
  /** May query i attend to key j? One index per dim: visible(i, j) for [Lq, Lk]. */
  visible(...index: number[]): boolean;
  /** The additive form: 0 where visible, −∞ elsewhere. */
  toBias(): Tensor;
  /** A little picture, a row per query. */
  toString(): string;
}

export interface MultiHeadAttentionConfig {
  /** Width of the input and of the output. */
  embedDim: number;
  heads: number;
  /** Default `heads`. */
  kvHeads?: number;
  /** Width of the memory's keys, default `embedDim`. */
  keyDim?: number;
  /** Width of the memory's values, default `embedDim`. */
  valueDim?: number;
  /** Biases of all four projections; default true. */
  bias?: boolean;
  /**
   * Seeds the initial weights, which follow PyTorch: in-projections Xavier-uniform, out-projection uniform in ±1/√embedDim, biases 0.
   * The same seed gives the same weights everywhere; default 0.
   */
  seed?: number;
  /** Turns queries and keys by their positions, in self-attention. */
  rotary?: RotaryEmbedding;
}

/** A configuration with its defaults. */
export type FullLayerConfig = Required<Omit<MultiHeadAttentionConfig, "rotary">> &
  Pick<MultiHeadAttentionConfig, "rotary">;

export type StateDict = Record<string, FloatTensor>;

export interface LayerForwardOptions extends Omit<AttentionOptions, "heads" | "kvHeads" | "out"> {
  /** Cross-attention: keys and values are projected from here, [B, Lk, keyDim]; or were, by `layer.project`. */
  memory?: FloatTensor | ProjectedMemory;
  /** The values' source, [B, Lk, valueDim], where it is not the keys'; default `memory`. */
  memoryValues?: FloatTensor;
  /** Rotary positions of the rows of x, [L] or [B, L]; default slot (+ the row's cached length). */
  positions?: Positions;
}

/** What is left to say when a layer takes the next tokens of a cache. */
export type LayerStepOptions = Omit<
  LayerForwardOptions,
  "memory" | "memoryValues" | "cache" | "causal" | "queryOffset"
>;

export type LayerCacheConfig = Pick<KvCacheConfig, "batch" | "capacity" | "dtype" | "rolling">;

/** The keys and values of a memory, projected once for many calls of the layer that made them. Lives in wasm memory. */
export interface ProjectedMemory {
  readonly batch: number;
  readonly keyLength: number;
  readonly disposed: boolean;
  dispose(): void;
  [Symbol.dispose](): void;
}

/** Multi-head attention with its four projections, as torch.nn.MultiheadAttention (batch_first). */
export interface MultiHeadAttention {
  readonly config: Readonly<FullLayerConfig>;
  readonly disposed: boolean;
  /** Takes parameters by PyTorch's names; missing, unknown or misshapen ones are an error and change nothing. */
  load(state: StateDict): void;
  /** The parameters by PyTorch's names. */
  state(): Record<string, Tensor>;
  /** x: [B, L, embedDim] or [L, embedDim]. */
  forward<Given extends LayerForwardOptions>(
    x: FloatTensor,
    options?: Only<LayerForwardOptions, Given>,
  ): AttentionResult<Given>;
  /** The next tokens of a sequence, x [B, L, embedDim] or [L, embedDim]: their keys and values join the cache, then they attend causally. */
  step<Given extends LayerStepOptions>(
    x: FloatTensor,
    cache: KvCache,
    options?: Only<LayerStepOptions, Given>,
  ): AttentionResult<Given>;
  /** The gradients of x, of a memory and of the parameters. The forward pass is computed again: no result of it is needed. */
  backward<Given extends LayerBackwardOptions>(
    x: FloatTensor,
    options: Only<LayerBackwardOptions, Given>,
  ): LayerGradients<Given>;
  /** A cache with the layer's sizes. */
  kvCache(config: LayerCacheConfig): KvCache;
  /** Projects a memory [B, Lk, keyDim] (and [B, Lk, valueDim]) for use as `forward(x, { memory })`; `load` makes it stale. */
  project(memory: FloatTensor, memoryValues?: FloatTensor): ProjectedMemory;
  dispose(): void;
  [Symbol.dispose](): void;
}

export interface LinearConfig {
  /** Width of a row of the input. */
  inputs: number;
  /** Width of a row of the output. */
  outputs: number;
  /** Default true. */
  bias?: boolean;
  /** Seeds the initial weight, which is Xavier-uniform (the bias is 0); default 0. */
  seed?: number;
  /**
   * What the weight is stored as; default 'f32'. Inputs, outputs and state dicts are float32 always: `load` rounds, `state` gives what is stored.
   * One row takes time by its bytes ('bf16' about half of 'f32', 'int8' a third), but for 'f16', which is to be widened and takes about twice.
   * 'int8': one scale for each output and each `group` inputs, |w − ŵ| ≤ max|w| / 254 of the group; inputs meet it rounded to 16 bits, which adds at
   * most a quarter of that error to a result (for groups of 64). A row with an input that is NaN or ±∞ is NaN.
   */
  dtype?: "f32" | "f16" | "bf16" | "int8";
  /** Inputs that share a scale, for 'int8': a multiple of 16 up to 256, default 64. */
  group?: number;
}

export type FullLinearConfig = Required<Omit<LinearConfig, "group">> & Pick<LinearConfig, "group">;

export interface LinearForwardOptions {
  /** Writes the result into the caller's array or wasm tensor, which may be the input. */
  out?: { output?: OutTarget };
}

/** output = x · weightᵀ + bias, as torch.nn.Linear. */
export interface Linear {
  readonly config: Readonly<FullLinearConfig>;
  readonly disposed: boolean;
  /** Takes `weight` [outputs, inputs] and, where the layer has one, `bias` [outputs]; what does not fit is an error and changes nothing. */
  load(state: StateDict): void;
  /** The parameters by PyTorch's names. */
  state(): Record<string, Tensor>;
  /** x [..., inputs] → [..., outputs]. */
  forward<Given extends LinearForwardOptions>(
    x: FloatTensor,
    options?: Only<LinearForwardOptions, Given>,
  ): Returned<Given, "output">;
  dispose(): void;
  [Symbol.dispose](): void;
}

export interface MemoryReport {
  /** Bytes held by live objects (tensors, layers, …). */
  bytes: number;
  /** Number of live objects. */
  allocations: number;
  /** The size of the wasm memory itself, which never shrinks. */
  reserved: number;
}

export type Variant = "simd" | "relaxed";

export interface LookbackOptions {
  /** 'auto' takes 'relaxed' (fused multiply-add) where the engine has it. */
  variant?: "auto" | Variant;
  /** Where the wasm is: a URL (then name the `variant`), or a function that gives one. */
  wasmUrl?: string | URL | ((variant: Variant, threaded: boolean) => string | URL);
  /** The wasm's bytes (then name the `variant`). */
  wasmBinary?: ArrayBuffer | ArrayBufferView;
  /** The compiled wasm (then name the `variant`). */
  wasmModule?: WebAssembly.Module;
  /**
   * How many threads share a call's work: 1 (the default) to 64, or 'auto' for the processors there are, up to 8. Pages must be
   * cross-origin isolated; where threads cannot be, a number is refused and 'auto' takes 1. No result depends on it.
   */
  threads?: number | "auto";
}

/** An instance of the engine: its own wasm memory and everything that lives in it. */
export interface Lookback {
  readonly variant: Variant;
  /** Whether multiply-add really rounds once here (tested at start, not assumed). */
  readonly fused: boolean;
  /** How many threads share a call's work. */
  readonly threads: number;
  /** Where 'auto' was asked for and there is 1: why. */
  readonly threadsReason: string | undefined;
  readonly disposed: boolean;
  /** softmax(scale · Q·Kᵀ + mask) · V, per head. */
  attention<Given extends AttentionOptions>(
    q: FloatTensor,
    k: FloatTensor | null,
    v: FloatTensor | null,
    options?: Only<AttentionOptions, Given>,
  ): AttentionResult<Given>;
  /** The gradients of q, k and v (of a bias and sinks on request), given the one of the output. */
  attentionBackward<Given extends AttentionBackwardOptions>(
    q: FloatTensor,
    k: FloatTensor,
    v: FloatTensor,
    options: Only<AttentionBackwardOptions, Given>,
  ): AttentionGradients<Given>;
  /** Memory for the keys and values of tokens seen so far. */
  kvCache(config: KvCacheConfig): KvCache;
  /** Turns the rows of x [B, heads, L, D], [B, L, heads·D] or [L, heads·D] by their positions. */
  rotary<Given extends RotaryOptions>(x: FloatTensor, options?: Only<RotaryOptions, Given>): Returned<Given, "output">;
  multiHeadAttention(config: MultiHeadAttentionConfig): MultiHeadAttention;
  linear(config: LinearConfig): Linear;
  /** A tensor in wasm memory, with a copy of `data` or (null) zeros. */
  tensor(data: ArrayLike<number> | null, dims: readonly number[]): WasmTensor;
  /**
   * Looks for what commonly goes wrong in a call of `attention` with these arguments: rows that see nothing, masks that are inverted or leak,
   * biases that were masks, scales forgotten, heads that do nothing. Long inputs are sampled; memory stays far below L².
   */
  diagnose<Given extends AttentionOptions>(
    q: FloatTensor,
    k: FloatTensor | null,
    v: FloatTensor | null,
    options?: Only<AttentionOptions, Given>,
  ): Diagnosis;
  /**
   * Disturbs inputs to prove that fn's output at position i depends on no input after i, or throws 'not-causal' with the first leak. Calls fn
   * `length` times or so, one after the other.
   */
  assertCausal(fn: SequenceFunction, options: AssertCausalOptions): Promise<CausalReport>;
  /**
   * A small language model that learns from a text: see Trainer. Its code is loaded at the first call; `checkpoint`, which save() gave, goes on with
   * an earlier run.
   */
  trainer(config: TrainerConfig): Promise<Trainer>;
  /** What live objects hold; the scratch memory of calls is not one of them. */
  memory(): MemoryReport;
  dispose(): void;
  [Symbol.dispose](): void;
}
