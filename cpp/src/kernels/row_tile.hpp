#pragma once

// C[r][0 … panel_width) = initial[0 … panel_width) + Σ_d A[r][d] · B[d][0 … panel_width)
//
// Rows of A are read in place (contiguous along d), B is a packed panel [depth][panel_width]. Serves the scores (A = key rows,
// B = a panel of queries) and linear layers (A = inputs, B = a panel of weights).
// Registers: 4 × 2 accumulators (6 × 2 in wide tiles), 2 of B, 1 of A. Per d: 4 splat loads, 2 loads, 8 multiply-adds (6, 2 and 12).
// Bytes: A once, B once per 4 or 6 rows (from L1), C once. Each element is a sum in rising order of d, in parts of 32 that are
// added to each other.

#include "kernels/tile.hpp"

namespace lookback::kernels {

/// `out_stride` is the distance of C's rows. `depth` is at least 1; 0 rows write nothing. Without `initial` (nullptr) the sum begins at 0
/// and is added to what stands in C: gradients of keys and values, A = a block's weights [key][tile_queries].
void multiply_rows(const float* rows, Index row_stride, Index row_count, const float* panel, Index depth,
                   const float* initial, float* out, Index out_stride) noexcept;

/// The same without `initial`, for where B may hold NaN or ±∞: a product whose factor of A is 0 is left out. The same bits where all is finite.
void add_nonzero_products(const float* rows, Index row_stride, Index row_count, const float* panel, Index depth,
                          float* out, Index out_stride) noexcept;

}  // namespace lookback::kernels
