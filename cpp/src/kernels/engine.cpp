#include "lookback/engine.hpp"

#include "kernels/simd.hpp"

namespace lookback {

bool fused_multiply_add() noexcept { return simd::rounds_once(); }

}  // namespace lookback
