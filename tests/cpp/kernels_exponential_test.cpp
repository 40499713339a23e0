#include "kernels/exponential.hpp"
#include "support.hpp"

namespace lookback::test {
namespace {

using simd::lanes;

float exponential(float x) {
  const kernels::Exponential function(kernels::exponential_coefficients());
  float result[lanes];
  simd::store(result, function(simd::splat(x)));
  for (Index lane = 1; lane < lanes; ++lane) EXPECT_TRUE(same_bits(result[lane], result[0]));
  return result[0];
}

TEST(exponential, is_exactly_1_at_0) {
  EXPECT_EQ(bits_of(exponential(0.0F)), bits_of(1.0F));
  EXPECT_EQ(bits_of(exponential(-0.0F)), bits_of(1.0F));
}

TEST(exponential, is_exactly_0_from_minus_127_ln_2_on_and_at_minus_infinity) {
  const auto limit = static_cast<float>(-127.0 * std::log(2.0));
  for (const float x : {std::nextafter(limit, -infinity), -89.0F, -103.9F, -1e4F, -3.4e38F, -infinity}) {
    EXPECT_EQ(bits_of(exponential(x)), 0U) << x;
  }
}

TEST(exponential, of_NaN_is_NaN_and_touches_no_other_lane) {
  const kernels::Exponential function(kernels::exponential_coefficients());
  for (Index odd = 0; odd < lanes; ++odd) {
    std::vector<float> x(static_cast<std::size_t>(lanes), -1.0F);
    x[odd] = not_a_number;
    float result[lanes];
    simd::store(result, function(simd::load(x.data())));
    for (Index lane = 0; lane < lanes; ++lane) {
      EXPECT_TRUE(same_bits(result[lane], lane == odd ? not_a_number : exponential(-1.0F)));
    }
  }
}

TEST(exponential, stays_within_its_stated_error_over_the_whole_range) {
  double worst_absolute = 0.0;
  // Some 64 000 floats from −0 down to −89, of all magnitudes from subnormal on.
  for (std::uint32_t bits = 0x80000000U; bits < 0xc2b20000U; bits += 997 * 17) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    const double exact = std::exp(static_cast<double>(x));
    const double error = std::abs(static_cast<double>(exponential(x)) - exact);
    worst_absolute = std::max(worst_absolute, error);
    // Below 2⁻¹²⁶ the result is 0; that is all the error there.
    ASSERT_LE(error, exact * (2e-7 - 7.4e-8 * static_cast<double>(x)) + (exact < 0x1.01p-126 ? exact : 0.0)) << x;
  }
  EXPECT_LE(worst_absolute, 1.5e-7);
}

TEST(exponential, falls_from_1_to_0_and_never_rises) {
  float previous = 1.0F;
  for (int step = 1; step < 9000; ++step) {
    const float value = exponential(-0.01F * static_cast<float>(step));
    ASSERT_LE(value, previous);
    ASSERT_GE(value, 0.0F);
    previous = value;
  }
}

}  // namespace
}  // namespace lookback::test
