#include "attention/totals.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lookback {

using kernels::tile_queries;

void begin_totals(Workspace& work) noexcept {
  if (work.totals == nullptr) return;
  std::fill_n(work.totals, tile_queries * work.accumulator_stride, 0.0F);
  std::fill_n(work.total_state->maximum, tile_queries, -std::numeric_limits<float>::infinity());
  std::fill_n(work.total_state->sum, tile_queries, 0.0F);
}

void join_totals(const TileRows& rows, Workspace& work) noexcept {
  if (work.totals == nullptr) return;
  for (Index row = 0; row < rows.count; ++row) {
    const float maximum = work.state->maximum[row];
    float& old_maximum = work.total_state->maximum[row];
    // Equal ones may both be infinite.
    const float correction = old_maximum == maximum ? 1.0F : std::exp(old_maximum - maximum);
    old_maximum = maximum;
    float& sum = work.total_state->sum[row];
    sum = sum * correction + work.state->sum[row];
    work.state->sum[row] = 0.0F;
    float* group = work.accumulators + row * work.accumulator_stride;
    float* total = work.totals + row * work.accumulator_stride;
    for (Index column = 0; column < work.accumulator_stride; ++column) {
      total[column] = total[column] * correction + group[column];
      group[column] = 0.0F;
    }
  }
}

void finish_totals(const TileRows& rows, Workspace& work) noexcept {
  if (work.totals == nullptr) return;
  join_totals(rows, work);
  std::copy_n(work.total_state->sum, rows.count, work.state->sum);
  std::copy_n(work.totals, rows.count * work.accumulator_stride, work.accumulators);
}

}  // namespace lookback
