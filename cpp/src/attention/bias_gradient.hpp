#pragma once

#include "attention/backward_workspace.hpp"

namespace lookback {

/// The gradient of a bias that is broadcast, from that of every score: summed over what was broadcast, in one order.
void sum_bias_gradients(const BackwardRun& run) noexcept;

}  // namespace lookback
