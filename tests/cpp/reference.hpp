#pragma once

// Plain float64 references, written from the formulas. They share the input structs with the library and no code.

#include <cstdint>
#include <vector>

#include "lookback/attention.hpp"

namespace lookback::reference {

struct Attention {
  std::vector<double> output;         ///< [B, H, Lq, Dv]
  std::vector<double> log_sum_exp;    ///< [B, H, Lq]
  std::vector<double> stages[4];      ///< [B, H, Lq, Lk] each, numbered as WeightsKind
  std::vector<std::uint8_t> visible;  ///< [B, H, Lq, Lk]
  /// [B, H, Lq]: the largest |scale|·Σ|q·k| over visible keys, plus what bias and ALiBi add to it: a float32 score is
  /// rounded at that magnitude.
  std::vector<double> magnitude;
  std::vector<double> largest_value;  ///< [B, H, Lq]: the largest |v| of visible keys
};

/// Whether query i of batch row b and head h may attend to key j; sees masks only, never a score.
bool is_visible(const AttentionCall& call, Index batch, Index head, Index query, Index key);

/// What dropout multiplies the weight of key j by: 0 or 1 / (1 − p), from the definition in kernels/dropout.hpp.
double dropout_factor(const AttentionCall& call, Index batch, Index head, Index query, Index key);

Attention attention(const AttentionCall& call);

struct AttentionGradients {
  std::vector<double> queries;  ///< [B, H, Lq, D]
  std::vector<double> keys;     ///< [B, Hkv, Lk, D]
  std::vector<double> values;   ///< [B, Hkv, Lk, Dv]
  std::vector<double> bias;     ///< placed as the bias, `bias_size` elements
  std::vector<double> sinks;    ///< [H]; empty without sinks
  /// The largest sum of absolute terms that makes up an element of each of these: what rounding errors are relative to.
  double query_magnitude = 0, key_magnitude = 0, value_magnitude = 0, bias_magnitude = 0, sink_magnitude = 0;
};

/// `grad_output` is [B, H, Lq, Dv].
AttentionGradients attention_gradients(const AttentionCall& call, const std::vector<float>& grad_output,
                                       Index bias_size);

/// input [rows, inputs] · weightᵀ [outputs, inputs] + bias (empty = none).
std::vector<double> linear(const std::vector<double>& input, const std::vector<float>& weight,
                           const std::vector<float>& bias, Index rows, Index inputs, Index outputs);

}  // namespace lookback::reference
