#pragma once

// One query against rows of keys or values that are read where they lie: for few queries the memory is the limit, and packing
// would read and write all of it once more. Lanes run along a row; rows are read in their order, two at a time, which prefetchers follow;
// of very deep ones a few rows are read part by part.
// dot_rows: out[j] = Σ_d rows[j][d] · query[d]. Every lane sums its own d in four sums that take turns, then the lanes are added pairwise,
// then the d beyond the last whole batch. Sums are made of parts of 32 batches.
// dot_rows_int8: the same as integers, exact within a group of the query (|sum of a lane| < 2³¹).
// accumulate_rows_int8: weights times scales become integers of 16 bits whose scale is that of the largest in 256 rows, so that products
// with bytes are added exactly: each weight is off by at most 2⁻¹⁶ of the largest.
// accumulate_rows: sums[c] += Σ_j weights[j] · rows[j][c] in the order of rows, whatever is seen of them.

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

/// sums[c] += Σ_j weights[j] · rows[j][c] for rows whose `visible` byte is not 0 (nullptr = all): others are not looked at.
void accumulate_rows(const float* rows, Index row_stride, Index row_count, const float* weights,
                     const std::uint8_t* visible, Index column_count, float* sums) noexcept;

/// The same for rows of int8 with a factor each.
void accumulate_rows_int8(const std::int8_t* rows, const float* scales, Index row_stride, Index row_count,
                          const float* weights, const std::uint8_t* visible, Index column_count, float* sums) noexcept;

}  // namespace lookback::kernels
