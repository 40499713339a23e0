/**
 * What the generated module offers to `heap.ts`: plain numbers only. Pointers are byte offsets into wasm memory (0 = absent);
 * strides are in elements. Every field of a record is always given. The C++ side of each record is in bindings/marshal.hpp, registered in bindings/module.cpp.
 */

import type { RawDecoderModule } from "./module-decoder.js";
import type { RawTrainingModule } from "./module-training.js";

/** A float32 operand seen as [batch, heads, length, width]; the last dimension is contiguous. */
export interface RawView {
  data: number;
  batchStride: number;
  headStride: number;
  rowStride: number;
}

/** A mask (uint8) or bias (float32) seen as [batch, heads, queries, keys]; a stride of 0 broadcasts. */
export interface RawBroadcast {
  data: number;
  batchStride: number;
  headStride: number;
  queryStride: number;
  keyStride: number;
}

export interface RawAttentionCall {
  queries: RawView;
  keys: RawView;
  values: RawView;
  output: RawView;
  batch: number;
  heads: number;
  kvHeads: number;
  queryLength: number;
  keyLength: number;
  headDim: number;
  valueDim: number;
  scale: number;
  /** 0 = none. */
  softcap: number;
  causal: boolean;
  /** int32[batch], always given. */
  queryOffsets: number;
  mask: RawBroadcast;
  bias: RawBroadcast;
  /** float32 [batch, weightsHeadCount, weightsQueryTo − weightsQueryFrom, keyLength], or 0. */
  weights: number;
  /** 0 scores, 1 capped, 2 masked, 3 softmax. */
  weightsKind: number;
  /** int32[weightsHeadCount], or 0 for all heads in order. */
  weightsHeads: number;
  weightsHeadCount: number;
  weightsQueryFrom: number;
  weightsQueryTo: number;
  /** float32 [batch, heads, queryLength], or 0. */
  logSumExp: number;
  /** Keys to the left and right of the position that are visible; 2147483647 = unlimited. */
  windowLeft: number;
  windowRight: number;
  /** int32[batch], or 0: valid keys of each row (with a cache: valid new tokens). */
  keyLengths: number;
  /** uint8 [batch, keyLength] (with a cache: [batch, newLength]), or 0. */
  keyMask: number;
  /** float32[heads], or 0. */
  alibiSlopes: number;
  /** float32[heads], or 0. */
  sinks: number;
  /** In [0, 1); 0 = none. */
  dropoutP: number;
  /** A safe integer. */
  dropoutSeed: number;
  /** A cache, or 0. Then keys and values are the newLength new tokens, keyLength = its columns + newLength, queryOffsets are not used. */
  cache: number;
  newLength: number;
  topK: number;
  /** int32 and float32 [batch, heads, queryLength, topK], or both 0. */
  topIndices: number;
  topWeights: number;
  /** float32 [batch, heads, queryLength], or 0. */
  entropy: number;
  distance: number;
  /** float32 [batch, heads, mapRows, mapColumns], or 0. */
  map: number;
  mapRows: number;
  mapColumns: number;
  workspace: number;
  workspaceBytes: number;
}

export interface RawAttentionBackwardCall {
  /** As it was computed, with its output; no cache. Its workspace is this call's. */
  forward: RawAttentionCall;
  /** float32 [batch, heads, queryLength]. */
  logSumExp: number;
  /** [batch, heads, queryLength, valueDim]. */
  gradOutput: RawView;
  gradQueries: RawView;
  gradKeys: RawView;
  gradValues: RawView;
  /** float32, as large as the bias and with its strides, or 0. */
  gradBias: number;
  /** float32[heads], or 0. */
  gradSinks: number;
}

export interface RawRotary {
  /** Elements of a row that are turned; 0 = none. */
  dims: number;
  /** Pairs (2i, 2i + 1) instead of (i, i + dims/2). */
  interleaved: boolean;
  base: number;
  /** 0 none, 1 linear, 2 ntk, 3 llama3, 4 yarn. */
  scaling: number;
  factor: number;
  originalLength: number;
  lowFrequencyFactor: number;
  highFrequencyFactor: number;
  betaFast: number;
  betaSlow: number;
  /** 0 = the formula's. */
  attentionFactor: number;
}

export interface RawRotaryCall {
  options: RawRotary;
  /** [batch, heads, length, width]; they may be the same memory. */
  input: RawView;
  output: RawView;
  batch: number;
  heads: number;
  length: number;
  width: number;
  /** int32[tableRows]: the tables are computed from them; 0: cosines and sines are given. */
  positions: number;
  tableRows: number;
  /** Rows of the tables from one batch row to the next: 0 (shared) or length. */
  tableBatchRows: number;
  /** float32 [tableRows, dims/2] each. */
  cosines: number;
  sines: number;
  /** Scratch float64[dims/2], aligned to 8; only with positions. */
  frequencies: number;
}

export interface RawCacheShape {
  batch: number;
  kvHeads: number;
  headDim: number;
  valueDim: number;
  capacity: number;
  /** 0 float32, 1 int8. */
  type: number;
  rolling: boolean;
}

/** Tokens for a cache: keys and values [batch, kvHeads, count, width]. */
export interface RawCacheTokens {
  keys: RawView;
  values: RawView;
  count: number;
  /** int32[batch], or 0. */
  keyLengths: number;
  /** uint8 [batch, count], or 0. */
  keyMask: number;
}

export interface RawLayerCall {
  /** What is attended; its queries, keys, values and output views are ignored, its workspace is the layer's. */
  attention: RawAttentionCall;
  /** dims 0 = none. */
  rotary: RawRotary;
  /** int32 [batch, queryLength], or 0 without rotary. */
  positions: number;
  /** [batch, queryLength, embedDim], contiguous. */
  input: number;
  /** [batch, keyLength, keyDim]: the input itself for self-attention. */
  memoryKeys: number;
  /** [batch, keyLength, valueDim]. */
  memoryValues: number;
  /** The memory's keys and values already projected, both [batch, keyLength, kvHeads · headDim]: the memory is then not read. Both or neither (0). */
  projectedKeys: number;
  projectedValues: number;
  /** [batch, queryLength, embedDim], contiguous. */
  output: number;
  /** Inputs → H·D, Hkv·D, Hkv·D, H·D → outputs. */
  query: RawLinear;
  key: RawLinear;
  value: RawLinear;
  outputProjection: RawLinear;
}

/** Plain rows, float32: written, not added to. */
export interface RawProjectionGradients {
  /** [outputs, inputs]. */
  weight: number;
  /** [outputs], or 0. */
  bias: number;
}

export interface RawLayerBackwardCall {
  /** No cache, nothing projected; its output is not used. */
  forward: RawLayerCall;
  /** As the output. */
  gradOutput: number;
  gradInput: number;
  /** As the memories; where these are the input, or one the other, so are their gradients, which are then summed. */
  gradMemoryKeys: number;
  gradMemoryValues: number;
  query: RawProjectionGradients;
  key: RawProjectionGradients;
  value: RawProjectionGradients;
  outputProjection: RawProjectionGradients;
}

export interface RawLinear {
  /** Packed by packLinear. */
  weight: number;
  /** float32[outputs], or 0. */
  bias: number;
  inputs: number;
  outputs: number;
  /** 0 float32, 1 float16, 2 bfloat16, 3 int8. */
  type: number;
  /** int8: inputs that share a scale. */
  group: number;
}

/** output[row] = weight · input[row] + bias. */
export interface RawLinearCall {
  layer: RawLinear;
  /** [rows, inputs], contiguous. */
  input: number;
  /** [rows, outputs], contiguous. */
  output: number;
  rows: number;
  workspace: number;
  workspaceBytes: number;
}

/** Some rows of a weight [outputs, inputs], or transposed [inputs, outputs]. */
export interface RawWeightRows {
  values: number;
  /** 0 float32, 1 float16, 2 bfloat16. */
  type: number;
  transposed: boolean;
  first: number;
  count: number;
  /** Elements from one row to the next; 0 = they touch. */
  stride: number;
}

/** Numbers of `enum class Status` (cpp/include/lookback/status.hpp); 0 is ok. */
export type RawStatus = number;

export interface RawModule extends RawDecoderModule, RawTrainingModule {
  /** Replaced when the memory grows: only its `buffer` is used, anew for every access. */
  HEAPU8: Uint8Array;
  _malloc(bytes: number): number;
  _free(pointer: number): void;
  fusedMultiplyAdd(): boolean;
  /** Which of two shapes of the register tiles: the same bits at another speed. Returns what is in use. */
  useWideTiles(wide: boolean): boolean;
  statusMessage(status: RawStatus): string;
  /**
   * Workspace sizes are doubles, so that one beyond 2³² arrives as it is. Asked before memory is laid out: pointers in `call` say only
   * absent (0) or present (anything else), but for the cache, whose sizes are looked at.
   */
  attentionWorkspaceBytes(call: RawAttentionCall): number;
  attention(call: RawAttentionCall): RawStatus;
  /**
   * The same in slices: the number of items, or −status. Then attentionRun for [from, to) until all items have run, and attentionEnd; with
   * finished = false after a part of them, which gives a cache its old lengths back. Workspace and operands stay where they are meanwhile.
   */
  attentionBegin(call: RawAttentionCall): number;
  attentionRun(workspace: number, from: number, to: number): undefined;
  attentionEnd(workspace: number, finished: boolean): undefined;
  attentionBackwardWorkspaceBytes(call: RawAttentionBackwardCall): number;
  attentionBackward(call: RawAttentionBackwardCall): RawStatus;
  /** The same in slices, as attentionBegin …. */
  attentionBackwardBegin(call: RawAttentionBackwardCall): number;
  attentionBackwardRun(workspace: number, from: number, to: number): undefined;
  attentionBackwardEnd(workspace: number, finished: boolean): undefined;
  /** How many threads share the work from now on, this one included: fewer than wanted where there are no more. */
  setThreads(wanted: number): number;
  /** How many of them run by now, this one included: a worker begins when it gets to it. */
  runningThreads(): number;
  /** Only in the wasm with threads. */
  PThread?: { terminateAllThreads(): void };
  packedLinearBytes(inputs: number, outputs: number, type: number, group: number): number;
  /** Rows → panels of `layer`, whose bias is not used. */
  packLinear(rows: RawWeightRows, layer: RawLinear): RawStatus;
  /** The inverse: rows [first, first + count) as float32 [count, inputs]. */
  unpackLinear(layer: RawLinear, first: number, count: number, rows: number): RawStatus;
  linearWorkspaceBytes(call: RawLinearCall): number;
  linear(call: RawLinearCall): RawStatus;
  layerWorkspaceBytes(call: RawLayerCall): number;
  layerForward(call: RawLayerCall): RawStatus;
  /** The same in slices, as attentionBegin …; they must come in their order. */
  layerBegin(call: RawLayerCall): number;
  layerRun(workspace: number, from: number, to: number): undefined;
  layerEnd(workspace: number, finished: boolean): RawStatus;
  layerBackwardWorkspaceBytes(call: RawLayerBackwardCall): number;
  layerBackward(call: RawLayerBackwardCall): RawStatus;
  rotary(call: RawRotaryCall): RawStatus;
  /** A cache is an address of kvCacheBytes(shape) bytes; its bytes may be copied elsewhere (a clone). */
  kvCacheBytes(shape: RawCacheShape): number;
  kvCacheCreate(shape: RawCacheShape, cache: number): RawStatus;
  kvCacheAppend(cache: number, tokens: RawCacheTokens): RawStatus;
  /** keys [batch, kvHeads, columns, headDim] and values [batch, kvHeads, columns, valueDim], columns = max(lengths) − min(firstPositions). */
  kvCacheRead(cache: number, keys: number, values: number): undefined;
  kvCacheTruncate(cache: number, length: number): RawStatus;
  kvCacheReset(cache: number): void;
  /** Addresses of int32[batch]. */
  kvCacheLengths(cache: number): number;
  kvCacheFirstPositions(cache: number): number;
  kvCacheSavedBytes(cache: number): number;
  kvCacheSave(cache: number, target: number): undefined;
  kvCacheLoad(cache: number, source: number, bytes: number): RawStatus;
}

export type ModuleFactory = (overrides: Record<string, unknown>) => Promise<RawModule>;
