#pragma once

// The mask plan. Causality, window and key length give every query row an interval of keys (a band whose ends rise with the row);
// masks and −∞ in the bias cut holes into it. Whole blocks of keys are thereby skipped, taken as they are, or treated key by key.

#include <cstdint>

#include "kernels/tile.hpp"
#include "lookback/attention.hpp"

namespace lookback {

/// Keys [from, to).
struct KeyRange {
  std::int32_t from = 0;
  std::int32_t to = 0;

  [[nodiscard]] bool empty() const noexcept { return from >= to; }
  [[nodiscard]] Index count() const noexcept { return empty() ? 0 : to - from; }
};

KeyRange intersect(KeyRange a, KeyRange b) noexcept;

/// The rows of one query tile (batch row, head, up to tile_queries queries) and the band of each. Lanes past the last row repeat it.
struct TileRows {
  Index batch = 0;
  Index head = 0;
  Index first_query = 0;
  Index count = 0;
  std::int32_t from[kernels::tile_queries];
  std::int32_t to[kernels::tile_queries];
  std::int32_t position[kernels::tile_queries];  ///< i + offset

  TileRows() = default;
  TileRows(const AttentionCall& call, Index batch, Index head, Index first_query) noexcept;

  /// The smallest interval that holds the bands of rows [first, first + row_count).
  [[nodiscard]] KeyRange hull(Index first, Index row_count) const noexcept;
};

/// Whether anything but the band hides keys.
[[nodiscard]] bool has_holes(const AttentionCall& call) noexcept;

enum class Coverage { none, some, all };

/// Writes 1 for every key in `keys` that row `row` of the tile sees, else 0: the conjunction of band, masks and −∞ in the bias.
/// Decided without looking at a score. Returns how much of it is visible.
Coverage visible_keys(const AttentionCall& call, const TileRows& rows, Index row, KeyRange keys,
                      std::uint8_t* visible) noexcept;

}  // namespace lookback
