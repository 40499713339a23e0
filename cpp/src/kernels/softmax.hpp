#pragma once

// Softmax over a block of scores [key][tile_queries], a panel of queries at a time, queries in lanes: maxima and sums are vertical,
// there is no horizontal step. Scores are −∞ where not visible.

#include "kernels/tile.hpp"

namespace lookback::kernels {

/// The running state of a tile's rows. `maximum` −∞ and `sum` 0 before the first key.
struct RowState {
  float maximum[tile_queries];
  float sum[tile_queries];
};

/// maximum[lane] = max(maximum[lane], scores[0 … key_count)[lane]); NaN is passed over.
void join_maximum(const float* scores, Index key_count, float* maximum) noexcept;

/// Turns scores into e^(score − m) in place, where m = max(row maximum, block_maximum), and updates the row state. `correction`
/// [panel_width] becomes e^(old maximum − m): what earlier sums have to be multiplied by. A row that has seen nothing keeps maximum
/// −∞ and gets probabilities 0. NaN scores give NaN probabilities.
void exponentiate(float* scores, Index key_count, const float* block_maximum, float* row_maximum, float* row_sum,
                  float* correction) noexcept;

/// The probabilities of keys that were skipped.
void fill_zero(float* probabilities, Index key_count) noexcept;

}  // namespace lookback::kernels
