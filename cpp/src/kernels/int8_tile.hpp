#pragma once

// C[r][0 … panel_width) = initial[0 … panel_width) + Σ_g scale(r, g) · scale(g)[…] · Σ_{d in g} A[r][d] · B[d][…]
//
// A holds integers of 16 bits, B signed bytes; groups of d have a scale in each row of A and in each column of B. Within a group the
// products are added as integers, exactly: |sum| ≤ 256 · 127 · 32767 < 2³¹. A panel is read in the order of its bytes: group by group
// panel_width float scales, then pairs (d, d + 1) for each column, zero where d ends on an odd number.
// Registers: 4 × 2 sums, 2 of B, 1 of A. Per pair: 2 loads that widen, 4 splat loads, 8 multiply-adds of pairs (a product and an addition).
// Bytes: B once per 4 rows, a little more than 1 for each weight. A scale that is NaN makes its sums NaN.

#include <cstdint>

#include "kernels/tile.hpp"

namespace lookback::kernels {

/// Integers of one row of A: `depth` and a 0 where that is odd.
inline constexpr Index padded_pairs(Index depth) noexcept { return round_up(depth, 2); }

inline constexpr Index group_count(Index depth, Index group) noexcept { return (depth + group - 1) / group; }

/// Bytes of a panel's group of `length` (≥ 1) of d: scales and pairs.
inline constexpr Index int8_group_bytes(Index length) noexcept {
  return panel_width * (static_cast<Index>(sizeof(float)) + padded_pairs(length));
}

/// Bytes of a whole panel; `group` is even.
inline constexpr Index int8_panel_bytes(Index depth, Index group) noexcept {
  return group_count(depth, group) * panel_width * static_cast<Index>(sizeof(float)) +
         panel_width * padded_pairs(depth);
}

/// row[d] ≈ quantized[d] · scales[d / group], scale = max|row| / 32767 of the group. A group with NaN or ±∞ has scale NaN; one whose numbers
/// are all below 2⁻¹⁰⁰ is 0.
void quantize_inputs(const float* row, Index depth, Index group, std::int16_t* quantized, float* scales) noexcept;

/// Rows of A are padded_pairs(depth) integers and group_count(depth, group) scales, each row next to the last. 0 rows write nothing.
void multiply_int8_rows(const std::int16_t* rows, const float* row_scales, Index row_count, const std::int8_t* panel,
                        Index depth, Index group, const float* initial, float* out, Index out_stride) noexcept;

/// One row of A and 1 … side_by_side panels that follow each other, read as in one_row.hpp; `initial` and `out` as there. The
/// bits are those of multiply_int8_rows.
void multiply_row_int8(const std::int16_t* row, const float* row_scales, const std::int8_t* panels, Index panel_count,
                       Index depth, Index group, const float* initial, float* out) noexcept;

}  // namespace lookback::kernels
