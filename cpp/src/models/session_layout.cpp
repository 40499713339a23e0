#include "models/session_layout.hpp"

#include <algorithm>
#include <cmath>

#include "attention/decode.hpp"
#include "lookback/parallel.hpp"

namespace lookback {
namespace {

constexpr double alignment = 64;

template <typename T>
T* at(void* memory, double offset) noexcept {
  return reinterpret_cast<T*>(static_cast<char*>(memory) + static_cast<std::size_t>(offset));
}

/// The largest workspace of a layer's attention. It is asked with a tiny cache of the same kind: only the kind is looked at.
double attention_bytes(const DecoderConfig& config, const DecoderSessionShape& shape, bool windowed) noexcept {
  alignas(64) char memory[1024];
  const KvCacheShape stored = cache_shape(config, shape, windowed);
  const KvCacheShape tiny{1, 1, 1, 1, 1, stored.type, stored.rolling};
  if (KvCache::bytes(tiny) > sizeof memory || KvCache::create(tiny, memory) != Status::ok) return INFINITY;
  double most = 0;
  // Few queries are attended in another way, with other needs; either way more queries need more.
  const Index chunk = shape.chunk;
  for (const Index length : {std::min(chunk, most_decode_queries), chunk}) {
    AttentionCall call = attention_of_layer(config, windowed, shape.batch, length, stored.capacity);
    call.inputs.cache = KvCache(memory);
    most = std::max(most, attention_workspace_bytes(call));
  }
  return most;
}

double linear_bytes(const DecoderConfig& config, const DecoderSessionShape& shape) noexcept {
  const Index rows = static_cast<Index>(shape.batch) * shape.chunk;
  double most = 0;
  for (const Index inputs : {static_cast<Index>(config.embed_dim), static_cast<Index>(config.hidden_dim),
                             static_cast<Index>(config.heads) * config.head_dim}) {
    most = std::max(most, linear_workspace_bytes({nullptr, nullptr, inputs, 1, config.format}, rows));
  }
  return most;
}

}  // namespace

KvCacheShape cache_shape(const DecoderConfig& config, const DecoderSessionShape& shape, bool windowed) noexcept {
  const bool rolling = shape.rolling && windowed;
  const std::int32_t capacity = rolling ? std::min(config.window, shape.capacity) : shape.capacity;
  return {shape.batch, config.kv_heads, config.head_dim, config.head_dim, capacity, shape.cache_type, rolling};
}

RotaryOptions rotary_of_layer(const DecoderConfig& config, bool windowed) noexcept {
  RotaryOptions options = config.rotary;
  if (!windowed || config.window_rotary_base == 0.0) return options;
  options.base = config.window_rotary_base;
  options.scaling = RotaryScaling::none;
  return options;
}

AttentionCall attention_of_layer(const DecoderConfig& config, bool windowed, Index batch, Index length,
                                 Index columns) noexcept {
  AttentionCall call;
  call.shape = {batch, config.heads, config.kv_heads, length, columns + length, config.head_dim, config.head_dim};
  call.inputs.new_length = length;
  call.visibility.causal = true;
  if (windowed) call.visibility.window_left = config.window - 1;
  call.scores.scale = config.attention_scale != 0.0F
                          ? config.attention_scale
                          : static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)));
  call.scores.softcap = config.attention_softcap;
  return call;
}

double SessionLayout::take(double byte_count) noexcept {
  const double start = next_;
  next_ += std::ceil(byte_count / alignment) * alignment;
  return start;
}

double SessionLayout::cache(const DecoderConfig& config, Index layer) const noexcept {
  double offset = first_cache_;
  for (Index before = 0; before < layer; ++before) offset += cache_bytes_[is_windowed(config, before) ? 1 : 0];
  return offset;
}

SessionLayout::SessionLayout(const DecoderConfig& config, const DecoderSessionShape& shape) noexcept
    : threads(thread_count()) {
  const double batch = shape.batch;
  const double rows = batch * shape.chunk;
  const auto table = [&](double width) { return take(rows * width * sizeof(float)); };
  take(sizeof(SessionHead));
  padding = take(batch * sizeof(std::int32_t));
  step_tokens = take(batch * sizeof(std::int32_t));
  step_logits = take(batch * config.vocab_size * sizeof(float));
  for (const bool windowed : {false, true}) {
    cache_bytes_[windowed ? 1 : 0] =
        std::ceil(KvCache::bytes(cache_shape(config, shape, windowed)) / alignment) * alignment;
  }
  first_cache_ = next_;
  next_ = cache(config, config.layers);

  const double queries = static_cast<double>(config.heads) * config.head_dim;
  const double keys = static_cast<double>(config.kv_heads) * config.head_dim;
  tokens_ = table(1);
  positions_ = table(1);
  residual_ = table(config.embed_dim);
  normed_ = table(config.embed_dim);
  queries_ = table(queries);
  keys_ = table(keys);
  values_ = table(keys);
  heads_output_ = table(queries);
  gate_ = table(config.gated ? config.hidden_dim : 0);
  up_ = table(config.hidden_dim);
  for (const int kind : {0, 1}) {
    cosines_[kind] = table(static_cast<double>(config.rotary.dims / 2));
    sines_[kind] = table(static_cast<double>(config.rotary.dims / 2));
  }
  frequencies_ = take(static_cast<double>(config.rotary.dims / 2) * sizeof(double));
  workspace_bytes_ = std::max(attention_bytes(config, shape, false), attention_bytes(config, shape, true));
  workspace_bytes_ = std::max(workspace_bytes_, linear_bytes(config, shape));
  workspace_ = take(workspace_bytes_);
  bytes = next_;
}

DecoderScratch SessionLayout::scratch(void* memory) const noexcept {
  return {at<std::int32_t>(memory, tokens_),
          at<std::int32_t>(memory, positions_),
          at<float>(memory, residual_),
          at<float>(memory, normed_),
          at<float>(memory, queries_),
          at<float>(memory, keys_),
          at<float>(memory, values_),
          at<float>(memory, heads_output_),
          at<float>(memory, gate_),
          at<float>(memory, up_),
          {at<float>(memory, cosines_[0]), at<float>(memory, cosines_[1])},
          {at<float>(memory, sines_[0]), at<float>(memory, sines_[1])},
          at<double>(memory, frequencies_),
          at<void>(memory, workspace_),
          static_cast<std::size_t>(workspace_bytes_)};
}

}  // namespace lookback
