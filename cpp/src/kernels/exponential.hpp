#pragma once

// e^x for x ≤ 0, about 17 instructions. y = x · log₂e = n + r with n whole and |r| ≤ ½; 2^r is a polynomial of degree 5 with
// constant term exactly 1 (Lawson-weighted minimax of the relative error on [−½, ½]: 9.2e-8), so e^0 is exactly 1. n is read from
// the low bits of y + 1.5·2²³ and becomes the exponent by a shift. y ≤ −127 and −∞ give exactly 0; NaN gives NaN. The roundings
// of y and of log₂e make the relative error up to 2e-7 + |x| · 7.4e-8: in absolute terms never above 1.5e-7.

#include "kernels/simd.hpp"

namespace lookback::kernels {

/// The coefficients live in memory: V8 rebuilds literal constants at each use inside a loop, and only loads them when it must
/// believe that they may differ.
struct ExponentialCoefficients {
  float log2_e = 1.44269504F;
  float lowest = -127.0F;
  float round = 12582912.0F;  // 1.5 · 2²³
  float c5 = 0.0013264756F;
  float c4 = 0.00967152331F;
  float c3 = 0.0555073377F;
  float c2 = 0.240222419F;
  float c1 = 0.693146978F;
  float one = 1.0F;
};

/// Coefficients in a place that the optimiser cannot see through.
[[nodiscard]] const ExponentialCoefficients* exponential_coefficients() noexcept;

/// Coefficients in registers, for the length of a loop.
struct Exponential {
  simd::Batch log2_e, lowest, round, c5, c4, c3, c2, c1, one;

  explicit Exponential(const ExponentialCoefficients* c) noexcept
      : log2_e(simd::load_splat(&c->log2_e)),
        lowest(simd::load_splat(&c->lowest)),
        round(simd::load_splat(&c->round)),
        c5(simd::load_splat(&c->c5)),
        c4(simd::load_splat(&c->c4)),
        c3(simd::load_splat(&c->c3)),
        c2(simd::load_splat(&c->c2)),
        c1(simd::load_splat(&c->c1)),
        one(simd::load_splat(&c->one)) {}

  /// What stands between the two halves of the calculation: r, and y + 1.5·2²³.
  struct Reduced {
    simd::Batch rest, shifted;
  };

  [[nodiscard]] Reduced reduce(simd::Batch x) const noexcept {
    const simd::Batch y = simd::max_keeping(x * log2_e, lowest);
    const simd::Batch shifted = y + round;
    return {y - (shifted - round), shifted};
  }

  [[nodiscard]] simd::Batch raise(Reduced reduced) const noexcept {
    const simd::Batch r = reduced.rest;
    simd::Batch p = simd::madd(c5, r, c4);
    p = simd::madd(p, r, c3);
    p = simd::madd(p, r, c2);
    p = simd::madd(p, r, c1);
    p = simd::madd(p, r, one);
    const simd::BatchInt exponent = (simd::bits_of(reduced.shifted) << 23) + simd::bits_of(one);
    return p * simd::float_of_bits(exponent);
  }

  [[nodiscard]] simd::Batch operator()(simd::Batch x) const noexcept { return raise(reduce(x)); }
};

}  // namespace lookback::kernels
