#pragma once

// Activations of rows. silu(x) = x·σ(x) and gelu_tanh(x) = x·σ(2u), u = √(2/π)·(x + 0.044715·x³): with e = exp(−|z|) for the argument z,
// σ(z) = (z ≥ 0 ? 1 : e) / (1 + e), so that neither end overflows and small results keep their digits. The last elements go through a
// batch of their own, so an element's bits do not depend on its place.

#include "kernels/tile.hpp"

namespace lookback::kernels {

void silu_row(const float* input, Index count, float* output) noexcept;
void gelu_tanh_row(const float* input, Index count, float* output) noexcept;
void gelu_erf_row(const float* input, Index count, float* output) noexcept;

/// row = row · f'(input). With s = σ(x): silu' = s·(1 + x·(1 − s)); with s = σ(2u): gelu_tanh' = s·(1 + x·(1 − s)·2u'),
/// u' = √(2/π)·(1 + 3·0.044715·x²); gelu_erf' = Φ(x) + x·e^(−x²/2)/√(2π).
void silu_backward_row(const float* input, Index count, float* row) noexcept;
void gelu_tanh_backward_row(const float* input, Index count, float* row) noexcept;
void gelu_erf_backward_row(const float* input, Index count, float* row) noexcept;

/// row = row · factors.
void multiply_row(const float* factors, Index count, float* row) noexcept;

}  // namespace lookback::kernels
