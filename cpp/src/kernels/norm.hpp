#pragma once

// One row of a norm. Sums run in four chains of batches (element i belongs to chain i / lanes mod 4), which are added pairwise, then
// lane by lane, then the elements beyond the last whole batch: an order that depends on the width alone.
// Bytes: the row two or three times from L1. The inverse root is a float64 division, rounded once.

#include "kernels/tile.hpp"

namespace lookback::kernels {

/// What turns x into (x − mean) · factor.
struct NormStatistics {
  float mean;
  float factor;
};

/// Layer norm: the variance is summed from deviations, so that a large mean costs no digits.
NormStatistics layer_norm_statistics(const float* row, Index width, float epsilon) noexcept;
/// RMS norm: the mean is 0.
NormStatistics rms_norm_statistics(const float* row, Index width, float epsilon) noexcept;

/// output = (row − mean) · factor · weight + bias; weight and bias may be absent, row and output the same.
void normalise_row(const float* row, Index width, NormStatistics statistics, const float* weight, const float* bias,
                   float* output) noexcept;

/// What a row's gradients go to. Weight and bias are those of many rows; they may be absent.
struct NormGradients {
  float* input;
  bool add_to_input;
  float* weight;
  float* bias;
};

/// With x̂ = (row − mean) · factor and g = grad_output · weight: input = factor · (g − mean(g) − x̂ · mean(g · x̂)), mean(g) if `centred`
/// only; weight += grad_output · x̂; bias += grad_output. `input` may be grad_output.
void normalise_row_backward(const float* row, const float* grad_output, Index width, NormStatistics statistics,
                            bool centred, const float* weight, const NormGradients& gradients) noexcept;

/// row += addend.
void add_row(const float* addend, Index count, float* row) noexcept;

}  // namespace lookback::kernels
