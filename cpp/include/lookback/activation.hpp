#pragma once

#include "lookback/status.hpp"
#include "lookback/views.hpp"

namespace lookback {

enum class Activation : int {
  gelu_tanh = 0,  ///< x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))): GPT-2's (Hendrycks and Gimpel 2016, arXiv:1606.08415)
  gelu_erf = 1,   ///< x/2 · (1 + erf(x/√2)): the exact one
  silu = 2,       ///< x / (1 + e^−x) (Elfwing et al. 2017, arXiv:1702.03118)
};

/// output[i] = f(input[i]); they may be the same memory. Errors are below 3e-7 · |x|. NaN gives NaN.
Status activation_forward(Activation activation, const float* input, Index count, float* output) noexcept;

/// output[i] = f(gate[i]) · up[i]: the middle of SwiGLU and GEGLU (Shazeer 2020, arXiv:2002.05202). `output` may be `gate`.
Status gated_activation_forward(Activation activation, const float* gate, const float* up, Index count,
                                float* output) noexcept;

/// grad_input[i] = grad_output[i] · f'(input[i]); grad_input may be grad_output. Errors of f' are below 1e-6.
Status activation_backward(Activation activation, const float* input, const float* grad_output, Index count,
                           float* grad_input) noexcept;

/// grad_gate[i] = grad_output[i] · up[i] · f'(gate[i]), grad_up[i] = grad_output[i] · f(gate[i]). grad_gate may be grad_output.
Status gated_activation_backward(Activation activation, const float* gate, const float* up, const float* grad_output,
                                 Index count, float* grad_gate, float* grad_up) noexcept;

}  // namespace lookback
