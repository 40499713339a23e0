#include "kernels/softmax.hpp"
#include "score_panel.hpp"

namespace lookback::test {
namespace {

using kernels::panel_width;

using Lanes = std::vector<float>;
Lanes all_lanes(float value) { return Lanes(static_cast<std::size_t>(panel_width), value); }

/// A row state of one panel, and a step of the streaming softmax over it.
struct Rows {
  Lanes maximum = all_lanes(-infinity);
  Lanes sum = all_lanes(0.0F);
  Lanes correction = all_lanes(untouched);

  void take(ScorePanel& panel) {
    Lanes block_maximum = all_lanes(-infinity);
    kernels::join_maximum(panel.scores(), panel.key_count(), block_maximum.data());
    kernels::exponentiate(panel.scores(), panel.key_count(), block_maximum.data(), maximum.data(), sum.data(),
                          correction.data());
  }
};

TEST(softmax, join_maximum_is_the_maximum_and_passes_over_NaN) {
  for (const Index key_count : tail_lengths(16)) {
    ScorePanel panel(key_count, 1, 1);
    for (Index key = 0; key < key_count; key += 3) panel.plant(key, key % panel_width, not_a_number);
    Lanes maximum = all_lanes(-3.0F);
    kernels::join_maximum(panel.scores(), key_count, maximum.data());
    for (Index lane = 0; lane < panel_width; ++lane) {
      float expected = -3.0F;
      for (Index key = 0; key < key_count; ++key) {
        if (panel.before(key, lane) > expected) expected = panel.before(key, lane);
      }
      ASSERT_EQ(maximum[lane], expected) << key_count << " keys, lane " << lane;
    }
    ASSERT_TRUE(panel.rest_is_untouched());
  }
}

TEST(softmax, exponentiate_is_the_plain_softmax_at_every_length) {
  for (const Index key_count : tail_lengths(4)) {
    ScorePanel panel(key_count, 1, 2);
    Rows rows;
    rows.take(panel);
    for (Index lane = 0; lane < panel_width; ++lane) {
      double sum = 0.0;
      float maximum = -infinity;
      for (Index key = 0; key < key_count; ++key) maximum = std::max(maximum, panel.before(key, lane));
      for (Index key = 0; key < key_count; ++key) {
        const double exact = std::exp(static_cast<double>(panel.before(key, lane)) - maximum);
        ASSERT_NEAR(panel.at(key, lane), exact, 1e-6 * exact);
        sum += exact;
      }
      ASSERT_EQ(rows.maximum[lane], maximum);
      ASSERT_NEAR(rows.sum[lane], sum, 1e-6 * sum);
    }
    ASSERT_TRUE(panel.rest_is_untouched());
  }
}

TEST(softmax, earlier_sums_are_corrected_when_the_maximum_rises_and_kept_bit_for_bit_when_it_does_not) {
  Rows rows;
  ScorePanel first(5, 0, 3);
  rows.take(first);
  const Rows before = rows;
  ScorePanel second(7, 0, 4);
  second.plant(3, 0, 50.0F);                                            // lane 0: the maximum rises
  for (Index key = 0; key < 7; ++key) second.plant(key, 1, -infinity);  // lane 1: nothing to see
  rows.take(second);
  EXPECT_EQ(rows.maximum[0], 50.0F);
  const double exact = std::exp(static_cast<double>(before.maximum[0]) - 50.0);
  EXPECT_NEAR(rows.correction[0], exact, 5e-6 * exact);
  EXPECT_NEAR(rows.sum[0], 1.0, 1e-6);
  EXPECT_EQ(rows.maximum[1], before.maximum[1]);
  EXPECT_TRUE(same_bits(rows.correction[1], 1.0F));
  EXPECT_TRUE(same_bits(rows.sum[1], before.sum[1]));
}

TEST(softmax, R9_a_row_that_has_seen_nothing_keeps_maximum_minus_infinity_and_gets_probabilities_0) {
  ScorePanel panel(9, 2, 5);
  for (Index key = 0; key < 9; ++key) panel.plant(key, 2, -infinity);
  Rows rows;
  rows.take(panel);
  for (Index key = 0; key < 9; ++key) EXPECT_EQ(bits_of(panel.at(key, 2)), 0U);
  EXPECT_EQ(rows.maximum[2], -infinity);
  EXPECT_EQ(rows.sum[2], 0.0F);
  EXPECT_GE(rows.sum[3], 1.0F) << "its neighbours are not concerned";
}

TEST(softmax, scores_of_minus_infinity_get_exactly_0_and_the_largest_exactly_1) {
  ScorePanel panel(6, 1, 6);
  panel.plant(2, 4, -infinity);
  panel.plant(5, 4, 100.0F);
  Rows rows;
  rows.take(panel);
  EXPECT_EQ(bits_of(panel.at(2, 4)), 0U);
  EXPECT_EQ(bits_of(panel.at(5, 4)), bits_of(1.0F));
}

TEST(softmax, R10_a_visible_NaN_or_infinity_reaches_its_own_row_only) {
  for (const float planted : {not_a_number, infinity}) {
    ScorePanel clean(8, 1, 7);
    ScorePanel panel(8, 1, 7);
    panel.plant(3, 5, planted);
    Rows rows;
    Rows clean_rows;
    rows.take(panel);
    clean_rows.take(clean);
    EXPECT_TRUE(std::isnan(rows.sum[5]));
    EXPECT_TRUE(std::isnan(panel.at(3, 5)));
    for (Index lane = 0; lane < panel_width; ++lane) {
      if (lane == 5) continue;
      ASSERT_TRUE(same_bits(rows.sum[lane], clean_rows.sum[lane]));
      for (Index key = 0; key < 8; ++key) ASSERT_TRUE(same_bits(panel.at(key, lane), clean.at(key, lane)));
    }
  }
}

TEST(softmax, R22_scores_where_a_naive_exponential_overflows_are_harmless) {
  for (const float shift : {1e4F, -1e4F, 3e38F}) {
    ScorePanel panel(4, 0, 8);
    for (Index key = 0; key < 4; ++key) panel.plant(key, 0, shift);
    Rows rows;
    rows.take(panel);
    EXPECT_EQ(rows.sum[0], 4.0F);
    for (Index key = 0; key < 4; ++key) EXPECT_EQ(panel.at(key, 0), 1.0F);
  }
}

TEST(softmax, fill_zero_writes_its_panel_and_nothing_else) {
  for (const Index key_count : tail_lengths(4)) {
    ScorePanel panel(key_count, 1, 9);
    kernels::fill_zero(panel.scores(), key_count);
    for (Index key = 0; key < key_count; ++key) {
      for (Index lane = 0; lane < panel_width; ++lane) ASSERT_EQ(bits_of(panel.at(key, lane)), 0U);
    }
    ASSERT_TRUE(panel.rest_is_untouched());
  }
}

}  // namespace
}  // namespace lookback::test
