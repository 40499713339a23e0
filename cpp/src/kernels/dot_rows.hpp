#pragma once

// One query against rows of keys or values that are read where they lie: for few queries the memory is the limit, and packing
// would read and write all of it once more. Lanes run along a row.
// dot_rows: out[j] = Σ_d rows[j][d] · query[d]. Four rows at a time: 4 + 1 loads and 4 multiply-adds per batch of d; every lane sums
// its own d in rising order, then the lanes are added pairwise, then the d beyond the last whole batch. Sums are made of parts of 32 batches.
// accumulate_rows: sums[c] += Σ_j weights[j] · rows[j][c], a strip of columns in registers.

#include <cstdint>

#include "kernels/tile.hpp"

namespace lookback::kernels {

void dot_rows(const float* rows, Index row_stride, Index row_count, const float* query, Index depth,
              float* out) noexcept;

/// Rows of int8 with a factor each, which multiplies the sum.
void dot_rows_int8(const std::int8_t* rows, const float* scales, Index row_stride, Index row_count, const float* query,
                   Index depth, float* out) noexcept;

/// out = out · correction + sums.
void correct_and_add(float* out, Index count, float correction, const float* sums) noexcept;

/// sums[c] += Σ_j weights[j] · rows[j][c] for rows whose `visible` byte is not 0 (nullptr = all): others are not looked at.
void accumulate_rows(const float* rows, Index row_stride, Index row_count, const float* weights,
                     const std::uint8_t* visible, Index column_count, float* sums) noexcept;

void accumulate_rows_int8(const std::int8_t* rows, const float* scales, Index row_stride, Index row_count,
                          const float* weights, const std::uint8_t* visible, Index column_count, float* sums) noexcept;

}  // namespace lookback::kernels
