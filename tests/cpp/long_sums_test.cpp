// Sums over so many keys that they are made in groups of blocks: R22's bound, and the bits that R8, R10, R12 and R15 promise across
// the groups' ends.

#include <algorithm>

#include "attention/workspace.hpp"
#include "problem.hpp"

namespace lookback::test {
namespace {

constexpr Index group_keys = group_blocks * kernels::block_keys;

/// Few queries and many, which take different ways through the core.
constexpr Index query_counts[] = {1, 9};

Problem long_problem(Index queries, Index keys, std::uint32_t seed) {
  AttentionShape shape;
  shape.query_length = queries;
  shape.key_length = keys;
  shape.head_dim = 2;
  shape.value_dim = 2;
  return Problem::random(shape, seed);
}

TEST(long_sums, R22_holds_for_300000_values_of_one_sign) {
  for (const Index queries : query_counts) {
    Problem problem = long_problem(queries, 300'000, 1);
    // The worst case found: weights so alike that every addition of a block rounds the same way.
    for (float& key : problem.keys) key *= 1e-3F;
    for (float& value : problem.values) value = 0.7F + 0.1F * value;
    const Result result = run(problem);
    ASSERT_EQ(result.status, Status::ok);
    for (Index i = 0; i < queries; ++i) {
      double sum = 0.0;
      double output[2] = {};
      double magnitude = 0.0;
      for (Index j = 0; j < problem.shape.key_length; ++j) {
        double score = 0.0;
        double size = 0.0;
        for (Index d = 0; d < 2; ++d) {
          const double term = static_cast<double>(problem.scale) * problem.queries[i * 2 + d] * problem.keys[j * 2 + d];
          score += term;
          size += std::abs(term);
        }
        magnitude = std::max(magnitude, size);
        sum += std::exp(score);
        for (Index c = 0; c < 2; ++c) output[c] += std::exp(score) * problem.values[j * 2 + c];
      }
      for (Index c = 0; c < 2; ++c) {
        EXPECT_NEAR(result.output[i * 2 + c], output[c] / sum, 0.8 * (2e-6 + 0x1p-23 * magnitude))
            << queries << " queries";
      }
      EXPECT_NEAR(result.log_sum_exp[i], std::log(sum), 3e-6 + 0x1p-23 * std::log(sum));
    }
  }
}

TEST(long_sums, R8_R10_bands_masks_and_poison_give_the_same_bits_across_groups) {
  for (const Index queries : query_counts) {
    Problem problem = long_problem(queries, 3 * group_keys + 700, 2);
    problem.rules.causal = true;
    for (const Index from : {Index{0}, group_keys - 3, group_keys, 2 * group_keys + 100}) {
      for (const Index to : {2 * group_keys, 2 * group_keys + 1, problem.shape.key_length - queries}) {
        problem.offsets = {static_cast<std::int32_t>(to - 1)};
        problem.rules.window_left = static_cast<std::int32_t>(to - 1 - from);
        const Result result = run(problem);
        ASSERT_TRUE(matches(problem, result)) << from << " to " << to;
        EXPECT_TRUE(same_result(result, run(with_one_dense_mask(problem)))) << "R8: " << from << " to " << to;
        EXPECT_TRUE(same_result(result, run(with_poison_where_hidden(problem)))) << "R10: " << from << " to " << to;
      }
    }
  }
}

TEST(long_sums, R12_weights_use_the_sum_of_all_groups_and_change_no_bit) {
  for (const Index queries : query_counts) {
    const Problem problem = long_problem(queries, 2 * group_keys + 1, 3);
    const Result looked = run_all_weights(problem, WeightsKind::softmax);
    EXPECT_TRUE(same_result(looked, run(problem)));
    EXPECT_TRUE(weights_match(reference::attention(problem.call()), problem, WeightsKind::softmax, looked.weights));
  }
}

TEST(long_sums, R10_a_visible_NaN_in_one_group_reaches_exactly_the_rows_that_see_it) {
  Problem problem = long_problem(9, 2 * group_keys + 50, 4);
  problem.rules.causal = true;
  problem.offsets = {static_cast<std::int32_t>(group_keys - 4)};
  const Result clean = run(problem);
  problem.key(0, 0, group_keys, 0) = not_a_number;  // rows 4 … 8 see it, as the first key of their second group
  const Result result = run(problem);
  for (Index row = 0; row < 9; ++row) {
    if (row < 4) {
      EXPECT_TRUE(same_bits(result.output[row * 2], clean.output[row * 2])) << row;
    } else {
      EXPECT_TRUE(std::isnan(result.output[row * 2])) << row;
    }
  }
}

TEST(long_sums, R9_R18_rows_that_see_nothing_and_sinks) {
  for (const Index queries : query_counts) {
    Problem problem = long_problem(queries, 2 * group_keys, 5);
    problem.key_lengths = {0};
    EXPECT_TRUE(matches(problem, run(problem)));
    problem.sinks = {0.5F};
    EXPECT_TRUE(matches(problem, run(problem)));
    problem.key_lengths.clear();
    EXPECT_TRUE(matches(problem, run(problem)));
  }
}

}  // namespace
}  // namespace lookback::test
