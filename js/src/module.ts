/**
 * What the generated module offers to `heap.ts`: plain numbers only. Pointers are byte offsets into wasm memory (0 = absent);
 * strides are in elements. Every field of a record is always given. The C++ side of each record is in bindings/marshal.hpp, registered in bindings/module.cpp.
 */

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
  workspace: number;
  workspaceBytes: number;
}

export interface RawLayerCall {
  /** What is attended; its queries, keys, values and output views are ignored, its workspace is the layer's. */
  attention: RawAttentionCall;
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
  embedDim: number;
  keyDim: number;
  valueDim: number;
  /** Packed by packLinear: [inputs → outputs]; biases may be 0. */
  queryWeight: number;
  queryBias: number;
  keyWeight: number;
  keyBias: number;
  valueWeight: number;
  valueBias: number;
  outputWeight: number;
  outputBias: number;
}

/** output[row] = weight · input[row] + bias. */
export interface RawLinearCall {
  /** [rows, inputs], contiguous. */
  input: number;
  /** Packed by packLinear. */
  weight: number;
  /** float32[outputs], or 0. */
  bias: number;
  /** [rows, outputs], contiguous. */
  output: number;
  rows: number;
  inputs: number;
  outputs: number;
}

/** Numbers of `enum class Status` (cpp/include/lookback/status.hpp); 0 is ok. */
export type RawStatus = number;

export interface RawModule {
  /** Replaced when the memory grows: only its `buffer` is used, anew for every access. */
  HEAPU8: Uint8Array;
  _malloc(bytes: number): number;
  _free(pointer: number): void;
  fusedMultiplyAdd(): boolean;
  statusMessage(status: RawStatus): string;
  /**
   * Workspace sizes are doubles, so that one beyond 2³² arrives as it is. Asked before memory is laid out: pointers in `call` say only
   * absent (0) or present (anything else).
   */
  attentionWorkspaceBytes(call: RawAttentionCall): number;
  attention(call: RawAttentionCall): RawStatus;
  packedLinearBytes(inputs: number, outputs: number): number;
  /** weight [outputs, inputs] row-major → packed panels. */
  packLinear(weight: number, inputs: number, outputs: number, packed: number): RawStatus;
  /** The inverse: packed panels → weight [outputs, inputs]. */
  unpackLinear(packed: number, inputs: number, outputs: number, weight: number): RawStatus;
  linear(call: RawLinearCall): RawStatus;
  layerWorkspaceBytes(call: RawLayerCall): number;
  layerForward(call: RawLayerCall): RawStatus;
}

export type ModuleFactory = (overrides: Record<string, unknown>) => Promise<RawModule>;
