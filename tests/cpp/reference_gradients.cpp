#include <algorithm>
#include <cmath>

#include "reference.hpp"

namespace lookback::reference {
namespace {

/// Elements with the sum of their absolute terms beside them.
struct Sums {
  std::vector<double> value, absolute;

  explicit Sums(Index count) : value(static_cast<std::size_t>(count)), absolute(static_cast<std::size_t>(count)) {}
  void add(Index at, double term, double magnitude) {
    value[at] += term;
    absolute[at] += magnitude;
  }
  [[nodiscard]] double magnitude() const {
    return absolute.empty() ? 0.0 : *std::max_element(absolute.begin(), absolute.end());
  }
};

struct AllSums {
  Sums queries, keys, values, bias, sinks;

  AllSums(const AttentionShape& shape, Index bias_size)
      : queries(shape.batch * shape.heads * shape.query_length * shape.head_dim),
        keys(shape.batch * shape.kv_heads * shape.key_length * shape.head_dim),
        values(shape.batch * shape.kv_heads * shape.key_length * shape.value_dim),
        bias(bias_size),
        sinks(shape.heads) {}
};

const float* row_of(const ConstView& view, Index batch, Index head, Index row) {
  return view.data + batch * view.batch_stride + head * view.head_stride + row * view.row_stride;
}

/// What one query row adds to all gradients, by the chain rule from the end: output, weights, scores.
void add_row(const AttentionCall& call, const Attention& forward, const float* grad_output, Index batch, Index head,
             Index query, AllSums& sums) {
  const AttentionShape& shape = call.shape;
  const Index row = (batch * shape.heads + head) * shape.query_length + query;
  const Index kv_head = head * shape.kv_heads / shape.heads;
  const double scale = call.scores.scale;
  const double cap = call.scores.softcap;
  std::vector<double> grad_weight(static_cast<std::size_t>(shape.key_length));
  std::vector<double> grad_weight_magnitude(static_cast<std::size_t>(shape.key_length));
  double mean = 0.0;
  double mean_magnitude = 0.0;
  for (Index j = 0; j < shape.key_length; ++j) {
    if (forward.visible[row * shape.key_length + j] == 0) continue;
    const double weight = forward.stages[3][row * shape.key_length + j];
    const double factor = dropout_factor(call, batch, head, query, j);
    const float* v = row_of(call.inputs.values, batch, kv_head, j);
    for (Index c = 0; c < shape.value_dim; ++c) {
      const double g = grad_output[row * shape.value_dim + c];
      grad_weight[j] += factor * g * v[c];
      grad_weight_magnitude[j] += factor * std::fabs(g * v[c]);
      sums.values.add(((batch * shape.kv_heads + kv_head) * shape.key_length + j) * shape.value_dim + c,
                      factor * weight * g, std::fabs(factor * weight * g));
    }
    mean += weight * grad_weight[j];
    mean_magnitude += weight * grad_weight_magnitude[j];
  }
  for (Index j = 0; j < shape.key_length; ++j) {
    if (forward.visible[row * shape.key_length + j] == 0) continue;
    const double weight = forward.stages[3][row * shape.key_length + j];
    const double magnitude = weight * (grad_weight_magnitude[j] + mean_magnitude);
    double grad_score = weight * (grad_weight[j] - mean);
    if (const BiasView& bias = call.scores.bias; bias.data != nullptr && !sums.bias.value.empty()) {
      sums.bias.add(
          batch * bias.batch_stride + head * bias.head_stride + query * bias.query_stride + j * bias.key_stride,
          grad_score, magnitude);
    }
    if (cap > 0.0) {
      const double share = forward.stages[1][row * shape.key_length + j] / cap;
      grad_score *= 1.0 - share * share;
    }
    const float* q = row_of(call.inputs.queries, batch, head, query);
    const float* k = row_of(call.inputs.keys, batch, kv_head, j);
    for (Index d = 0; d < shape.head_dim; ++d) {
      sums.queries.add(row * shape.head_dim + d, scale * grad_score * k[d], std::fabs(scale * k[d]) * magnitude);
      sums.keys.add(((batch * shape.kv_heads + kv_head) * shape.key_length + j) * shape.head_dim + d,
                    scale * grad_score * q[d], std::fabs(scale * q[d]) * magnitude);
    }
  }
  if (call.scores.sinks == nullptr || std::isinf(forward.log_sum_exp[row])) return;
  const double share = std::exp(call.scores.sinks[head] - forward.log_sum_exp[row]);
  sums.sinks.add(head, -share * mean, share * mean_magnitude);
}

}  // namespace

AttentionGradients attention_gradients(const AttentionCall& call, const std::vector<float>& grad_output,
                                       Index bias_size) {
  const AttentionShape& shape = call.shape;
  const Attention forward = attention(call);
  AllSums sums(shape, bias_size);
  for (Index b = 0; b < shape.batch; ++b) {
    for (Index h = 0; h < shape.heads; ++h) {
      for (Index i = 0; i < shape.query_length; ++i) add_row(call, forward, grad_output.data(), b, h, i, sums);
    }
  }
  if (call.scores.sinks == nullptr) sums.sinks.value.clear();
  return {sums.queries.value,    sums.keys.value,          sums.values.value,     sums.bias.value,
          sums.sinks.value,      sums.queries.magnitude(), sums.keys.magnitude(), sums.values.magnitude(),
          sums.bias.magnitude(), sums.sinks.magnitude()};
}

}  // namespace lookback::reference
