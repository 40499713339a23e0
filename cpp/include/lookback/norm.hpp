#pragma once

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

}  // namespace lookback
