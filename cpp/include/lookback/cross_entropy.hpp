#pragma once

#include <cstdint>

#include "lookback/status.hpp"
#include "lookback/views.hpp"

namespace lookback {

/// loss = −ln softmax(logits)[target], in nats, of every row; logits are capped first, capped = softcap · tanh(logit / softcap), where
/// softcap > 0. The gradient of gradient_scale · Σ loss by the logits before the cap is
///   gradient_scale · (softmax(capped) − one_hot(target)) · (1 − (capped / softcap)²)
struct CrossEntropyCall {
  float* logits = nullptr;                ///< [rows, vocabulary]; the gradient takes their place, or the capped logits
  const std::int32_t* targets = nullptr;  ///< [rows], 0 … vocabulary − 1; −1 = not counted: loss and gradient 0
  Index rows = 0;
  Index vocabulary = 0;
  float softcap = 0.0F;
  bool gradient = false;
  float gradient_scale = 1.0F;
  double* losses = nullptr;  ///< [rows]
};

/// token_out_of_range for a target that is neither −1 nor in the vocabulary: nothing has been written.
Status cross_entropy(const CrossEntropyCall& call) noexcept;

}  // namespace lookback
