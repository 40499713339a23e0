#pragma once

// From scores and the products dO·Vᵀ to weights and the gradients of scores: blocks [key][tile_queries], a panel of queries at a time,
// queries in lanes. Scores are −∞ where not visible. About 25 instructions per batch, 42 with dropout.

#include "kernels/dropout.hpp"
#include "kernels/tile.hpp"

namespace lookback::kernels {

/// In place: weights = e^(scores − log_sum_exp), gradients = weights · (gradients − delta), lanes of `log_sum_exp` and `delta` [panel_width].
/// Where a weight is 0 the gradient is 0, NaN and ±∞ included. A lane whose log_sum_exp is +∞ becomes 0.
void softmax_gradients(float* scores, float* gradients, Index key_count, const float* log_sum_exp,
                       const float* delta) noexcept;

/// The same with dropout: gradients = weights · (gradients · m − delta), then weights = weights · m, where m is 0 for a dropped key and
/// 1 / (1 − p) for another.
void softmax_gradients_dropped(float* scores, float* gradients, Index key_count, Index first_key,
                               const float* log_sum_exp, const float* delta, const DropoutLanes& lanes,
                               DropoutRule rule) noexcept;

/// gradients *= 1 − (capped / cap)², the derivative of cap · tanh(score / cap); 0 stays 0, whatever `capped` holds.
void uncap_gradients(float* gradients, const float* capped, Index key_count, float cap) noexcept;

}  // namespace lookback::kernels
