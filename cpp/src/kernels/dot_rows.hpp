#pragma once

// One query against rows of keys or values that are read where they lie: for few queries the memory is the limit, and packing
// would read and write all of it once more. Lanes run along a row; rows are read in four streams side by side.
// dot_rows: out[j] = Σ_d rows[j][d] · query[d]. Four rows at a time: 4 + 1 loads and 4 multiply-adds per batch of d; every lane sums
// its own d in rising order, then the lanes are added pairwise, then the d beyond the last whole batch. Sums are made of parts of 32 batches.
// dot_rows_int8: the same as integers, exact within a group of the query (|sum of a lane| < 2³¹).
// accumulate_rows_int8: weights times scales become integers of 16 bits whose scale is that of the largest in 256 rows, so that products
// with bytes are added exactly: each weight is off by at most 2⁻¹⁶ of the largest.
// accumulate_rows: sums[c] += Σ_j weights[j] · rows[j][c], four rows at a time, in an order that depends on where they stand in their
// block only: 0, 64, 128, 192, 1, 65, …

#include <cstdint>

#include "kernels/tile.hpp"

namespace lookback::kernels {

void dot_rows(const float* rows, Index row_stride, Index row_count, const float* query, Index depth,
              float* out) noexcept;

/// Elements of a query that share a scale.
inline constexpr Index int8_query_group = 256;

/// Rows of int8 with a factor each, which multiplies the sum; the query as quantize_inputs(…, int8_query_group, …) made it.
void dot_rows_int8(const std::int8_t* rows, const float* scales, Index row_stride, Index row_count,
                   const std::int16_t* query, const float* query_scales, Index depth, float* out) noexcept;

/// out = out · correction + sums.
void correct_and_add(float* out, Index count, float correction, const float* sums) noexcept;

/// Distance of rows that are added one after the other.
inline constexpr Index stream_rows = block_keys / 4;

/// sums[c] += Σ_j weights[j] · rows[j][c] for rows whose `visible` byte is not 0 (nullptr = all): others are not looked at. Row 0 stands at
/// `first` of its block, the last one in the same block.
void accumulate_rows(const float* rows, Index row_stride, Index first, Index row_count, const float* weights,
                     const std::uint8_t* visible, Index column_count, float* sums) noexcept;

/// The same in rising order, and where it is does not matter.
void accumulate_rows_int8(const std::int8_t* rows, const float* scales, Index row_stride, Index row_count,
                          const float* weights, const std::uint8_t* visible, Index column_count, float* sums) noexcept;

}  // namespace lookback::kernels
