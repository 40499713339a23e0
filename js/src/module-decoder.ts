import type { RawRotary, RawStatus } from "./module.js";

/** What the generated module offers for decoders and their layers; see module.ts. The C++ side is in bindings/marshal_decoder.hpp and decoder.cpp. */
export interface RawDecoderModule {
  norm(call: RawNormCall): RawStatus;
  /** 0 GELU by tanh, 1 GELU by erf, 2 SiLU. */
  activation(kind: number, input: number, count: number, output: number): RawStatus;
  /** A decoder is an address of decoderBytes(config) bytes. */
  decoderBytes(config: RawDecoderConfig): number;
  /** All weights are 0 afterwards. */
  decoderCreate(config: RawDecoderConfig, decoder: number): RawStatus;
  /** 0 where the decoder has no such slot. */
  decoderSlotRows(decoder: number, slot: number): number;
  decoderSlotColumns(decoder: number, slot: number): number;
  decoderWrite(decoder: number, rows: RawDecoderRows): RawStatus;
  /** A session is an address of sessionBytes(decoder, shape) bytes; its bytes may be copied elsewhere (a clone). */
  sessionBytes(decoder: number, shape: RawDecoderSession): number;
  sessionCreate(decoder: number, shape: RawDecoderSession, session: number): RawStatus;
  decoderForward(decoder: number, session: number, call: RawDecoderCall): RawStatus;
  /** Appends the session's step tokens and draws the next ones in their place. */
  decoderStep(decoder: number, session: number, sampler: number): RawStatus;
  /** Draws the step tokens by the step logits. */
  decoderSample(session: number, sampler: number): RawStatus;
  /** A layer's cache: an address for the kvCache functions. */
  sessionCache(session: number, layer: number): number;
  /** Columns of a layer's cache. */
  sessionColumns(session: number, layer: number): number;
  sessionTruncate(session: number, length: number): RawStatus;
  sessionReset(session: number): undefined;
  /** Addresses of int32[batch], int32[batch], float32 [batch, vocabSize]. */
  sessionPadding(session: number): number;
  sessionStepTokens(session: number): number;
  sessionStepLogits(session: number): number;
  samplerBytes(sampler: RawSampler): number;
  samplerCreate(options: RawSampler, sampler: number): RawStatus;
  /** A seed's lower and upper 32 bits. */
  samplerBegin(sampler: number, row: number, low: number, high: number): undefined;
  samplerObserve(sampler: number, row: number, tokens: number, count: number): RawStatus;
  /** Addresses of int32[candidates] and float32[candidates]. */
  samplerCandidateIds(sampler: number, row: number): number;
  samplerCandidateProbabilities(sampler: number, row: number): number;
  samplerEntropy(sampler: number, row: number): number;
}

/** output = norm(input) · weight + bias for [rows, width]; both contiguous, perhaps the same memory. */
export interface RawNormCall {
  /** 0 layer norm, 1 RMS norm. */
  kind: number;
  epsilon: number;
  rows: number;
  width: number;
  input: number;
  /** float32[width], or 0. */
  weight: number;
  bias: number;
  output: number;
}

/** cpp/include/lookback/decoder.hpp says what each field means. */
export interface RawDecoderConfig {
  vocabSize: number;
  layers: number;
  embedDim: number;
  heads: number;
  kvHeads: number;
  headDim: number;
  /** The width inside of the MLP. */
  hiddenDim: number;
  /** Positions 0 … contextLength − 1 exist. */
  contextLength: number;
  /** 0 layer norm, 1 RMS norm. */
  norm: number;
  /** 0 GELU by tanh, 1 GELU by erf, 2 SiLU. */
  activation: number;
  /** SwiGLU, GEGLU: f(gate · x) ⊙ (up · x). */
  gated: boolean;
  /** A table of positions instead of rotary ones. */
  learnedPositions: boolean;
  /** The head is the token embedding. */
  tiedHead: boolean;
  queryKeyValueBias: boolean;
  outputBias: boolean;
  mlpBias: boolean;
  /** An RMS norm over each head's queries and keys. */
  queryKeyNorm: boolean;
  /** Norms after attention and MLP, before they are added. */
  postNorms: boolean;
  /** A norm's weights are stored less 1. */
  normWeightsFromOne: boolean;
  normEpsilon: number;
  embedScale: number;
  /** 0 = 1/√headDim. */
  attentionScale: number;
  /** 0 = none. */
  attentionSoftcap: number;
  logitSoftcap: number;
  /** Tokens that a windowed layer sees, the position itself included; 0 = every layer sees all. */
  window: number;
  /** Layer l is windowed iff l ≥ firstWindowedLayer and (fullEvery = 0 or (l + 1) mod fullEvery ≠ 0). */
  firstWindowedLayer: number;
  fullEvery: number;
  /** dims 0 = none. */
  rotary: RawRotary;
  /** 0 f32, 1 f16, 2 bf16, 3 int8 with a scale per `weightGroup` inputs. */
  weightType: number;
  weightGroup: number;
  /** Windowed layers turn by this base, without scaling; 0 = as the others. */
  windowRotaryBase: number;
}

/** Rows of a tensor on their way into a decoder. */
export interface RawDecoderRows {
  /** `enum class DecoderSlot`. */
  slot: number;
  layer: number;
  firstRow: number;
  rowCount: number;
  source: number;
  /** 0 float32, 1 float16, 2 bfloat16. */
  type: number;
  /** Elements. */
  sourceStride: number;
  transposed: boolean;
}

export interface RawDecoderSession {
  batch: number;
  capacity: number;
  chunk: number;
  /** 0 float32, 1 int8. */
  cacheType: number;
  rolling: boolean;
}

export interface RawDecoderCall {
  /** int32 [batch, length]. */
  tokens: number;
  length: number;
  /** int32[batch], or 0. */
  tokenLengths: number;
  /** uint8 [batch, length], or 0. */
  tokenMask: number;
  /** 0 none, 1 the last ones, 2 all. */
  logitsOf: number;
  /** float32 [batch, length, vocabSize], if all. */
  logits: number;
  /** float32, per layer [batch, heads, length, columns of the layer's cache + length]; or 0. */
  weights: number;
  /** int32[weightLayerCount], rising. */
  weightLayers: number;
  weightLayerCount: number;
  /** int32[weightHeadCount], or 0 for all. */
  weightHeads: number;
  weightHeadCount: number;
  /** float32 [lensLayerCount, batch, vocabSize] or, if all, [lensLayerCount, batch, length, vocabSize]; or 0. */
  lens: number;
  lensLayers: number;
  lensLayerCount: number;
}

export interface RawSampler {
  batch: number;
  vocabSize: number;
  temperature: number;
  repetitionPenalty: number;
  topK: number;
  topP: number;
  minP: number;
  candidates: number;
}
