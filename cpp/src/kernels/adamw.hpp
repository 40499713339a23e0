#pragma once

// Element by element; see lookback/adamw.hpp for the formula. Bytes: weights and moments in and out, gradients in and zeros out.

#include "kernels/tile.hpp"

namespace lookback::kernels {

/// What a step multiplies by, worked out once.
struct AdamWFactors {
  float gradient;             ///< gradients, before all else
  float first, first_rest;    ///< β₁ and 1 − β₁
  float second, second_rest;  ///< β₂ and 1 − β₂
  float kept;                 ///< 1 − rate · decay
  float rate;                 ///< rate / (1 − β₁ᵗ)
  float inverse_correction;   ///< 1 / (1 − β₂ᵗ)
  float epsilon;
};

void adamw_row(const AdamWFactors& factors, Index count, float* weights, float* gradients, float* first_moments,
               float* second_moments) noexcept;

/// Σ value², in four chains of batches and then lane by lane.
float sum_of_squares(const float* values, Index count) noexcept;

}  // namespace lookback::kernels
