#include "kernels/half.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lookback::kernels {
namespace {

constexpr std::uint32_t magnitude_bits = 0x7fffffffU;
constexpr std::uint32_t infinity_bits = 0x7f800000U;

[[gnu::always_inline]] inline std::uint16_t sign_of(std::uint32_t bits) noexcept {
  return static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
}

/// bits / 2^shift, rounded to the nearest, ties to even.
[[gnu::always_inline]] inline std::uint32_t shift_rounded(std::uint32_t bits, int shift) noexcept {
  return (bits + (1U << (shift - 1)) - 1U + (bits >> shift & 1U)) >> shift;
}

[[gnu::always_inline]] inline std::uint16_t to_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & magnitude_bits;
  std::uint32_t half = 0;
  if (magnitude > infinity_bits) {
    half = 0x7e00U | (magnitude >> 13 & 0x3ffU);
  } else if (magnitude >= 0x38800000U) {  // 2⁻¹⁴: normal; the carry of rounding moves the exponent, up to ∞
    half = std::min(shift_rounded(magnitude - (112U << 23), 13), 0x7c00U);
  } else {  // multiples of 2⁻²⁴; the largest rounds up to the least normal number
    half = static_cast<std::uint32_t>(std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24F));
  }
  return static_cast<std::uint16_t>(sign_of(bits) | half);
}

[[gnu::always_inline]] inline std::uint16_t to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & magnitude_bits;
  const std::uint32_t upper = magnitude > infinity_bits ? 0x7fc0U | magnitude >> 16 : shift_rounded(magnitude, 16);
  return static_cast<std::uint16_t>(sign_of(bits) | upper);
}

/// Batch by batch; the rest through a batch of its own.
template <typename Load>
[[gnu::always_inline]] inline void widen(const std::uint16_t* source, Index count, float* target, Load load) noexcept {
  Index i = 0;
#pragma clang loop unroll(disable)
  for (; i + simd::lanes <= count; i += simd::lanes) simd::store(target + i, load(source + i));
  if (i == count) return;
  std::uint16_t rest[simd::lanes] = {};
  float values[simd::lanes];
  std::copy_n(source + i, count - i, rest);
  simd::store(values, load(rest));
  std::copy_n(values, count - i, target + i);
}

}  // namespace

[[gnu::noinline]] void widen_f16(const std::uint16_t* source, Index count, float* target) noexcept {
  const simd::HalfConstants* constants = half_constants();
  widen(source, count, target, [=](const std::uint16_t* at) { return simd::load_f16(at, constants); });
}

[[gnu::noinline]] void widen_bf16(const std::uint16_t* source, Index count, float* target) noexcept {
  widen(source, count, target, simd::load_bf16);
}

[[gnu::noinline]] void narrow_to_f16(const float* source, Index count, std::uint16_t* target) noexcept {
#pragma clang loop unroll(disable) vectorize(disable)
  for (Index i = 0; i < count; ++i) target[i] = to_f16(source[i]);
}

[[gnu::noinline]] void narrow_to_bf16(const float* source, Index count, std::uint16_t* target) noexcept {
#pragma clang loop unroll(disable) vectorize(disable)
  for (Index i = 0; i < count; ++i) target[i] = to_bf16(source[i]);
}

}  // namespace lookback::kernels
