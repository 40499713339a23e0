// R3 to R10: which keys a query sees, and that the others have no influence at all.

#include <algorithm>

#include "problem.hpp"

namespace lookback::test {
namespace {

using kernels::block_keys;
using kernels::tile_queries;

AttentionShape two_by_two(Index queries, Index keys) {
  AttentionShape shape;
  shape.batch = 2;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.query_length = queries;
  shape.key_length = keys;
  shape.head_dim = 5;
  shape.value_dim = 4;
  return shape;
}

/// Every combination of the six things that hide keys, one bit each.
enum Hider : unsigned { causal = 1, window = 2, lengths = 4, key_mask = 8, mask = 16, bias = 32, all_hiders = 63 };

Problem hiding(unsigned hiders, const AttentionShape& shape, std::uint32_t seed) {
  Problem problem = Problem::random(shape, seed);
  Random random(seed + 1000);
  problem.rules.causal = (hiders & causal) != 0;
  problem.offsets = {static_cast<std::int32_t>(shape.key_length - shape.query_length), 3};
  if ((hiders & window) != 0) {
    problem.rules.window_left = static_cast<std::int32_t>(shape.key_length / 2);
    problem.rules.window_right = 9;
  }
  if ((hiders & lengths) != 0) problem.key_lengths = {static_cast<std::int32_t>(shape.key_length - 2), 11};
  if ((hiders & key_mask) != 0) {
    for (Index at = 0; at < shape.batch * shape.key_length; ++at) problem.key_mask.push_back(random.chance(80) ? 1 : 0);
  }
  if ((hiders & mask) != 0) {
    problem.mask.resize(shape, {}, 0);
    for (auto& bit : problem.mask.data) bit = random.chance(80) ? 1 : 0;
  }
  if ((hiders & bias) != 0) {
    problem.bias.resize(shape, {}, 0.0F);
    for (auto& value : problem.bias.data) value = random.chance(20) ? -infinity : 0.0F;
  }
  return problem;
}

TEST(attention_visibility, R8_any_subset_of_rules_gives_the_bits_of_one_dense_mask) {
  for (unsigned hiders = 0; hiders <= all_hiders; ++hiders) {
    for (const auto& [queries, keys] : {std::pair{Index{7}, Index{13}}, {tile_queries + 3, block_keys + 7}}) {
      const Problem problem = hiding(hiders, two_by_two(queries, keys), hiders);
      const Result result = run(problem);
      ASSERT_TRUE(matches(problem, result)) << "subset " << hiders;
      Problem dense = with_one_dense_mask(problem);
      ASSERT_TRUE(same_result(result, run(dense))) << "subset " << hiders;
      const auto weights = run_all_weights(problem, WeightsKind::softmax).weights;
      ASSERT_TRUE(all_same_bits(weights, run_all_weights(dense, WeightsKind::softmax).weights)) << "subset " << hiders;
    }
  }
}

TEST(attention_visibility, R8_a_causal_mask_as_bytes_as_bias_and_as_an_option_is_the_same) {
  for (const Index length : {Index{4}, tile_queries - 1, tile_queries, tile_queries + 1, block_keys + 1}) {
    AttentionShape shape = two_by_two(length, length);
    Problem option = Problem::random(shape, 1);
    option.rules.causal = true;
    Problem bytes = Problem::random(shape, 1);
    bytes.mask.resize(shape, {true, true, false, false}, 1);
    Problem additive = Problem::random(shape, 1);
    additive.bias.resize(shape, {true, true, false, false}, 0.0F);
    for (Index i = 0; i < length; ++i) {
      for (Index j = i + 1; j < length; ++j) {
        bytes.mask.data[i * length + j] = 0;
        additive.bias.data[i * length + j] = -infinity;
      }
    }
    const Result result = run(option);
    EXPECT_TRUE(same_result(result, run(bytes))) << length;
    EXPECT_TRUE(same_result(result, run(additive))) << length;
  }
}

TEST(attention_visibility, R3_a_mask_broadcasts_over_any_dimension) {
  const AttentionShape shape = two_by_two(tile_queries + 1, block_keys + 3);
  for (unsigned bits = 0; bits < 16; ++bits) {
    const Broadcast broadcast{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
    Random random(bits);
    Problem masked = Problem::random(shape, 2);
    masked.mask.resize(shape, broadcast, 0);
    for (auto& bit : masked.mask.data) bit = random.chance(60) ? 1 : 0;
    ASSERT_TRUE(matches(masked, run(masked))) << "mask " << bits;
    Problem biased = Problem::random(shape, 2);
    biased.bias.resize(shape, broadcast, 0.0F);
    for (auto& value : biased.bias.data) value = random.chance(20) ? -infinity : random.within(2.0F);
    ASSERT_TRUE(matches(biased, run(biased))) << "bias " << bits;
  }
}

TEST(attention_visibility, R3_any_byte_but_0_lets_a_query_attend) {
  Problem ones = Problem::random(two_by_two(5, 20), 3);
  ones.mask.resize(ones.shape, {}, 0);
  for (std::size_t at = 0; at < ones.mask.data.size(); at += 3) ones.mask.data[at] = 1;
  Problem others = ones;
  for (auto& bit : others.mask.data) bit = bit == 0 ? 0 : 0xfe;
  EXPECT_TRUE(same_result(run(ones), run(others)));
}

TEST(attention_visibility, R4_a_very_negative_bias_on_every_key_gives_uniform_weights) {
  Problem problem = Problem::random(two_by_two(6, block_keys + 44), 4);
  problem.bias.resize(problem.shape, {true, true, true, true}, -3.4e38F);
  const Result result = run_all_weights(problem, WeightsKind::softmax);
  for (const float weight : result.weights)
    ASSERT_NEAR(weight, 1.0 / static_cast<double>(problem.shape.key_length), 1e-9);
  EXPECT_TRUE(matches(problem, result));
}

TEST(attention_visibility, R6_offsets_from_far_left_to_far_right) {
  const AttentionShape shape = two_by_two(tile_queries + 2, block_keys + 6);
  const auto edge = static_cast<std::int32_t>(block_keys);
  for (const std::int32_t offset :
       {INT32_MIN, -100000, -30, -25, -1, 0, 1, edge - 30, edge - 1, edge, 100000, INT32_MAX}) {
    Problem problem = Problem::random(shape, 5);
    problem.rules.causal = true;
    problem.offsets = {offset, 0};
    ASSERT_TRUE(matches(problem, run(problem))) << "causal, offset " << offset;
    problem.rules.window_left = 10;
    ASSERT_TRUE(matches(problem, run(problem))) << "causal and window, offset " << offset;
    problem.rules.causal = false;
    problem.rules.window_right = unlimited - 1;
    ASSERT_TRUE(matches(problem, run(problem))) << "window, offset " << offset;
  }
}

TEST(attention_visibility, R6_the_farthest_offsets_are_harmless_with_alibi) {
  for (const std::int32_t offset : {INT32_MIN, INT32_MAX}) {
    Problem problem = Problem::random(two_by_two(5, block_keys + 6), 6);
    problem.offsets = {offset, 0};
    problem.slopes = {0.5F, 0.25F};
    for (const float value : run(problem).output) ASSERT_LE(std::abs(value), 1.0F + 1e-6F);
  }
}

TEST(attention_visibility, R7_windows_of_every_small_size) {
  const AttentionShape shape = two_by_two(tile_queries + 4, tile_queries + 4);
  for (const std::int32_t left : {0, 1, 2, 7, 23, 24, 25, unlimited}) {
    for (const std::int32_t right : {0, 1, 3, 24, unlimited}) {
      Problem problem = Problem::random(shape, 7);
      problem.rules.window_left = left;
      problem.rules.window_right = right;
      ASSERT_TRUE(matches(problem, run(problem))) << "left " << left << ", right " << right;
    }
  }
}

TEST(attention_visibility, R5_key_lengths_and_key_masks_agree) {
  const AttentionShape shape = two_by_two(9, block_keys + 10);
  const auto edge = static_cast<std::int32_t>(block_keys);
  for (const std::int32_t length : {0, 1, 5, edge - 1, edge, edge + 1, edge + 10, edge + 1000}) {
    Problem lengthy = Problem::random(shape, 8);
    lengthy.key_lengths = {length, 40};
    Problem masked = Problem::random(shape, 8);
    for (Index at = 0; at < 2 * shape.key_length; ++at) {
      masked.key_mask.push_back(at % shape.key_length < lengthy.key_lengths[at / shape.key_length] ? 1 : 0);
    }
    const Result result = run(lengthy);
    ASSERT_TRUE(matches(lengthy, result)) << length;
    ASSERT_TRUE(same_result(result, run(masked))) << length;
  }
}

TEST(attention_visibility, R9_a_row_that_sees_no_key_is_zero) {
  const AttentionShape shape = two_by_two(tile_queries + 3, block_keys + 3);
  for (unsigned how = 0; how < 4; ++how) {
    Problem problem = Problem::random(shape, 9);
    const auto row_bits = static_cast<std::size_t>(shape.key_length);
    if (how == 0) problem.mask.resize(shape, {true, true, false, false}, 1);
    if (how == 1) problem.bias.resize(shape, {true, true, false, false}, 0.5F);
    for (const Index blind : {Index{0}, Index{3}, tile_queries - 1, tile_queries + 2}) {
      if (how == 0) std::fill_n(problem.mask.data.begin() + blind * shape.key_length, row_bits, std::uint8_t{0});
      if (how == 1) std::fill_n(problem.bias.data.begin() + blind * shape.key_length, row_bits, -infinity);
    }
    if (how == 2) {
      problem.rules.causal = true;
      problem.offsets = {-2, -1000};
    }
    if (how == 3) problem.key_lengths = {0, -5};
    for (const bool sink : {false, true}) {
      if (sink) problem.sinks = {2.0F, -3.0F};
      const reference::Attention expected = reference::attention(problem.call());
      const Result result = run_all_weights(problem, WeightsKind::softmax);
      ASSERT_TRUE(matches(expected, problem, result)) << how;
      int blind_rows = 0;
      for (Index row = 0; row < problem.rows(); ++row) {
        const auto seen = expected.visible.begin() + row * shape.key_length;
        if (std::find(seen, seen + shape.key_length, 1) != seen + shape.key_length) continue;
        ++blind_rows;
        for (Index c = 0; c < shape.value_dim; ++c) ASSERT_EQ(bits_of(result.output[row * shape.value_dim + c]), 0U);
        for (Index j = 0; j < shape.key_length; ++j) ASSERT_EQ(bits_of(result.weights[row * shape.key_length + j]), 0U);
        const float sink_of_head = sink ? problem.sinks[row / shape.query_length % 2] : -infinity;
        ASSERT_EQ(result.log_sum_exp[row], sink_of_head);
      }
      ASSERT_GT(blind_rows, 0);
    }
  }
}

TEST(attention_visibility, R10_what_hidden_places_of_K_V_and_bias_hold_changes_no_bit) {
  for (unsigned hiders = 1; hiders <= all_hiders; ++hiders) {
    Problem problem = hiding(hiders, two_by_two(tile_queries + 3, block_keys + 7), hiders);
    if (problem.bias.data.empty()) problem.bias.resize(problem.shape, {}, 0.25F);
    const Problem poisoned = with_poison_where_hidden(problem);
    const Result result = run_all_weights(problem, WeightsKind::softmax);
    const Result unharmed = run_all_weights(poisoned, WeightsKind::softmax);
    ASSERT_TRUE(same_result(result, unharmed)) << "subset " << hiders;
    ASSERT_TRUE(all_same_bits(result.weights, unharmed.weights)) << "subset " << hiders;
    for (const float value : unharmed.output) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST(attention_visibility, R10_a_non_finite_value_reaches_the_rows_that_see_it_and_only_those) {
  const Index length = block_keys + 20;
  AttentionShape shape = two_by_two(length, length);
  shape.batch = 1;
  for (const Index planted : {Index{0}, Index{1}, Index{30}, block_keys - 1, block_keys, length - 1}) {
    for (const bool in_keys : {false, true}) {
      for (const float poison : {not_a_number, infinity}) {
        Problem problem = Problem::random(shape, 10);
        problem.rules.causal = true;
        problem.sinks = {0.5F, 0.25F};
        const Result clean = run(problem);
        (in_keys ? problem.key(0, 0, planted, 2) : problem.value(0, 0, planted, 2)) = poison;
        const Result result = run(problem);
        for (Index row = 0; row < problem.rows(); ++row) {
          const bool sees = row % length >= planted;
          for (Index c = 0; c < shape.value_dim; ++c) {
            const float value = result.output[row * shape.value_dim + c];
            const bool reached = sees && (in_keys || c == 2);
            // A key of ±∞ may also give a score of −∞, which is a weight of 0.
            if (reached && !(in_keys && poison == infinity)) {
              ASSERT_FALSE(std::isfinite(value)) << "row " << row << ", planted " << planted;
            } else if (!sees || !in_keys) {
              ASSERT_TRUE(same_bits(value, clean.output[row * shape.value_dim + c]))
                  << "row " << row << ", planted " << planted;
            }
          }
        }
      }
    }
  }
}

TEST(attention_visibility, R10_a_NaN_in_a_query_stays_in_its_row) {
  Problem problem = Problem::random(two_by_two(tile_queries + 5, 40), 11);
  const Result clean = run(problem);
  problem.queries[3 * 5 + 1] = not_a_number;
  const Result result = run(problem);
  for (Index at = 0; at < static_cast<Index>(result.output.size()); ++at) {
    if (at / 4 == 3) {
      ASSERT_TRUE(std::isnan(result.output[at]));
    } else {
      ASSERT_TRUE(same_bits(result.output[at], clean.output[at]));
    }
  }
}

TEST(attention_visibility, R10_a_visible_NaN_in_the_bias_reaches_its_row_only) {
  Problem problem = Problem::random(two_by_two(tile_queries + 5, block_keys + 2), 12);
  problem.bias.resize(problem.shape, {}, 0.125F);
  const Result clean = run(problem);
  problem.bias.data[7 * problem.shape.key_length + block_keys] = not_a_number;
  const Result result = run(problem);
  for (Index at = 0; at < static_cast<Index>(result.output.size()); ++at) {
    ASSERT_TRUE(at / 4 == 7 ? std::isnan(result.output[at]) : same_bits(result.output[at], clean.output[at]));
  }
}

}  // namespace
}  // namespace lookback::test
