#include "kernels/quantize.hpp"
#include "support.hpp"

namespace lookback::test {
namespace {

std::vector<float> through_int8(Unaligned& row, float& scale) {
  std::vector<std::int8_t> quantized(static_cast<std::size_t>(row.size()));
  scale = kernels::quantize_row(row.data(), row.size(), quantized.data());
  Unaligned back(row.size(), untouched);
  kernels::dequantize_row(quantized.data(), row.size(), scale, back.data());
  return back.values();
}

TEST(quantize, R16_an_element_is_off_by_at_most_half_of_the_scale_at_every_length_and_magnitude) {
  Random random(1);
  for (const Index count : tail_lengths(simd::lanes)) {
    for (const float bound : {1.0F, 1e-30F, 1e-36F, 3e38F}) {
      Unaligned row(random.vector(count, bound));
      if (count > 1) row[count / 2] = 0.0F;
      float scale = 0.0F;
      const std::vector<float> back = through_int8(row, scale);
      float largest = 0.0F;
      for (Index i = 0; i < count; ++i) largest = std::max(largest, std::abs(row[i]));
      ASSERT_NEAR(scale, largest / 127.0F, 1e-6F * largest);
      for (Index i = 0; i < count; ++i)
        ASSERT_NEAR(back[i], row[i], 0.50002F * scale) << i << " of " << count << ", up to " << bound;
    }
  }
}

TEST(quantize, R16_a_row_of_zeros_comes_back_as_zeros) {
  Unaligned row(9);
  float scale = 1.0F;
  for (const float value : through_int8(row, scale)) EXPECT_EQ(value, 0.0F);
  EXPECT_EQ(scale, 0.0F);
}

TEST(quantize, R10_a_row_with_a_non_finite_element_comes_back_as_NaN) {
  Random random(2);
  for (const float planted : {not_a_number, infinity, -infinity}) {
    for (Index at = 0; at < 9; ++at) {
      Unaligned row(random.vector(9));
      row[at] = planted;
      float scale = 0.0F;
      for (const float value : through_int8(row, scale)) ASSERT_TRUE(std::isnan(value)) << planted << " at " << at;
    }
  }
}

}  // namespace
}  // namespace lookback::test
