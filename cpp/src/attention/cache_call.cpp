#include "attention/cache_call.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/quantize.hpp"

namespace lookback {
namespace {

/// A row as an int8 cache will give it back.
void store_and_load(const float* row, Index width, float* target) noexcept {
  constexpr Index step = 256;
  std::int8_t quantized[step];
  if (width <= step) {
    kernels::dequantize_row(quantized, width, kernels::quantize_row(row, width, quantized), target);
    return;
  }
  // A wide row in parts: the scale is that of the whole row, found by a first pass into the target's own memory.
  auto* bytes = reinterpret_cast<std::int8_t*>(target);
  const float scale = kernels::quantize_row(row, width, bytes);
  for (Index from = (width - 1) / step * step; from >= 0; from -= step) {
    const Index count = std::min(step, width - from);
    std::copy_n(bytes + from, count, quantized);
    kernels::dequantize_row(quantized, count, scale, target + from);
  }
}

void convert_new_tokens(const AttentionCall& call, const CacheWorkspace& work, AttentionCall& columns) noexcept {
  const AttentionShape& shape = call.shape;
  const Index count = call.inputs.new_length;
  const auto convert = [&](const ConstView& source, Index width, float* target) -> ConstView {
    for (Index batch = 0; batch < shape.batch; ++batch) {
      for (Index head = 0; head < shape.kv_heads; ++head) {
        for (Index token = 0; token < count; ++token) {
          const Index row = (batch * shape.kv_heads + head) * count + token;
          store_and_load(source.row(batch, head, token), width, target + row * width);
        }
      }
    }
    return {target, shape.kv_heads * count * width, count * width, width};
  };
  columns.inputs.keys = convert(call.inputs.keys, shape.head_dim, work.new_keys);
  columns.inputs.values = convert(call.inputs.values, shape.value_dim, work.new_values);
}

/// The key mask of all columns: remembered for stored tokens, the call's own for new ones. False if all tokens are real.
bool assemble_key_mask(const AttentionCall& call, const CacheWorkspace& work) noexcept {
  const KvCache& cache = call.inputs.cache;
  if (!cache.has_key_mask() && call.visibility.key_mask == nullptr) return false;
  const Index key_length = call.shape.key_length;
  const Index first_position = cache.first_position();
  std::memset(work.key_mask, 1, static_cast<std::size_t>(call.shape.batch * key_length));
  for (Index batch = 0; batch < call.shape.batch; ++batch) {
    std::uint8_t* row = work.key_mask + batch * key_length;
    for (Index column = work.starts[batch]; column < work.offsets[batch]; ++column) {
      row[column] = cache.key_mask(batch)[(first_position + column) % cache.shape().capacity];
    }
    if (call.visibility.key_mask == nullptr) continue;
    const std::uint8_t* source = call.visibility.key_mask + batch * call.inputs.new_length;
    std::copy_n(source, work.ends[batch] - work.offsets[batch], row + work.offsets[batch]);
  }
  return true;
}

/// Whether a rolling cache still has what the first query of each row may see: truncation gives back no evicted token.
bool has_window(const AttentionCall& call) noexcept {
  const KvCache& cache = call.inputs.cache;
  if (call.shape.query_length == 0) return true;
  for (Index batch = 0; batch < call.shape.batch; ++batch) {
    const std::int32_t first = cache.first_positions()[batch];
    const std::int64_t lowest = static_cast<std::int64_t>(cache.lengths()[batch]) - call.visibility.window_left;
    if (first > 0 && lowest < first) return false;
  }
  return true;
}

}  // namespace

KvCache::Tokens new_tokens(const AttentionCall& call) noexcept {
  return {call.inputs.keys, call.inputs.values, call.inputs.new_length, call.visibility.key_lengths,
          call.visibility.key_mask};
}

Status validate_cache_call(const AttentionCall& call) noexcept {
  const AttentionShape& shape = call.shape;
  const KvCache& cache = call.inputs.cache;
  const KvCacheShape& stored = cache.shape();
  if (stored.batch != shape.batch || stored.kv_heads != shape.kv_heads || stored.head_dim != shape.head_dim ||
      stored.value_dim != shape.value_dim) {
    return Status::cache_mismatch;
  }
  if (call.inputs.new_length < 0 || shape.key_length - call.inputs.new_length != cache.columns()) {
    return Status::invalid_shape;
  }
  if (stored.rolling && (call.visibility.window_left >= stored.capacity || !has_window(call))) return Status::evicted;
  return cache.check_append(new_tokens(call));
}

AttentionCall columns_of_cache(const AttentionCall& call, const CacheWorkspace& work) noexcept {
  KvCache cache = call.inputs.cache;
  const auto first_position = static_cast<std::int32_t>(cache.first_position());
  for (Index batch = 0; batch < call.shape.batch; ++batch) {
    const auto count = static_cast<std::int32_t>(
        call.visibility.key_lengths != nullptr ? call.visibility.key_lengths[batch] : call.inputs.new_length);
    work.starts[batch] = cache.first_positions()[batch] - first_position;
    work.offsets[batch] = cache.lengths()[batch] - first_position;
    work.ends[batch] = work.offsets[batch] + count;
  }
  AttentionCall columns = call;
  columns.visibility.key_mask = assemble_key_mask(call, work) ? work.key_mask : nullptr;
  columns.visibility.query_offsets = work.offsets;
  columns.visibility.key_starts = work.starts;
  columns.visibility.key_lengths = work.ends;
  if (!cache.shape().rolling) {
    static_cast<void>(cache.append(new_tokens(call)));  // was checked
  } else if (work.new_keys != nullptr) {
    convert_new_tokens(call, work, columns);
  }
  return columns;
}

void end_cache_call(const AttentionRun& run, bool finished) noexcept {
  KvCache cache = run.call.inputs.cache;
  if (cache.shape().rolling) {
    if (finished) static_cast<void>(cache.append(run.new_tokens));  // was checked
  } else if (!finished) {
    const auto first_position = static_cast<std::int32_t>(cache.first_position());
    for (Index batch = 0; batch < cache.shape().batch; ++batch) {
      cache.lengths()[batch] = first_position + run.cache.offsets[batch];
    }
  }
}

}  // namespace lookback
