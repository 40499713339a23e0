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
export type {
  AttentionBackwardOptions,
  AttentionGradients,
  Dropout,
  LayerBackwardOptions,
  LayerGradients,
} from "./gradient-types.js";
export type { KvCache, KvCacheAppendOptions, KvCacheConfig } from "./kv-cache-types.js";
export type { Integers, MaskPlacement, MaskWindow } from "./masks.js";
export * as masks from "./masks.js";
export type { ForeignMask } from "./masks-foreign.js";
export { type AttentionPart, type MergedAttention, type MergeOptions, mergeAttention } from "./merge.js";
export type { Positions, RotaryEmbedding, RotaryOptions, RotaryScaling } from "./rotary-types.js";
export { type SinusoidalOptions, sinusoidal } from "./sinusoidal.js";
export type { Documents, TrainingText } from "./train/text.js";
export type { TokenizerKind } from "./train/tokenizer-files.js";
export type * from "./train/types.js";
export type {
  AttentionOptions,
  AttentionResult,
  FloatTensor,
  FullLayerConfig,
  FullLinearConfig,
  IntTensor,
  LayerCacheConfig,
  LayerForwardOptions,
  LayerStepOptions,
  Linear,
  LinearConfig,
  LinearForwardOptions,
  Lookback,
  LookbackOptions,
  Mask,
  MaskData,
  MaskTensor,
  MemoryReport,
  MultiHeadAttention,
  MultiHeadAttentionConfig,
  OutTarget,
  PerHead,
  ProjectedMemory,
  QueryOffset,
  StateDict,
  Summary,
  SummaryRequest,
  Tensor,
  TensorLike,
  TypedTensor,
  Variant,
  WasmTensor,
  WeightsKind,
  WeightsRequest,
} from "./types.js";
