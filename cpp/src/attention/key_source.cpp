#include "attention/key_source.hpp"

#include <algorithm>

namespace lookback {
namespace {

KvCache::Rows operand_rows(const ConstView& view, Index batch, Index kv_head, Index row) noexcept {
  return {view.row(batch, kv_head, row), nullptr, nullptr, view.row_stride};
}

}  // namespace

KeySource::KeySource(const AttentionCall& call, Index batch, Index kv_head) noexcept {
  const AttentionInputs& inputs = call.inputs;
  if (!inputs.cache) {
    if (call.shape.key_length == 0) return;  // operands may be absent, and a null pointer has no rows
    add({0, static_cast<std::int32_t>(call.shape.key_length)}, operand_rows(inputs.keys, batch, kv_head, 0),
        operand_rows(inputs.values, batch, kv_head, 0));
    return;
  }
  const KvCache& cache = inputs.cache;
  const bool new_tokens_are_stored = !cache.shape().rolling;
  const std::int32_t end = call.visibility.key_lengths[batch];
  const std::int32_t first_new = call.visibility.query_offsets[batch];
  const std::int32_t stored_end = new_tokens_are_stored ? end : first_new;
  const Index first_position = cache.first_position();
  for (std::int32_t column = call.visibility.key_starts[batch]; column < stored_end;) {
    const Index slot = (first_position + column) % cache.shape().capacity;
    const Index count = std::min<Index>(stored_end - column, cache.shape().capacity - slot);
    const auto to = static_cast<std::int32_t>(column + count);
    add({column, to}, cache.key_rows(batch, kv_head, slot), cache.value_rows(batch, kv_head, slot));
    column = to;
  }
  if (stored_end < end) {
    add({first_new, end}, operand_rows(inputs.keys, batch, kv_head, 0), operand_rows(inputs.values, batch, kv_head, 0));
  }
}

void KeySource::add(KeyRange columns, const KvCache::Rows& keys, const KvCache::Rows& values) noexcept {
  runs_[count_++] = {columns, keys, values};
  needs_conversion_ = needs_conversion_ || keys.bytes != nullptr;
}

}  // namespace lookback
