#pragma once

// Copies into the layouts that the tiles read: panels [depth][panel_width], zero where the source has no more rows or columns.

#include "kernels/tile.hpp"

namespace lookback::kernels {

/// Rows become lanes: panel[d][lane] = rows[lane][d] · factor for lane < row_count, 0 beyond.
void pack_rows_as_lanes(const float* rows, Index row_stride, Index row_count, Index depth, float factor,
                        float* panel) noexcept;

/// The inverse of pack_rows_as_lanes with factor 1.
void unpack_lanes_to_rows(const float* panel, Index row_count, Index depth, float* rows, Index row_stride) noexcept;

/// Columns become panels: panels[c / width][row][c % width] = rows[row][c]; panels are `panel_stride` elements apart. Returns
/// whether all values were finite.
bool pack_columns(const float* rows, Index row_stride, Index row_count, Index column_count, float* panels,
                  Index panel_stride) noexcept;

/// tile[r][c] = rows[r][c] for c < column_count, 0 up to tile_queries: rows become what accumulate_values (value_tile.hpp) takes for P.
void pack_tile(const float* rows, Index row_stride, Index row_count, Index column_count, float* tile) noexcept;

/// sums[0 … panel_width) += Σ_r panel[r][…]: the sum begins at 0 and is added at its end.
void add_panel_rows(const float* panel, Index row_count, float* sums) noexcept;

/// rows[r][key] = block[key][r] for r < row_count: queries of a score block [key][tile_queries] become rows.
void unpack_query_lanes(const float* block, Index row_count, Index key_count, float* rows, Index row_stride) noexcept;

/// A panel of a score block [key][tile_queries] into another one.
void copy_panel(const float* block, Index key_count, float* target) noexcept;

/// row[i] = row[i] == 0 ? 0 : row[i] · factor: the weight of a masked key stays 0 where the factor is NaN.
void scale_nonzero(float* row, Index count, float factor) noexcept;

/// out[c] = row[c] · factor + 0 (so that −0 becomes 0, whichever keys were skipped).
void store_scaled_row(const float* row, Index count, float factor, float* out) noexcept;

}  // namespace lookback::kernels
