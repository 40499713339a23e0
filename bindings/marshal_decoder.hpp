#pragma once

// The records of js/src/module-decoder.ts and how they become calls of the core; see marshal.hpp.

#include "lookback/sampling.hpp"
#include "marshal.hpp"

namespace lookback::bindings {

struct RawNormCall {
  std::int32_t kind;
  float epsilon;
  std::int32_t rows, width;
  Pointer input, weight, bias, output;
};

struct RawDecoderConfig {
  std::int32_t vocabSize, layers, embedDim, heads, kvHeads, headDim, hiddenDim, contextLength, norm, activation;
  bool gated, learnedPositions, tiedHead, queryKeyValueBias, outputBias, mlpBias, queryKeyNorm, postNorms,
      normWeightsFromOne;
  float normEpsilon, embedScale, attentionScale, attentionSoftcap, logitSoftcap;
  std::int32_t window, firstWindowedLayer, fullEvery;
  RawRotary rotary;
  std::int32_t weightType, weightGroup;
  double windowRotaryBase;
};

struct RawDecoderRows {
  std::int32_t slot, layer, firstRow, rowCount;
  Pointer source;
  std::int32_t type, sourceStride;
  bool transposed;
};

struct RawDecoderSession {
  std::int32_t batch, capacity, chunk, cacheType;
  bool rolling;
};

struct RawDecoderCall {
  Pointer tokens;
  std::int32_t length;
  Pointer tokenLengths, tokenMask;
  std::int32_t logitsOf;
  Pointer logits, weights, weightLayers;
  std::int32_t weightLayerCount;
  Pointer weightHeads;
  std::int32_t weightHeadCount;
  Pointer lens, lensLayers;
  std::int32_t lensLayerCount;
};

struct RawSampler {
  std::int32_t batch, vocabSize;
  float temperature, repetitionPenalty;
  std::int32_t topK;
  float topP, minP;
  std::int32_t candidates;
};

inline NormCall to_norm_call(const RawNormCall& raw) noexcept {
  return {static_cast<NormKind>(raw.kind),
          raw.epsilon,
          raw.width,
          to_pointer<const float>(raw.weight),
          to_pointer<const float>(raw.bias),
          {to_pointer<const float>(raw.input), 0, 0, raw.width},
          {to_pointer<float>(raw.output), 0, 0, raw.width},
          1,
          1,
          raw.rows};
}

inline DecoderConfig to_decoder_config(const RawDecoderConfig& raw) noexcept {
  return {raw.vocabSize,
          raw.layers,
          raw.embedDim,
          raw.heads,
          raw.kvHeads,
          raw.headDim,
          raw.hiddenDim,
          raw.contextLength,
          static_cast<NormKind>(raw.norm),
          static_cast<Activation>(raw.activation),
          raw.gated,
          raw.learnedPositions,
          raw.tiedHead,
          raw.queryKeyValueBias,
          raw.outputBias,
          raw.mlpBias,
          raw.queryKeyNorm,
          raw.postNorms,
          raw.normWeightsFromOne,
          raw.normEpsilon,
          raw.embedScale,
          raw.attentionScale,
          raw.attentionSoftcap,
          raw.logitSoftcap,
          raw.window,
          raw.firstWindowedLayer,
          raw.fullEvery,
          to_rotary(raw.rotary),
          {static_cast<WeightType>(raw.weightType), raw.weightGroup},
          raw.windowRotaryBase};
}

inline DecoderRows to_decoder_rows(const RawDecoderRows& raw) noexcept {
  return {static_cast<DecoderSlot>(raw.slot),
          raw.layer,
          raw.firstRow,
          raw.rowCount,
          to_pointer<const void>(raw.source),
          static_cast<WeightType>(raw.type),
          raw.sourceStride,
          raw.transposed};
}

inline DecoderSessionShape to_session_shape(const RawDecoderSession& raw) noexcept {
  return {raw.batch, raw.capacity, raw.chunk, static_cast<CacheType>(raw.cacheType), raw.rolling};
}

inline DecoderCall to_decoder_call(const RawDecoderCall& raw) noexcept {
  return {to_pointer<const std::int32_t>(raw.tokens),
          raw.length,
          to_pointer<const std::int32_t>(raw.tokenLengths),
          to_pointer<const std::uint8_t>(raw.tokenMask),
          static_cast<LogitsOf>(raw.logitsOf),
          to_pointer<float>(raw.logits),
          to_pointer<float>(raw.weights),
          to_pointer<const std::int32_t>(raw.weightLayers),
          raw.weightLayerCount,
          to_pointer<const std::int32_t>(raw.weightHeads),
          raw.weightHeadCount,
          to_pointer<float>(raw.lens),
          to_pointer<const std::int32_t>(raw.lensLayers),
          raw.lensLayerCount};
}

inline SamplerOptions to_sampler_options(const RawSampler& raw) noexcept {
  return {raw.batch, raw.vocabSize, raw.temperature, raw.repetitionPenalty,
          raw.topK,  raw.topP,      raw.minP,        raw.candidates};
}

}  // namespace lookback::bindings
