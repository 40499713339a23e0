#pragma once

// O[q][c] = O[q][c] · correction[q] + Σ_j P[j][q] · V[j][c]
//
// P is [key][tile_queries] (queries in lanes, as the scores left them), V a packed panel [key][panel_width] of columns, O the
// accumulators [tile_queries][out_stride]. The sum over the block's keys starts at 0 and joins O at its end, so rounding errors
// grow with the length of a block plus the number of blocks (attention/totals.hpp groups those) rather than with all keys.
// Registers: 4 × 2 accumulators, 2 of V, 1 of P. Per key: 4 splat loads, 2 loads, 8 multiply-adds.
// A key whose P is 0 leaves every bit as it is, as long as its V is finite; for others there is accumulate_visible_values.

#include "kernels/tile.hpp"

namespace lookback::kernels {

/// Query rows [0, row_count) of one column panel, keys [0, key_count).
void accumulate_values(const float* probabilities, Index row_count, const float* value_panel, Index key_count,
                       const float* correction, float* out, Index out_stride) noexcept;

/// One query row and one column panel where V may hold NaN or ±∞: keys whose `visible` byte is 0 are not looked at. The same bits
/// as accumulate_values where all is finite. `probabilities` points at the row's lane of key 0.
void accumulate_visible_values(const float* probabilities, const std::uint8_t* visible, const float* value_panel,
                               Index key_count, float correction, float* out) noexcept;

}  // namespace lookback::kernels
