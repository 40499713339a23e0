#pragma once

#include <cstddef>

#include "lookback/status.hpp"
#include "lookback/views.hpp"

namespace lookback {

enum class NormKind : int {
  layer_norm =
      0,  ///< (x − mean) / √(variance + ε) (Ba et al. 2016, arXiv:1607.06450); the variance is that of the row, not an estimate
  rms_norm = 1,  ///< x / √(mean of x² + ε) (Zhang and Sennrich 2019, arXiv:1910.07467)
};

/// output = normalised row · weight + bias, for rows of `width` elements; input and output may be the same memory.
struct NormCall {
  NormKind kind = NormKind::layer_norm;
  float epsilon = 1e-5F;
  Index width = 0;
  const float* weight = nullptr;  ///< [width], nullptr = all 1
  const float* bias = nullptr;    ///< [width], nullptr = none
  ConstView input;                ///< [batch, heads, length, width]
  MutableView output;
  Index batch = 1;
  Index heads = 1;
  Index length = 0;
};

/// The bits of a row depend on its values, the width and the options only. |error| ≤ 2e-6 of the row's largest |normalised value · weight|.
Status norm_forward(const NormCall& call) noexcept;

/// Gradients through norm_forward. With x̂ the normalised row and g = grad_output · weight
///   grad_input = (g − mean(g) − x̂ · mean(g · x̂)) / √(variance + ε), without mean(g) for an RMS norm
struct NormBackwardCall {
  NormCall forward;                ///< as in the forward call; its bias and output are not looked at
  ConstView grad_output;           ///< [batch, heads, length, width]
  MutableView grad_input;          ///< may be grad_output
  bool add_to_grad_input = false;  ///< instead of writing it
  float* grad_weight = nullptr;    ///< [width], + Σ rows of grad_output · x̂: added to; nullptr = not asked
  float* grad_bias = nullptr;      ///< [width], + Σ rows of grad_output: added to; nullptr = not asked
};

/// Scratch bytes: two rows for every 32 rows [heads, width], if grad_weight or grad_bias is asked for.
[[nodiscard]] double norm_backward_workspace_bytes(const NormBackwardCall& call) noexcept;

/// Sums over rows are made of parts of 32 · heads of them, in order. `workspace` is aligned to 64.
Status norm_backward(const NormBackwardCall& call, void* workspace, std::size_t workspace_bytes) noexcept;

}  // namespace lookback
