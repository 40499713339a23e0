#pragma once

#include <cstddef>
#include <cstdint>

#include "lookback/status.hpp"
#include "lookback/views.hpp"

namespace lookback {

/// AdamW (Loshchilov and Hutter 2017, arXiv:1711.05101): decay apart from the gradient, moments corrected for their beginning at 0.
struct AdamWOptions {
  std::int64_t step = 1;  ///< 1, 2, …
  float learning_rate = 1e-3F;
  float beta1 = 0.9F;   ///< in [0, 1)
  float beta2 = 0.95F;  ///< in [0, 1)
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;
};

/// invalid_argument.
Status validate_adamw(const AdamWOptions& options) noexcept;

/// One step of `count` weights: with g = gradient · gradient_factor
///   m = β₁·m + (1 − β₁)·g        v = β₂·v + (1 − β₂)·g²
///   w = w − rate·weight_decay·w − rate·(m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)
/// The gradients are 0 afterwards.
struct AdamWCall {
  AdamWOptions options;
  float gradient_factor = 1.0F;
  float* weights = nullptr;
  float* gradients = nullptr;
  float* first_moments = nullptr;
  float* second_moments = nullptr;
  Index count = 0;
};
Status adamw_step(const AdamWCall& call) noexcept;

/// Scratch bytes of gradient_norm.
[[nodiscard]] double gradient_norm_workspace_bytes(Index count) noexcept;

/// √(Σ gradient²): float32 within blocks of 4096, float64 between them, in order. NaN or ∞ where a gradient, or its square, is.
Status gradient_norm(const float* gradients, Index count, double& norm, void* workspace,
                     std::size_t workspace_bytes) noexcept;

/// By how much to multiply gradients of norm `norm` so that it is at most `max_norm` (Pascanu et al. 2013, arXiv:1211.5063); 1 if
/// max_norm is 0.
[[nodiscard]] float clipping_factor(double norm, float max_norm) noexcept;

}  // namespace lookback
