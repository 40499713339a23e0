#pragma once

// The records of js/src/module.ts and how they become calls of the core. Pointers arrive as byte offsets (0 = absent), everything
// else as plain numbers.

#include <cstddef>
#include <cstdint>

#include "lookback/attention.hpp"
#include "lookback/kv_cache.hpp"
#include "lookback/multi_head_attention.hpp"
#include "lookback/rotary.hpp"

namespace lookback::bindings {

using Pointer = std::uint32_t;

template <typename T>
T* to_pointer(Pointer offset) noexcept {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(offset));
}

struct RawView {
  Pointer data;
  std::int32_t batchStride, headStride, rowStride;
};

struct RawBroadcast {
  Pointer data;
  std::int32_t batchStride, headStride, queryStride, keyStride;
};

struct RawAttentionCall {
  RawView queries, keys, values, output;
  std::int32_t batch, heads, kvHeads, queryLength, keyLength, headDim, valueDim;
  float scale, softcap;
  bool causal;
  Pointer queryOffsets;
  RawBroadcast mask, bias;
  Pointer weights;
  std::int32_t weightsKind;
  Pointer weightsHeads;
  std::int32_t weightsHeadCount, weightsQueryFrom, weightsQueryTo;
  Pointer logSumExp;
  std::int32_t windowLeft, windowRight;
  Pointer keyLengths, keyMask, alibiSlopes, sinks;
  float dropoutP;
  double dropoutSeed;
  Pointer cache;
  std::int32_t newLength;
  std::int32_t topK;
  Pointer topIndices, topWeights, entropy, distance, map;
  std::int32_t mapRows, mapColumns;
  Pointer workspace;
  double workspaceBytes;
};

struct RawAttentionBackwardCall {
  RawAttentionCall forward;
  Pointer logSumExp;
  RawView gradOutput, gradQueries, gradKeys, gradValues;
  Pointer gradBias, gradSinks;
};

struct RawLinear {
  Pointer weight, bias;
  std::int32_t inputs, outputs, type, group;
};

struct RawLinearCall {
  RawLinear layer;
  Pointer input, output;
  std::int32_t rows;
  Pointer workspace;
  double workspaceBytes;
};

struct RawWeightRows {
  Pointer values;
  std::int32_t type;
  bool transposed;
  std::int32_t first, count, stride;
};

struct RawRotary {
  std::int32_t dims;
  bool interleaved;
  double base;
  std::int32_t scaling;
  double factor, originalLength, lowFrequencyFactor, highFrequencyFactor, betaFast, betaSlow, attentionFactor;
};

struct RawRotaryCall {
  RawRotary options;
  RawView input, output;
  std::int32_t batch, heads, length, width;
  Pointer positions;
  std::int32_t tableRows, tableBatchRows;
  Pointer cosines, sines, frequencies;
};

struct RawCacheShape {
  std::int32_t batch, kvHeads, headDim, valueDim, capacity, type;
  bool rolling;
};

struct RawCacheTokens {
  RawView keys, values;
  std::int32_t count;
  Pointer keyLengths, keyMask;
};

struct RawLayerCall {
  RawAttentionCall attention;
  RawRotary rotary;
  Pointer positions;
  Pointer input, memoryKeys, memoryValues, projectedKeys, projectedValues, output;
  RawLinear query, key, value, outputProjection;
};

struct RawProjectionGradients {
  Pointer weight, bias;
};

struct RawLayerBackwardCall {
  RawLayerCall forward;
  Pointer gradOutput, gradInput, gradMemoryKeys, gradMemoryValues;
  RawProjectionGradients query, key, value, outputProjection;
};

template <typename T>
BasicView<T> to_view(const RawView& raw) noexcept {
  return {to_pointer<T>(raw.data), raw.batchStride, raw.headStride, raw.rowStride};
}

template <typename T>
BroadcastView<T> to_broadcast(const RawBroadcast& raw) noexcept {
  return {to_pointer<const T>(raw.data), raw.batchStride, raw.headStride, raw.queryStride, raw.keyStride};
}

inline AttentionCall to_call(const RawAttentionCall& raw) noexcept {
  AttentionCall call;
  call.shape = {raw.batch, raw.heads, raw.kvHeads, raw.queryLength, raw.keyLength, raw.headDim, raw.valueDim};
  call.inputs.queries = to_view<const float>(raw.queries);
  call.inputs.keys = to_view<const float>(raw.keys);
  call.inputs.values = to_view<const float>(raw.values);
  if (raw.cache != 0) call.inputs.cache = KvCache(to_pointer<void>(raw.cache));
  call.inputs.new_length = raw.newLength;
  call.visibility.causal = raw.causal;
  call.visibility.query_offsets = to_pointer<const std::int32_t>(raw.queryOffsets);
  call.visibility.window_left = raw.windowLeft;
  call.visibility.window_right = raw.windowRight;
  call.visibility.key_lengths = to_pointer<const std::int32_t>(raw.keyLengths);
  call.visibility.key_mask = to_pointer<const std::uint8_t>(raw.keyMask);
  call.visibility.mask = to_broadcast<std::uint8_t>(raw.mask);
  call.scores.scale = raw.scale;
  call.scores.softcap = raw.softcap;
  call.scores.bias = to_broadcast<float>(raw.bias);
  call.scores.alibi_slopes = to_pointer<const float>(raw.alibiSlopes);
  call.scores.sinks = to_pointer<const float>(raw.sinks);
  call.scores.dropout = {raw.dropoutP, static_cast<std::uint64_t>(static_cast<std::int64_t>(raw.dropoutSeed))};
  call.outputs.output = to_view<float>(raw.output);
  call.outputs.weights = {to_pointer<float>(raw.weights),
                          static_cast<WeightsKind>(raw.weightsKind),
                          to_pointer<const std::int32_t>(raw.weightsHeads),
                          raw.weightsHeadCount,
                          raw.weightsQueryFrom,
                          raw.weightsQueryTo};
  call.outputs.log_sum_exp = to_pointer<float>(raw.logSumExp);
  call.outputs.summary = {raw.topK,
                          to_pointer<std::int32_t>(raw.topIndices),
                          to_pointer<float>(raw.topWeights),
                          to_pointer<float>(raw.entropy),
                          to_pointer<float>(raw.distance),
                          to_pointer<float>(raw.map),
                          raw.mapRows,
                          raw.mapColumns};
  return call;
}

inline AttentionBackwardCall to_backward_call(const RawAttentionBackwardCall& raw) noexcept {
  return {to_call(raw.forward),
          to_view<const float>(raw.forward.output),
          to_pointer<const float>(raw.logSumExp),
          to_view<const float>(raw.gradOutput),
          to_view<float>(raw.gradQueries),
          to_view<float>(raw.gradKeys),
          to_view<float>(raw.gradValues),
          to_pointer<float>(raw.gradBias),
          to_pointer<float>(raw.gradSinks)};
}

inline RotaryOptions to_rotary(const RawRotary& raw) noexcept {
  return {raw.dims,
          raw.interleaved,
          raw.base,
          static_cast<RotaryScaling>(raw.scaling),
          raw.factor,
          raw.originalLength,
          raw.lowFrequencyFactor,
          raw.highFrequencyFactor,
          raw.betaFast,
          raw.betaSlow,
          raw.attentionFactor};
}

inline KvCacheShape to_cache_shape(const RawCacheShape& raw) noexcept {
  return {raw.batch,  raw.kvHeads, raw.headDim, raw.valueDim, raw.capacity, static_cast<CacheType>(raw.type),
          raw.rolling};
}

inline KvCache::Tokens to_tokens(const RawCacheTokens& raw) noexcept {
  return {to_view<const float>(raw.keys), to_view<const float>(raw.values), raw.count,
          to_pointer<const std::int32_t>(raw.keyLengths), to_pointer<const std::uint8_t>(raw.keyMask)};
}

inline LinearFormat to_format(std::int32_t type, std::int32_t group) noexcept {
  return {static_cast<WeightType>(type), group};
}

inline PackedLinear to_linear(const RawLinear& raw) noexcept {
  return {to_pointer<const void>(raw.weight), to_pointer<const float>(raw.bias), raw.inputs, raw.outputs,
          to_format(raw.type, raw.group)};
}

inline WeightRows to_rows(const RawWeightRows& raw) noexcept {
  return {to_pointer<const void>(raw.values),
          static_cast<WeightType>(raw.type),
          raw.transposed,
          raw.first,
          raw.count,
          raw.stride};
}

inline MultiHeadAttentionCall to_layer_call(const RawLayerCall& raw) noexcept {
  MultiHeadAttentionCall call;
  call.attention = to_call(raw.attention);
  call.rotary = to_rotary(raw.rotary);
  call.positions = to_pointer<const std::int32_t>(raw.positions);
  call.input = to_pointer<const float>(raw.input);
  call.memory_keys = to_pointer<const float>(raw.memoryKeys);
  call.memory_values = to_pointer<const float>(raw.memoryValues);
  call.projected_keys = to_pointer<const float>(raw.projectedKeys);
  call.projected_values = to_pointer<const float>(raw.projectedValues);
  call.output = to_pointer<float>(raw.output);
  call.query = to_linear(raw.query);
  call.key = to_linear(raw.key);
  call.value = to_linear(raw.value);
  call.output_projection = to_linear(raw.outputProjection);
  return call;
}

inline ProjectionGradients to_gradients(const RawProjectionGradients& raw) noexcept {
  return {to_pointer<float>(raw.weight), to_pointer<float>(raw.bias)};
}

inline MultiHeadAttentionBackwardCall to_layer_backward_call(const RawLayerBackwardCall& raw) noexcept {
  return {to_layer_call(raw.forward),
          to_pointer<const float>(raw.gradOutput),
          to_pointer<float>(raw.gradInput),
          to_pointer<float>(raw.gradMemoryKeys),
          to_pointer<float>(raw.gradMemoryValues),
          to_gradients(raw.query),
          to_gradients(raw.key),
          to_gradients(raw.value),
          to_gradients(raw.outputProjection)};
}

}  // namespace lookback::bindings
