#pragma once

// A row of logits, [count], any count from 1 on. Sums run in batches, lane by lane; the elements beyond the last whole batch go through one of
// their own, filled with −∞. Bytes: the row three times from the first or second level of the cache.

#include "kernels/tile.hpp"

namespace lookback::kernels {

/// max and Σ e^(logit − max). A NaN is passed over by the maximum and makes the sum NaN.
struct LogitSums {
  float maximum;
  float sum;
};
LogitSums sum_logits(const float* logits, Index count) noexcept;

/// logit = scale · e^(logit − max) / sum · (1 − (logit · inverse_cap)²); inverse_cap 0 = no cap.
void logits_to_gradient(float* logits, Index count, LogitSums sums, float scale, float inverse_cap) noexcept;

}  // namespace lookback::kernels
