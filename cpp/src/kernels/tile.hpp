#pragma once

// The shapes of the calculation. A query tile is what shares one pass over the keys; within it queries lie in SIMD lanes.

#include "kernels/simd.hpp"

namespace lookback::kernels {

/// Queries (or output columns) side by side in registers: two batches.
inline constexpr Index panel_width = 2 * simd::lanes;
/// Panels of one query tile.
inline constexpr Index tile_panels = 3;
/// Queries of one tile: 24 with 128-bit batches.
inline constexpr Index tile_queries = tile_panels * panel_width;
/// Keys of one block: their probabilities for a tile take 24 kB, beside a 8 kB panel of values. Boundaries are multiples of
/// it from key 0, so the order of sums depends on the key's number only.
inline constexpr Index block_keys = 256;
/// Rows of A in registers: 4 × 2 accumulators + 2 of B + 1 of A fit the 15 registers that V8 has.
inline constexpr Index register_rows = 4;
/// 6 × 2 accumulators + 2 of B + 1 of A use all of them; that pays where the engine's register allocation keeps up.
inline constexpr Index wide_rows = 6;

/// register_rows or wide_rows, as use_wide_tiles (lookback/engine.hpp) chose; sums are the same bits.
[[nodiscard]] Index rows_at_once() noexcept;

inline constexpr Index round_up(Index value, Index multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace lookback::kernels
