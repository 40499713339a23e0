#include "reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace lookback::reference {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

std::int64_t position_of(const AttentionCall& call, Index batch, Index query) {
  const std::int32_t* offsets = call.visibility.query_offsets;
  return static_cast<std::int64_t>(query) + (offsets != nullptr ? offsets[batch] : 0);
}

Index kv_head_of(const AttentionShape& shape, Index head) { return head * shape.kv_heads / shape.heads; }

double bias_at(const AttentionCall& call, Index batch, Index head, Index query, Index key) {
  const BiasView& bias = call.scores.bias;
  if (bias.data == nullptr) return 0.0;
  return bias
      .data[batch * bias.batch_stride + head * bias.head_stride + query * bias.query_stride + key * bias.key_stride];
}

double distance_penalty(const AttentionCall& call, Index batch, Index head, Index query, Index key) {
  if (call.scores.alibi_slopes == nullptr) return 0.0;
  const std::int64_t distance = position_of(call, batch, query) - key;
  return static_cast<double>(call.scores.alibi_slopes[head]) * static_cast<double>(std::llabs(distance));
}

/// One row of one head on its way through the formula.
struct Row {
  const AttentionCall& call;
  Index batch, head, query;

  void fill(Attention& result) const {
    const AttentionShape& shape = call.shape;
    const Index at = (batch * shape.heads + head) * shape.query_length + query;
    const float* q = call.inputs.queries.data + batch * call.inputs.queries.batch_stride +
                     head * call.inputs.queries.head_stride + query * call.inputs.queries.row_stride;
    double* stage[4];
    for (int kind = 0; kind < 4; ++kind) stage[kind] = result.stages[kind].data() + at * shape.key_length;
    double maximum = call.scores.sinks != nullptr ? static_cast<double>(call.scores.sinks[head]) : minus_infinity;
    for (Index j = 0; j < shape.key_length; ++j) {
      const ConstView& keys = call.inputs.keys;
      const float* k =
          keys.data + batch * keys.batch_stride + kv_head_of(shape, head) * keys.head_stride + j * keys.row_stride;
      double dot = 0.0;
      double absolute = 0.0;
      for (Index d = 0; d < shape.head_dim; ++d) {
        dot += static_cast<double>(q[d]) * k[d];
        absolute += std::fabs(static_cast<double>(q[d]) * k[d]);
      }
      const double cap = call.scores.softcap;
      stage[0][j] = call.scores.scale * dot;
      stage[1][j] = cap > 0.0 ? cap * std::tanh(stage[0][j] / cap) : stage[0][j];
      const bool visible = is_visible(call, batch, head, query, j);
      result.visible[at * shape.key_length + j] = visible ? 1 : 0;
      stage[2][j] = minus_infinity;
      if (!visible) continue;
      const double bias = bias_at(call, batch, head, query, j);
      const double penalty = distance_penalty(call, batch, head, query, j);
      stage[2][j] = stage[1][j] + bias - penalty;
      maximum = std::max(maximum, stage[2][j]);
      const double magnitude =
          std::fabs(static_cast<double>(call.scores.scale)) * absolute + std::fabs(bias) + std::fabs(penalty);
      result.magnitude[at] = std::max(result.magnitude[at], magnitude);
    }
    finish(result, at, stage, maximum);
  }

  void finish(Attention& result, Index at, double* const* stage, double maximum) const {
    const AttentionShape& shape = call.shape;
    double sum =
        call.scores.sinks != nullptr && maximum > minus_infinity ? std::exp(call.scores.sinks[head] - maximum) : 0.0;
    for (Index j = 0; j < shape.key_length; ++j) {
      stage[3][j] = stage[2][j] == minus_infinity ? 0.0 : std::exp(stage[2][j] - maximum);
      sum += stage[3][j];
    }
    result.log_sum_exp[at] = sum > 0.0 ? maximum + std::log(sum) : minus_infinity;
    for (Index j = 0; j < shape.key_length; ++j) {
      if (result.visible[at * shape.key_length + j] == 0) continue;
      stage[3][j] = sum > 0.0 ? stage[3][j] / sum : 0.0;
      const ConstView& values = call.inputs.values;
      const float* v = values.data + batch * values.batch_stride + kv_head_of(shape, head) * values.head_stride +
                       j * values.row_stride;
      const double factor = dropout_factor(call, batch, head, query, j);
      for (Index c = 0; c < shape.value_dim; ++c) {
        result.output[at * shape.value_dim + c] += factor * stage[3][j] * v[c];
        result.largest_value[at] = std::max(result.largest_value[at], factor * std::fabs(static_cast<double>(v[c])));
      }
    }
  }
};

std::uint64_t finalise(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

double dropout_factor(const AttentionCall& call, Index batch, Index head, Index query, Index key) {
  const double p = call.scores.dropout.p;
  if (p == 0.0) return 1.0;
  std::uint64_t row = finalise(call.scores.dropout.seed);
  for (const std::int64_t word : {static_cast<std::int64_t>(batch), static_cast<std::int64_t>(head),
                                  std::clamp<std::int64_t>(position_of(call, batch, query), INT32_MIN, INT32_MAX)}) {
    row = finalise((row + 0x9e3779b97f4a7c15ULL) ^ static_cast<std::uint64_t>(word));
  }
  const auto low = static_cast<std::uint32_t>(row);
  const auto high = static_cast<std::uint32_t>(row >> 32U);
  std::uint32_t x = low + static_cast<std::uint32_t>(key) * 0x9e3779b9U;
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= high;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return static_cast<double>(x) < p * 4294967296.0 ? 0.0 : 1.0 / (1.0 - p);
}

bool is_visible(const AttentionCall& call, Index batch, Index head, Index query, Index key) {
  const Visibility& rules = call.visibility;
  const std::int64_t position = position_of(call, batch, query);
  if (rules.causal && key > position) return false;
  if (rules.window_left != unlimited && key < position - rules.window_left) return false;
  if (rules.window_right != unlimited && key > position + rules.window_right) return false;
  if (rules.key_lengths != nullptr && key >= rules.key_lengths[batch]) return false;
  if (rules.key_mask != nullptr && rules.key_mask[batch * call.shape.key_length + key] == 0) return false;
  const MaskView& mask = rules.mask;
  if (mask.data != nullptr && mask.data[batch * mask.batch_stride + head * mask.head_stride +
                                        query * mask.query_stride + key * mask.key_stride] == 0) {
    return false;
  }
  return bias_at(call, batch, head, query, key) != minus_infinity;
}

Attention attention(const AttentionCall& call) {
  const AttentionShape& shape = call.shape;
  const auto rows = static_cast<std::size_t>(shape.batch * shape.heads * shape.query_length);
  const std::size_t cells = rows * static_cast<std::size_t>(shape.key_length);
  Attention result;
  result.output.assign(rows * static_cast<std::size_t>(shape.value_dim), 0.0);
  result.log_sum_exp.assign(rows, minus_infinity);
  for (auto& stage : result.stages) stage.assign(cells, 0.0);
  result.visible.assign(cells, 0);
  result.magnitude.assign(rows, 0.0);
  result.largest_value.assign(rows, 0.0);
  for (Index b = 0; b < shape.batch; ++b) {
    for (Index h = 0; h < shape.heads; ++h) {
      for (Index i = 0; i < shape.query_length; ++i) Row{call, b, h, i}.fill(result);
    }
  }
  return result;
}

std::vector<double> linear(const std::vector<double>& input, const std::vector<float>& weight,
                           const std::vector<float>& bias, Index rows, Index inputs, Index outputs) {
  std::vector<double> output(static_cast<std::size_t>(rows * outputs));
  for (Index row = 0; row < rows; ++row) {
    for (Index o = 0; o < outputs; ++o) {
      double sum = bias.empty() ? 0.0 : static_cast<double>(bias[o]);
      for (Index i = 0; i < inputs; ++i) sum += input[row * inputs + i] * weight[o * inputs + i];
      output[row * outputs + o] = sum;
    }
  }
  return output;
}

}  // namespace lookback::reference
