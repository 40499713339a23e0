#pragma once

// out[p][0 … panel_width) = initial[p][…] + Σ_d row[d] · panels[p][d][…]
//
// One row is done when the weights were read, once. Where they are in a cache nearby, panels are read side by side, so that no sum waits for
// another: 4 panels × 2 sums, 2 of B, 1 of A; per d: 1 splat load, 8 loads (which widen, where they are bfloat16), 8 multiply-adds. Where
// they come from far away, one panel is read after the other: on a Zen 5, whose prefetchers lose four streams, that is a quarter faster.
// The bits are those of multiply_rows (row_tile.hpp) on the same weights as float32.

#include <cstdint>

#include "kernels/tile.hpp"

namespace lookback::kernels {

/// Panels that are read side by side.
inline constexpr Index side_by_side = 4;
inline constexpr Index side_by_side_width = side_by_side * panel_width;

/// `panel_count` (1 … side_by_side) panels [depth][panel_width] follow each other. `initial` and `out` are [side_by_side][panel_width], of one
/// panel [panel_width]; where there is no panel, nothing in particular is written. `depth` is at least 1.
void multiply_row_f32(const float* row, Index depth, const float* panels, Index panel_count, const float* initial,
                      float* out) noexcept;
void multiply_row_bf16(const float* row, Index depth, const std::uint16_t* panels, Index panel_count,
                       const float* initial, float* out) noexcept;

}  // namespace lookback::kernels
