#pragma once

// Numbers of 16 bits: IEEE half precision (1 + 5 + 10 bits) and bfloat16 (1 + 8 + 7). Widening is exact for every number, ±∞ and NaN;
// narrowing rounds to the nearest, ties to even; what lies beyond the largest number becomes ±∞, NaN stays NaN.

#include <cstdint>

#include "kernels/tile.hpp"

namespace lookback::kernels {

/// Constants in a place that the optimiser cannot see through.
[[nodiscard]] inline const simd::HalfConstants* half_constants() noexcept {
  static constexpr simd::HalfConstants constants;
  return simd::opaque(&constants);
}

void widen_f16(const std::uint16_t* source, Index count, float* target) noexcept;
void widen_bf16(const std::uint16_t* source, Index count, float* target) noexcept;

void narrow_to_f16(const float* source, Index count, std::uint16_t* target) noexcept;
void narrow_to_bf16(const float* source, Index count, std::uint16_t* target) noexcept;

}  // namespace lookback::kernels
