#include "kernels/adjust.hpp"
#include "score_panel.hpp"

namespace lookback::test {
namespace {

using kernels::panel_width;
using simd::lanes;

TEST(adjust, cap_scores_is_cap_times_tanh_at_every_length) {
  for (const Index key_count : tail_lengths(4)) {
    for (const float cap : {0.5F, 3.0F, 50.0F}) {
      ScorePanel panel(key_count, 1, 1);
      kernels::cap_scores(panel.scores(), key_count, cap);
      for (Index key = 0; key < key_count; ++key) {
        for (Index lane = 0; lane < panel_width; ++lane) {
          const double exact = cap * std::tanh(static_cast<double>(panel.before(key, lane)) / cap);
          ASSERT_NEAR(panel.at(key, lane), exact, 5 * 0x1p-23 * std::abs(exact)) << panel.before(key, lane);
        }
      }
      ASSERT_TRUE(panel.rest_is_untouched());
    }
  }
}

TEST(adjust, cap_scores_brings_infinities_to_the_cap_and_keeps_NaN) {
  ScorePanel panel(1, 0, 2);
  for (const auto& [score, expected] : {std::pair{infinity, 30.0F},
                                        {-infinity, -30.0F},
                                        {3e38F, 30.0F},
                                        {-1e4F, -30.0F},
                                        {0.0F, 0.0F},
                                        {not_a_number, not_a_number}}) {
    panel.plant(0, 1, score);
    kernels::cap_scores(panel.scores(), 1, 30.0F);
    EXPECT_TRUE(same_bits(panel.at(0, 1), expected)) << score << " became " << panel.at(0, 1);
  }
}

/// One call of add_bias with a bias buffer that ends with its last element.
void check_bias(Index key_count, Index lane_count, Index query_stride, Index key_stride) {
  ScorePanel panel(key_count, 2, 3);
  Random random(4);
  const Index last = (lane_count - 1) * query_stride + (key_count - 1) * key_stride;
  Unaligned bias(random.vector(key_count == 0 ? 1 : last + 1));
  kernels::add_bias(panel.scores(), key_count, bias.data(), query_stride, key_stride, lane_count);
  for (Index key = 0; key < key_count; ++key) {
    for (Index lane = 0; lane < panel_width; ++lane) {
      const float added = lane < lane_count ? panel.before(key, lane) + bias[lane * query_stride + key * key_stride]
                                            : panel.before(key, lane);
      ASSERT_TRUE(same_bits(panel.at(key, lane), added))
          << "key " << key << " of " << key_count << ", lane " << lane << " of " << lane_count << ", strides "
          << query_stride << ", " << key_stride;
    }
  }
  ASSERT_TRUE(panel.rest_is_untouched());
}

TEST(adjust, add_bias_is_a_plain_sum_for_every_length_and_number_of_rows) {
  for (const Index key_count : tail_lengths(lanes)) {
    for (Index lane_count = 1; lane_count <= panel_width; ++lane_count) check_bias(key_count, lane_count, key_count, 1);
  }
}

TEST(adjust, add_bias_broadcasts_through_strides) {
  for (const Index key_count : {Index{1}, lanes, 2 * lanes + 3, Index{61}}) {
    for (const Index lane_count : {Index{1}, lanes + 1, panel_width}) {
      check_bias(key_count, lane_count, 0, 1);
      check_bias(key_count, lane_count, 1, 0);
      check_bias(key_count, lane_count, 0, 0);
      check_bias(key_count, lane_count, key_count + 5, 1);
      check_bias(key_count, lane_count, 2, 2 * panel_width);
    }
  }
}

std::vector<std::int32_t> positions_around(std::int32_t first) {
  std::vector<std::int32_t> positions;
  for (Index lane = 0; lane < panel_width; ++lane) positions.push_back(first + static_cast<std::int32_t>(lane));
  return positions;
}

TEST(adjust, add_distance_penalty_subtracts_slope_times_distance) {
  for (const Index key_count : tail_lengths(4)) {
    for (const std::int32_t first : {-700, -3, 0, 260, 5000}) {
      ScorePanel panel(key_count, 1, 5);
      const std::vector<std::int32_t> positions = positions_around(first);
      kernels::add_distance_penalty(panel.scores(), key_count, 256, positions.data(), 0.25F);
      for (Index key = 0; key < key_count; ++key) {
        for (Index lane = 0; lane < panel_width; ++lane) {
          const double distance = std::abs(static_cast<double>(positions[lane]) - 256 - static_cast<double>(key));
          const double exact = panel.before(key, lane) - 0.25 * distance;
          ASSERT_NEAR(panel.at(key, lane), exact, 0x1p-23 * (4.0 + 0.25 * distance));
        }
      }
      ASSERT_TRUE(panel.rest_is_untouched());
    }
  }
}

TEST(adjust, add_distance_penalty_takes_the_farthest_positions) {
  for (const std::int32_t position : {INT32_MIN, INT32_MAX}) {
    ScorePanel panel(3, 0, 6);
    const std::vector<std::int32_t> positions(static_cast<std::size_t>(panel_width), position);
    kernels::add_distance_penalty(panel.scores(), 3, 512, positions.data(), 1.0F);
    for (Index lane = 0; lane < panel_width; ++lane) ASSERT_NEAR(panel.at(2, lane), -0x1p31, 1024.0);
  }
}

TEST(adjust, hide_outside_band_selects_whatever_the_scores_are) {
  constexpr float planted[] = {not_a_number, infinity, -infinity, 3e38F, 0.0F};
  for (const Index key_count : tail_lengths(4)) {
    ScorePanel panel(key_count, 1, 7);
    for (Index key = 0; key < key_count; ++key) panel.plant(key, key % panel_width, planted[key % 5]);
    std::vector<std::int32_t> from;
    std::vector<std::int32_t> to;
    for (Index lane = 0; lane < panel_width; ++lane) {
      from.push_back(256 + static_cast<std::int32_t>(lane / 2));
      // The first lane sees nothing: its interval is empty.
      to.push_back(lane == 0 ? 0 : 256 + static_cast<std::int32_t>(key_count - 1 - lane));
    }
    kernels::hide_outside_band(panel.scores(), key_count, 256, from.data(), to.data());
    for (Index key = 0; key < key_count; ++key) {
      for (Index lane = 0; lane < panel_width; ++lane) {
        const bool shown = from[lane] <= 256 + key && 256 + key < to[lane];
        ASSERT_TRUE(same_bits(panel.at(key, lane), shown ? panel.before(key, lane) : -infinity));
      }
    }
    ASSERT_TRUE(panel.rest_is_untouched());
  }
}

TEST(adjust, hide_masked_selects_whatever_the_scores_are) {
  constexpr float planted[] = {not_a_number, infinity, -infinity, 3e38F, 0.0F};
  for (const Index key_count : tail_lengths(4)) {
    ScorePanel panel(key_count, 2, 8);
    Random random(9);
    for (Index key = 0; key < key_count; ++key) panel.plant(key, key % panel_width, planted[key % 5]);
    const Index stride = key_count + 2;
    std::vector<std::uint8_t> visible(static_cast<std::size_t>((panel_width - 1) * stride + key_count));
    for (auto& byte : visible) byte = random.chance(50) ? 1 : 0;
    kernels::hide_masked(panel.scores(), key_count, visible.data(), stride);
    for (Index key = 0; key < key_count; ++key) {
      for (Index lane = 0; lane < panel_width; ++lane) {
        const bool shown = visible[lane * stride + key] != 0;
        ASSERT_TRUE(same_bits(panel.at(key, lane), shown ? panel.before(key, lane) : -infinity));
      }
    }
    ASSERT_TRUE(panel.rest_is_untouched());
  }
}

}  // namespace
}  // namespace lookback::test
