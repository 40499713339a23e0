#pragma once

// Numbers of 16 bits: IEEE half precision (1 + 5 + 10 bits) and bfloat16 (1 + 8 + 7). Widening is exact for every number, ±∞ and NaN;
// narrowing rounds to the nearest, ties to even; what lies beyond the largest number becomes ±∞, NaN stays NaN.

#include <cstdint>

#include "kernels/tile.hpp"

namespace lookback::kernels {

void widen_f16(const std::uint16_t* source, Index count, float* target) noexcept;
void widen_bf16(const std::uint16_t* source, Index count, float* target) noexcept;

[[nodiscard]] std::uint16_t narrow_to_f16(float value) noexcept;
[[nodiscard]] std::uint16_t narrow_to_bf16(float value) noexcept;

}  // namespace lookback::kernels
