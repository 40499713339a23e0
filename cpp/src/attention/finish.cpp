#include "attention/finish.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/pack.hpp"

namespace lookback {

using namespace kernels;

namespace {

/// Lets the sink into the denominator: it has a logit and no value.
void join_sink(float sink, const TileRows& rows, Workspace& work, float* factor) noexcept {
  for (Index row = 0; row < rows.count; ++row) {
    const float old_maximum = work.state->maximum[row];
    const float maximum = std::max(old_maximum, sink);
    if (maximum == -std::numeric_limits<float>::infinity()) continue;
    factor[row] = std::exp(old_maximum - maximum);
    work.state->sum[row] = work.state->sum[row] * factor[row] + std::exp(sink - maximum);
    work.state->maximum[row] = maximum;
  }
}

}  // namespace

void finish_rows(const AttentionCall& call, const TileRows& rows, Workspace& work) noexcept {
  float factor[tile_queries];
  std::fill(factor, factor + tile_queries, 1.0F);
  if (call.scores.sinks != nullptr) join_sink(call.scores.sinks[rows.head], rows, work, factor);
  for (Index row = 0; row < rows.count; ++row) {
    const float sum = work.state->sum[row];
    const float inverse = sum == 0.0F ? 0.0F : factor[row] / sum;
    store_scaled_row(work.accumulators + row * work.accumulator_stride, call.shape.value_dim, inverse,
                     call.outputs.output.row(rows.batch, rows.head, rows.first_query + row));
    if (call.outputs.log_sum_exp == nullptr) continue;
    const Index at = (rows.batch * call.shape.heads + rows.head) * call.shape.query_length + rows.first_query + row;
    call.outputs.log_sum_exp[at] =
        static_cast<float>(static_cast<double>(work.state->maximum[row]) + std::log(static_cast<double>(sum)));
  }
}

}  // namespace lookback
