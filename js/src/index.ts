/** What both entries, node.ts and web.ts, export. */
export { type ErrorCode, LookbackError } from "./errors.js";
export * as masks from "./masks.js";
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
