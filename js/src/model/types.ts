/// <reference lib="esnext.disposable" preserve="true" />
import type { Tensor } from "../types.js";
import type { Progress } from "./pour.js";
import type { DecoderSettings } from "./settings.js";

/** What matrices are kept as; int8 has a scale for every 64 inputs of an output. */
export type WeightDtype = "f32" | "f16" | "bf16" | "int8";

export interface LoadOptions {
  /** Fewer bits take less memory, and less time to read; f16 and bf16 files fit 'f16' and 'bf16' exactly. Default 'f32'. */
  dtype?: WeightDtype;
  signal?: AbortSignal;
  /** Called for every piece of the weights that has been read. */
  onProgress?: (progress: Progress) => void;
}

/** Which attention weights to give: all of every layer and head, or some. */
export type ModelWeightsRequest = true | { layers?: "all" | readonly number[]; heads?: "all" | readonly number[] };

/** What a cache holds its keys and values in; int8 takes about a quarter of the memory. */
export type CacheDtype = "f32" | "int8";

export interface ModelCacheConfig {
  /** Sequences side by side; default 1. */
  batch?: number;
  /** Tokens per sequence; default the model's context length. */
  capacity?: number;
  dtype?: CacheDtype;
}

/** Keys and values of all layers: what a model remembers of a text. After an error, or a generation that ended before its first token, nothing has changed. */
export interface ModelCache {
  readonly batch: number;
  readonly capacity: number;
  readonly dtype: CacheDtype;
  /** Tokens of each sequence; a copy. */
  readonly lengths: number[];
  /** The largest of `lengths`. */
  readonly length: number;
  readonly disposed: boolean;
  /** Forgets the tokens from position `length` on, of every sequence. */
  truncate(length: number): void;
  reset(): void;
  dispose(): void;
  [Symbol.dispose](): void;
}

export interface GenerateOptions {
  /** How many new tokens at most; default 256, Infinity = no limit. The context's end ends a text as well. */
  maxTokens?: number;
  /** 0 always takes the most probable token. Default 0, or 1 where topK, topP, minP or seed is given. */
  temperature?: number;
  /** Of the k most probable tokens only; 0 = all. */
  topK?: number;
  /** Of the fewest most probable tokens whose probabilities reach p; 1 = all. */
  topP?: number;
  /** Of those that have at least minP times the probability of the most probable; 0 = all. */
  minP?: number;
  /** Above 1: tokens that were there before become less probable. */
  repetitionPenalty?: number;
  /** The same seed, the same text; one per prompt where they shall differ. Default: another one each time, which stats.seed tells. */
  seed?: number | readonly number[];
  /** Texts at which to end; they do not appear in the result. */
  stop?: string | readonly string[];
  /** Attention weights of the pass that gave each token. */
  weights?: ModelWeightsRequest;
  /** How many of the most probable tokens to report. */
  candidates?: number;
  /** Whether to report the entropy of each choice. */
  entropy?: boolean;
  /** How to remember, or a cache that goes on, with one generation at a time: the prompt follows what it holds. Default 'f32'. */
  cache?: CacheDtype | ModelCache;
  signal?: AbortSignal;
}

/** Why a text has ended: the model's end token, a stop string, maxTokens, or the end of the context (or of the cache). */
export type FinishReason = "end" | "stop" | "length" | "context";

export interface Candidate {
  id: number;
  text: string;
  probability: number;
}

export interface StepWeights {
  layers: number[];
  heads: number[];
  /** [layers, heads, tokens so far]: how the token before the new one looks at all up to itself. */
  tensor: Tensor;
}

/** One new token. */
export interface GenerationStep {
  /** Which of the prompts it continues; 0 for a single one. */
  row: number;
  id: number;
  /** The text that is certain now. All of them together are the text; empty while a character or a possible stop string is incomplete. */
  text: string;
  weights?: StepWeights;
  /** By falling probability, before topK, topP and minP. */
  candidates?: Candidate[];
  /** In nats, of the whole vocabulary. */
  entropy?: number;
  /** On the row's last step. */
  finish?: FinishReason;
}

export interface GenerationStats {
  /** Of all rows. */
  promptTokens: number;
  newTokens: number;
  /** Until the prompts were read. */
  promptSeconds: number;
  /** Since then. */
  seconds: number;
  /** New tokens per second, of all rows together. */
  tokensPerSecond: number;
  seed: number;
}

/** Steps as they come; starts with the first one asked for, and can be walked once. */
export interface Generation extends AsyncIterable<GenerationStep> {
  /** So far. */
  readonly stats: GenerationStats;
  /** Runs to the end: the new text of each prompt. */
  texts(): Promise<string[]>;
  /** Runs to the end: the new text of the (first) prompt. */
  text(): Promise<string>;
}

export type Ids = readonly number[] | Int32Array;

/** A text, or the ids of its tokens as they are. */
export type Prompt = string | Ids;

export interface ForwardOptions {
  /** Logits after every token or after the last one of each row. Default 'last'. */
  logits?: "all" | "last";
  weights?: ModelWeightsRequest;
  /** The logits that the head would give after these layers (the logit lens). */
  lens?: "all" | readonly number[];
  /** The tokens follow what it holds, and are remembered. */
  cache?: ModelCache;
}

export interface ForwardResult {
  /** [B, L, vocabulary] or, of the last tokens, [B, vocabulary]. */
  logits: Tensor;
  /** [layers, B, heads, L, tokens so far]. */
  weights?: Tensor;
  /** [layers, …] as logits. */
  lens?: Tensor;
}

export interface AttendOptions {
  layers?: "all" | readonly number[];
  heads?: "all" | readonly number[];
}

export interface Attended {
  ids: number[];
  /** What each token is called: its text. */
  tokens: string[];
  layers: number[];
  heads: number[];
  /** [layer][head], of those asked for: [L, L], a row per token that looks. */
  weights: Tensor[][];
}

export interface TensorInfo {
  name: string;
  /** A layer's, where there is one per layer. */
  dims: number[];
  /** 1, or one per layer. */
  count: number;
}

export interface ModelConfig extends Readonly<DecoderSettings> {
  /** model_type of config.json, or 'llama2.c'. */
  readonly family: string;
}

export interface ModelInfo {
  name: string;
  config: ModelConfig;
  parameters: number;
  tensors: TensorInfo[];
  /** Tokens that `memory` is told for. */
  context: number;
  /** Bytes of wasm memory: the weights, and what a generation of `context` tokens takes, with a cache of float32 or int8. */
  memory: { weights: number; f32: number; int8: number };
}

/** A language model in wasm memory: dispose() it, or declare it with `using`. */
export interface Model {
  readonly name: string;
  readonly config: ModelConfig;
  readonly disposed: boolean;
  /**
   * Continues a prompt, or several side by side (a list of them), token by token. It lets the event loop turn now and then, and ends with
   * `signal`. Nothing is computed before the first step is asked for.
   */
  generate(prompt: Prompt | readonly Prompt[], options?: GenerateOptions): Generation;
  /** Logits of a text's ids, or of several texts' (a list of lists, which may differ in length). */
  forward(ids: Ids | readonly Ids[], options?: ForwardOptions): ForwardResult;
  /** Who looks at whom, in a text: every layer and head, or some. */
  attend(text: Prompt, options?: AttendOptions): Attended;
  /** Ids of a text; `special` (default true): with the tokens that begin a text for this model. */
  encode(text: string, options?: { special?: boolean }): number[];
  /** The text of ids; `special` (default false): with special tokens. */
  decode(ids: Ids, options?: { special?: boolean }): string;
  /** The texts of a text's tokens. */
  tokenize(text: string, options?: { special?: boolean }): string[];
  /** A cache for forward() and generate(), which then follow each other. */
  cache(config?: ModelCacheConfig): ModelCache;
  /** Sizes, tensors and memory; `context` (default the model's) says for how many tokens. */
  inspect(options?: { context?: number }): ModelInfo;
  dispose(): void;
  [Symbol.dispose](): void;
}
