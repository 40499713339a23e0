#include "attention/bias_gradient.hpp"

#include <algorithm>

#include "lookback/parallel.hpp"

namespace lookback {
namespace {

/// How often one dimension of the bias is there, and how many places of the scores each of them serves.
struct Extent {
  Index own;
  Index served;

  Extent(Index stride, Index extent) noexcept : own(stride == 0 ? 1 : extent), served(stride == 0 ? extent : 1) {}
};

}  // namespace

void sum_bias_gradients(const BackwardRun& run) noexcept {
  const AttentionShape& shape = run.call.forward.shape;
  const BiasView& bias = run.call.forward.scores.bias;
  const Extent batch(bias.batch_stride, shape.batch);
  const Extent head(bias.head_stride, shape.heads);
  const Extent query(bias.query_stride, shape.query_length);
  const Extent key(bias.key_stride, shape.key_length);
  const Index rows = batch.own * head.own * query.own;
  const double places = static_cast<double>(shape.batch) * static_cast<double>(shape.heads) *
                        static_cast<double>(shape.query_length) * static_cast<double>(shape.key_length);
  parallel_for(0, rows, places, [&](Index row, Index thread) noexcept {
    const Index own_query = row % query.own;
    const Index own_head = row / query.own % head.own;
    const Index own_batch = row / query.own / head.own;
    double* sum = run.workspaces[thread].bias_row;
    std::fill_n(sum, key.own, 0.0);
    for (Index b = own_batch; b < own_batch + batch.served; ++b) {
      for (Index h = own_head; h < own_head + head.served; ++h) {
        for (Index i = own_query; i < own_query + query.served; ++i) {
          const float* source = run.bias_gradients.row(b, h, i);
          for (Index j = 0; j < shape.key_length; ++j) sum[key.own > 1 ? j : 0] += source[j];
        }
      }
    }
    float* target = run.call.grad_bias + own_batch * bias.batch_stride + own_head * bias.head_stride +
                    own_query * bias.query_stride;
    for (Index j = 0; j < key.own; ++j) target[j * bias.key_stride] = static_cast<float>(sum[j]);
  });
}

}  // namespace lookback
