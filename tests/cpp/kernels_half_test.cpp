#include "kernels/half.hpp"
#include "support.hpp"

namespace lookback::test {
namespace {

using Narrow = void (*)(const float*, Index, std::uint16_t*);

std::uint16_t narrowed(float value, Narrow narrow) {
  std::uint16_t result = 0;
  narrow(&value, 1, &result);
  return result;
}

std::uint16_t to_f16(float value) { return narrowed(value, kernels::narrow_to_f16); }
std::uint16_t to_bf16(float value) { return narrowed(value, kernels::narrow_to_bf16); }

constexpr int all_patterns = 1 << 16;

std::vector<std::uint16_t> patterns() {
  std::vector<std::uint16_t> result(all_patterns);
  for (int bits = 0; bits < all_patterns; ++bits)
    result[static_cast<std::size_t>(bits)] = static_cast<std::uint16_t>(bits);
  return result;
}

/// By arithmetic on the fields, as IEEE 754 defines them.
float half_value(int bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return fraction == 0 ? sign * infinity : not_a_number;
  return sign * std::ldexp(static_cast<float>(exponent == 0 ? fraction : 1024 + fraction), std::max(exponent, 1) - 25);
}

float bfloat_value(int bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

TEST(half, every_f16_pattern_is_widened_exactly) {
  const std::vector<std::uint16_t> source = patterns();
  Unaligned values(all_patterns, untouched);
  kernels::widen_f16(source.data(), all_patterns, values.data());
  for (int bits = 0; bits < all_patterns; ++bits) {
    ASSERT_TRUE(same_bits(values[bits], half_value(bits))) << std::hex << bits << ": " << values[bits];
  }
}

TEST(half, every_bf16_pattern_is_widened_exactly) {
  const std::vector<std::uint16_t> source = patterns();
  Unaligned values(all_patterns, untouched);
  kernels::widen_bf16(source.data(), all_patterns, values.data());
  for (int bits = 0; bits < all_patterns; ++bits) {
    ASSERT_TRUE(same_bits(values[bits], bfloat_value(bits))) << std::hex << bits << ": " << values[bits];
  }
}

TEST(half, widening_reads_and_writes_its_count_and_no_more) {
  for (const Index count : tail_lengths(simd::lanes)) {
    std::vector<std::uint16_t> source(static_cast<std::size_t>(count), 0x3f80);
    Unaligned values(count + 1, untouched);
    kernels::widen_bf16(source.data(), count, values.data());
    for (Index i = 0; i < count; ++i) ASSERT_EQ(values[i], 1.0F);
    ASSERT_TRUE(same_bits(values[count], untouched));
    kernels::widen_f16(source.data(), count, values.data());
    for (Index i = 0; i < count; ++i) ASSERT_EQ(values[i], 1.875F);
    ASSERT_TRUE(same_bits(values[count], untouched));
  }
}

TEST(half, narrowing_is_the_inverse_of_widening) {
  for (int bits = 0; bits < all_patterns; ++bits) {
    const float half = half_value(bits);
    if (std::isnan(half))
      ASSERT_TRUE(std::isnan(half_value(to_f16(half))));
    else
      ASSERT_EQ(to_f16(half), bits);
    const float bfloat = bfloat_value(bits);
    if (std::isnan(bfloat))
      ASSERT_TRUE(std::isnan(bfloat_value(to_bf16(bfloat))));
    else
      ASSERT_EQ(to_bf16(bfloat), bits);
  }
}

/// Between two neighbours the nearer one, in the middle the even one.
void check_between(int lower, float low, float high, std::uint16_t (*narrow)(float)) {
  const double middle = (static_cast<double>(low) + high) / 2;
  const auto exact = static_cast<float>(middle);
  const int even = lower % 2 == 0 ? lower : lower + 1;
  ASSERT_EQ(narrow(exact), even) << low << " and " << high;
  ASSERT_EQ(narrow(std::nextafter(exact, 0.0F)), lower) << low << " and " << high;
  ASSERT_EQ(narrow(std::nextafter(exact, infinity)), lower + 1) << low << " and " << high;
}

TEST(half, narrowing_rounds_to_the_nearest_and_ties_to_even) {
  for (int bits = 0; bits < 0x7bff; ++bits) {
    check_between(bits, half_value(bits), half_value(bits + 1), to_f16);
  }
  for (int bits = 0; bits < 0x7f7f; ++bits) {
    check_between(bits, bfloat_value(bits), bfloat_value(bits + 1), to_bf16);
  }
}

TEST(half, what_is_too_large_becomes_infinite) {
  EXPECT_EQ(to_f16(65504.0F), 0x7bff);
  EXPECT_EQ(to_f16(65519.0F), 0x7bff);
  EXPECT_EQ(to_f16(65520.0F), 0x7c00);
  EXPECT_EQ(to_f16(-3e38F), 0xfc00);
  EXPECT_EQ(to_bf16(3.4e38F), 0x7f80);
  EXPECT_EQ(to_bf16(-std::numeric_limits<float>::max()), 0xff80);
  EXPECT_EQ(to_f16(infinity), 0x7c00);
  EXPECT_EQ(to_bf16(-infinity), 0xff80);
}

}  // namespace
}  // namespace lookback::test
