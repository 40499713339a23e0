#include "attention/visibility.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace lookback {
namespace {

KeyRange row_band(const AttentionCall& call, Index batch, std::int64_t position) noexcept {
  const Visibility& visibility = call.visibility;
  std::int64_t from = 0;
  std::int64_t to = call.shape.key_length;
  if (visibility.key_starts != nullptr) from = std::max<std::int64_t>(from, visibility.key_starts[batch]);
  if (visibility.key_lengths != nullptr) to = std::min<std::int64_t>(to, visibility.key_lengths[batch]);
  if (visibility.causal) to = std::min(to, position + 1);
  if (visibility.window_right != unlimited) to = std::min(to, position + visibility.window_right + 1);
  if (visibility.window_left != unlimited) from = std::max(from, position - visibility.window_left);
  to = std::max<std::int64_t>(to, 0);
  from = std::min(from, to);
  return {static_cast<std::int32_t>(from), static_cast<std::int32_t>(to)};
}

/// visible[key] &= source says so; with `first` it becomes what the source says.
template <typename Source, typename Says>
void intersect_source(const Source* source, Index stride, Index count, bool first, std::uint8_t* visible,
                      Says says) noexcept {
  if (stride == 1 && first) {
    for (Index key = 0; key < count; ++key) visible[key] = static_cast<std::uint8_t>(says(source[key]));
    return;
  }
  if (first) std::memset(visible, 1, static_cast<std::size_t>(count));
  if (stride == 1) {
    for (Index key = 0; key < count; ++key) visible[key] &= static_cast<std::uint8_t>(says(source[key]));
    return;
  }
  for (Index key = 0; key < count; ++key) visible[key] &= static_cast<std::uint8_t>(says(source[key * stride]));
}

void intersect_bytes(const std::uint8_t* source, Index stride, Index count, bool first,
                     std::uint8_t* visible) noexcept {
  intersect_source(source, stride, count, first, visible, [](std::uint8_t byte) { return byte != 0; });
}

void intersect_bias(const float* source, Index stride, Index count, bool first, std::uint8_t* visible) noexcept {
  constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
  // Not `>`: a NaN does not mask.
  intersect_source(source, stride, count, first, visible, [](float value) { return !(value == minus_infinity); });
}

}  // namespace

KeyRange intersect(KeyRange a, KeyRange b) noexcept { return {std::max(a.from, b.from), std::min(a.to, b.to)}; }

TileRows::TileRows(const AttentionCall& call, Index batch_row, Index head_number, Index first) noexcept
    : batch(batch_row),
      head(head_number),
      first_query(first),
      count(std::min(kernels::tile_queries, call.shape.query_length - first)) {
  const std::int64_t offset = call.visibility.query_offsets != nullptr ? call.visibility.query_offsets[batch_row] : 0;
  for (Index row = 0; row < count; ++row) {
    const std::int64_t at = first + row + offset;
    const KeyRange band = row_band(call, batch_row, at);
    from[row] = band.from;
    to[row] = band.to;
    position[row] = static_cast<std::int32_t>(std::clamp<std::int64_t>(at, INT32_MIN, INT32_MAX));
  }
  for (Index row = std::max<Index>(count, 1); row < kernels::tile_queries; ++row) {
    from[row] = from[row - 1];
    to[row] = to[row - 1];
    position[row] = position[row - 1];
  }
}

KeyRange TileRows::hull(Index first, Index row_count) const noexcept {
  KeyRange range{std::numeric_limits<std::int32_t>::max(), 0};
  for (Index row = first; row < first + row_count; ++row) {
    if (from[row] >= to[row]) continue;
    range.from = std::min(range.from, from[row]);
    range.to = std::max(range.to, to[row]);
  }
  return range;
}

bool has_holes(const AttentionCall& call) noexcept {
  return call.visibility.mask.data != nullptr || call.visibility.key_mask != nullptr ||
         call.scores.bias.data != nullptr;
}

Coverage visible_keys(const AttentionCall& call, const TileRows& rows, Index row, KeyRange keys,
                      std::uint8_t* visible) noexcept {
  const KeyRange band = intersect(keys, {rows.from[row], rows.to[row]});
  if (band.empty()) {
    std::memset(visible, 0, static_cast<std::size_t>(keys.count()));
    return Coverage::none;
  }
  const Index count = band.count();
  std::uint8_t* inside = visible + (band.from - keys.from);
  std::memset(visible, 0, static_cast<std::size_t>(band.from - keys.from));
  std::memset(inside + count, 0, static_cast<std::size_t>(keys.to - band.to));

  const Index query = rows.first_query + std::min(row, rows.count - 1);
  bool first = true;
  if (const MaskView& mask = call.visibility.mask; mask.data != nullptr) {
    const std::uint8_t* source = mask.row(rows.batch, rows.head, query) + band.from * mask.key_stride;
    intersect_bytes(source, mask.key_stride, count, first, inside);
    first = false;
  }
  if (call.visibility.key_mask != nullptr) {
    const std::uint8_t* source = call.visibility.key_mask + rows.batch * call.shape.key_length + band.from;
    intersect_bytes(source, 1, count, first, inside);
    first = false;
  }
  if (const BiasView& bias = call.scores.bias; bias.data != nullptr) {
    const float* source = bias.row(rows.batch, rows.head, query) + band.from * bias.key_stride;
    intersect_bias(source, bias.key_stride, count, first, inside);
    first = false;
  }
  if (first) std::memset(inside, 1, static_cast<std::size_t>(count));

  std::uint8_t any = 0;
  std::uint8_t every = 1;
  for (Index key = 0; key < count; ++key) {
    any |= inside[key];
    every &= inside[key];
  }
  if (any == 0) return Coverage::none;
  return every != 0 && count == keys.count() ? Coverage::all : Coverage::some;
}

}  // namespace lookback
