/** What both entries, node.ts and web.ts, export. */
export type {
  AssertCausalOptions,
  CausalReport,
  Diagnosis,
  Finding,
  FindingCode,
  SequenceFunction,
  SequenceOutput,
} from "./diagnose-types.js";
export { type ErrorCode, LookbackError } from "./errors.js";
export type { Integers, MaskPlacement, MaskWindow } from "./masks.js";
export * as masks from "./masks.js";
export type { ForeignMask } from "./masks-foreign.js";
export { type AttentionPart, type MergedAttention, type MergeOptions, mergeAttention } from "./merge.js";
export type { NamedTensors, StateDictOptions } from "./state-dicts.js";
export * as stateDicts from "./state-dicts.js";
export type {
  AttentionOptions,
  AttentionResult,
  FloatTensor,
  LayerForwardOptions,
  Lookback,
  LookbackOptions,
  Mask,
  MaskTensor,
  MemoryReport,
  MultiHeadAttention,
  MultiHeadAttentionConfig,
  OutTarget,
  ProjectedMemory,
  QueryOffset,
  StateDict,
  Tensor,
  TensorLike,
  Variant,
  WasmTensor,
  WeightsKind,
  WeightsRequest,
} from "./types.js";
