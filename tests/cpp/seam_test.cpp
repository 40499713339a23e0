// kernels/simd.hpp: what the code above the seam relies on, in every build alike.

#include "kernels/simd.hpp"
#include "lookback/engine.hpp"
#include "support.hpp"

namespace lookback::test {
namespace {

using simd::Batch;
using simd::lanes;

std::vector<float> values_of(Batch batch) {
  std::vector<float> values(static_cast<std::size_t>(lanes));
  simd::store(values.data(), batch);
  return values;
}

TEST(seam, madd_rounds_as_often_as_rounds_once_says) {
  Random random(1);
  const bool fused = simd::rounds_once();
  EXPECT_EQ(fused_multiply_add(), fused);
  int distinguishing = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const std::vector<float> a = random.vector(lanes);
    const std::vector<float> b = random.vector(lanes);
    std::vector<float> c = random.vector(lanes);
    // Half of the time the sum cancels, where one rounding and two differ most.
    if (trial % 2 == 0) {
      for (Index lane = 0; lane < lanes; ++lane) c[lane] = -(a[lane] * b[lane]);
    }
    const std::vector<float> sum =
        values_of(simd::madd(simd::load(a.data()), simd::load(b.data()), simd::load(c.data())));
    for (Index lane = 0; lane < lanes; ++lane) {
      const float once = std::fma(a[lane], b[lane], c[lane]);
      const float product = a[lane] * b[lane];
      const float twice = product + c[lane];
      ASSERT_TRUE(same_bits(sum[lane], fused ? once : twice)) << a[lane] << " * " << b[lane] << " + " << c[lane];
      distinguishing += once != twice ? 1 : 0;
    }
  }
  EXPECT_GT(distinguishing, 100) << "the numbers must tell the two apart";
}

TEST(seam, max_keeping_passes_over_NaN_in_its_second_operand_and_keeps_it_in_the_first) {
  const auto larger = [](float kept, float other) {
    return values_of(simd::max_keeping(simd::splat(kept), simd::splat(other)))[0];
  };
  EXPECT_EQ(larger(1.0F, 2.0F), 2.0F);
  EXPECT_EQ(larger(2.0F, 1.0F), 2.0F);
  EXPECT_EQ(larger(-infinity, -5.0F), -5.0F);
  EXPECT_EQ(larger(3.0F, infinity), infinity);
  EXPECT_EQ(larger(1.0F, not_a_number), 1.0F);
  EXPECT_EQ(larger(-infinity, not_a_number), -infinity);
  EXPECT_TRUE(std::isnan(larger(not_a_number, 1.0F)));
  EXPECT_TRUE(same_bits(larger(-0.0F, 0.0F), -0.0F)) << "equal numbers: the kept one";
}

TEST(seam, max_keeping_works_lane_by_lane) {
  for (Index odd = 0; odd < lanes; ++odd) {
    std::vector<float> other(static_cast<std::size_t>(lanes), 4.0F);
    other[odd] = not_a_number;
    const std::vector<float> result = values_of(simd::max_keeping(simd::splat(2.0F), simd::load(other.data())));
    for (Index lane = 0; lane < lanes; ++lane) EXPECT_EQ(result[lane], lane == odd ? 2.0F : 4.0F);
  }
}

TEST(seam, any_nan_finds_one_in_every_lane_and_takes_infinities_for_numbers) {
  EXPECT_FALSE(simd::any_nan(simd::splat(infinity)));
  EXPECT_FALSE(simd::any_nan(simd::splat(-infinity)));
  for (Index lane = 0; lane < lanes; ++lane) {
    std::vector<float> values(static_cast<std::size_t>(lanes), 1.0F);
    values[lane] = not_a_number;
    EXPECT_TRUE(simd::any_nan(simd::load(values.data()))) << "lane " << lane;
  }
}

TEST(seam, transpose_exchanges_rows_and_columns) {
  Batch rows[lanes];
  for (Index r = 0; r < lanes; ++r) {
    std::vector<float> row(static_cast<std::size_t>(lanes));
    for (Index c = 0; c < lanes; ++c) row[c] = static_cast<float>(100 * r + c);
    rows[r] = simd::load(row.data());
  }
  simd::transpose(rows);
  for (Index r = 0; r < lanes; ++r) {
    const std::vector<float> row = values_of(rows[r]);
    for (Index c = 0; c < lanes; ++c) EXPECT_EQ(row[c], static_cast<float>(100 * c + r));
  }
}

TEST(seam, loads_and_stores_need_no_alignment) {
  Random random(2);
  Unaligned source(random.vector(lanes + 3));
  for (Index shift = 0; shift < 4; ++shift) {
    Unaligned target(lanes + 3, untouched);
    simd::store(target.data() + shift, simd::load(source.data() + shift));
    for (Index i = 0; i < target.size(); ++i) {
      const bool inside = i >= shift && i < shift + lanes;
      EXPECT_TRUE(same_bits(target[i], inside ? source[i] : untouched));
    }
    for (const float value : values_of(simd::load_splat(source.data() + shift))) EXPECT_EQ(value, source[shift]);
  }
}

TEST(seam, select_takes_whole_lanes_whatever_they_hold) {
  const Batch nothing = simd::splat(not_a_number);
  const Batch yes = simd::splat(1.0F);
  EXPECT_EQ(values_of(simd::select(yes == yes, yes, nothing)),
            std::vector<float>(static_cast<std::size_t>(lanes), 1.0F));
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(lanes));
  for (Index lane = 0; lane < lanes; ++lane) numbers[lane] = static_cast<std::int32_t>(lane);
  const simd::BatchInt lane_number = simd::BatchInt::load_unaligned(numbers.data());
  const std::vector<float> result = values_of(simd::select_int(lane_number < simd::BatchInt(2), yes, nothing));
  for (Index lane = 0; lane < lanes; ++lane) {
    EXPECT_TRUE(same_bits(result[lane], lane < 2 ? 1.0F : not_a_number)) << "lane " << lane;
  }
}

TEST(seam, bits_go_to_integers_and_back) {
  for (const float value : {0.0F, -0.0F, 1.0F, -3.5F, 1e-42F, infinity, -infinity}) {
    EXPECT_TRUE(same_bits(values_of(simd::float_of_bits(simd::bits_of(simd::splat(value))))[0], value));
  }
  EXPECT_EQ(values_of(simd::float_of_bits(simd::BatchInt(0x3f800000)))[0], 1.0F);
}

}  // namespace
}  // namespace lookback::test
