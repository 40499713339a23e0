// R12: looking at the weights.

#include "problem.hpp"

namespace lookback::test {
namespace {

using kernels::block_keys;
using kernels::tile_queries;

Problem everything(std::uint32_t seed) {
  AttentionShape shape;
  shape.batch = 2;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.query_length = tile_queries + 5;
  shape.key_length = 2 * block_keys + 9;
  shape.head_dim = 6;
  shape.value_dim = 3;
  Problem problem = Problem::random(shape, seed, 2.0F);
  problem.rules.causal = true;
  problem.rules.window_left = static_cast<std::int32_t>(block_keys + block_keys / 2);
  problem.offsets = {static_cast<std::int32_t>(block_keys) + 44, 2 * static_cast<std::int32_t>(block_keys) - 20};
  problem.softcap = 4.0F;
  problem.sinks = {0.5F, -1.0F, 2.0F, -infinity};
  problem.slopes = {0.25F, 0.0625F, 0.015625F, 0.00390625F};
  problem.bias.resize(shape, {false, true, false, false}, 0.0F);
  Random random(seed + 1);
  for (float& value : problem.bias.data) value = random.chance(15) ? -infinity : random.within(1.0F);
  return problem;
}

constexpr WeightsKind kinds[] = {WeightsKind::scores, WeightsKind::capped, WeightsKind::masked, WeightsKind::softmax};

TEST(attention_look, R12_every_kind_is_what_the_formula_has_at_that_stage) {
  const Problem problem = everything(1);
  const reference::Attention expected = reference::attention(problem.call());
  for (const WeightsKind kind : kinds) {
    ASSERT_TRUE(weights_match(expected, problem, kind, run_all_weights(problem, kind).weights));
  }
}

TEST(attention_look, R12_asking_never_changes_a_bit_of_the_output) {
  const Problem problem = everything(2);
  const Result result = run(problem);
  for (const WeightsKind kind : kinds) {
    ASSERT_TRUE(same_result(result, run_all_weights(problem, kind)));
    WeightsRequest one_row;
    const std::int32_t last_head = 3;
    one_row.kind = kind;
    one_row.heads = &last_head;
    one_row.head_count = 1;
    one_row.query_from = 7;
    one_row.query_to = 8;
    ASSERT_TRUE(same_result(result, run(problem, one_row)));
  }
}

TEST(attention_look, R12_chosen_heads_and_rows_are_the_same_bits_as_in_all_of_them) {
  const Problem problem = everything(3);
  const Index keys = problem.shape.key_length;
  const std::vector<std::int32_t> heads = {2, 0, 2};  // in the order asked for, repetitions included
  for (const WeightsKind kind : kinds) {
    const std::vector<float> all = run_all_weights(problem, kind).weights;
    for (const auto& [from, to] : {std::pair{Index{0}, Index{1}},
                                   {tile_queries - 1, tile_queries + 1},
                                   {tile_queries, tile_queries},
                                   {Index{3}, problem.shape.query_length}}) {
      WeightsRequest request;
      request.kind = kind;
      request.heads = heads.data();
      request.head_count = static_cast<Index>(heads.size());
      request.query_from = from;
      request.query_to = to;
      const std::vector<float> chosen = run(problem, request).weights;
      Index at = 0;
      for (Index b = 0; b < 2; ++b) {
        for (const std::int32_t head : heads) {
          for (Index i = from; i < to; ++i) {
            const Index row = (b * 4 + head) * problem.shape.query_length + i;
            for (Index j = 0; j < keys; ++j, ++at)
              ASSERT_TRUE(same_bits(chosen[at], all[row * keys + j])) << "row " << row;
          }
        }
      }
      ASSERT_EQ(at, static_cast<Index>(chosen.size()));
    }
  }
}

TEST(attention_look, R12_softmax_rows_sum_to_1_and_give_the_output) {
  Problem problem = everything(4);
  problem.sinks.clear();
  const Result result = run_all_weights(problem, WeightsKind::softmax);
  const AttentionShape& shape = problem.shape;
  const reference::Attention expected = reference::attention(problem.call());
  for (Index row = 0; row < problem.rows(); ++row) {
    double sum = 0.0;
    for (Index j = 0; j < shape.key_length; ++j) {
      const float weight = result.weights[row * shape.key_length + j];
      if (expected.visible[row * shape.key_length + j] == 0) ASSERT_EQ(bits_of(weight), 0U) << "a masked key";
      sum += weight;
    }
    ASSERT_NEAR(sum, 1.0, 1e-5);
    const Index batch = row / shape.query_length / shape.heads;
    const Index kv_head = row / shape.query_length % shape.heads / 2;
    for (Index c = 0; c < shape.value_dim; ++c) {
      double product = 0.0;
      for (Index j = 0; j < shape.key_length; ++j) {
        product +=
            static_cast<double>(result.weights[row * shape.key_length + j]) * problem.value(batch, kv_head, j, c);
      }
      ASSERT_NEAR(result.output[row * shape.value_dim + c], product, 1e-5);
    }
  }
}

TEST(attention_look, R12_scores_and_capped_cover_masked_keys_and_masked_ones_do_not) {
  Problem problem = everything(5);
  problem.mask.resize(problem.shape, {true, true, true, true}, 0);
  for (const float value : run_all_weights(problem, WeightsKind::scores).weights) ASSERT_TRUE(std::isfinite(value));
  for (const float value : run_all_weights(problem, WeightsKind::capped).weights) ASSERT_LE(std::abs(value), 4.0F);
  for (const float value : run_all_weights(problem, WeightsKind::masked).weights) ASSERT_EQ(value, -infinity);
  for (const float value : run_all_weights(problem, WeightsKind::softmax).weights) ASSERT_EQ(bits_of(value), 0U);
}

TEST(attention_look, R12_identical_one_hot_tokens_give_the_causal_matrix_of_the_article) {
  AttentionShape shape;
  shape.query_length = 4;
  shape.key_length = 4;
  shape.head_dim = 4;
  shape.value_dim = 4;
  Problem problem = Problem::random(shape, 6);
  problem.rules.causal = true;
  for (Index at = 0; at < 16; ++at)
    problem.queries[at] = problem.keys[at] = problem.values[at] = at / 4 == at % 4 ? 1.0F : 0.0F;
  const std::vector<float> weights = run_all_weights(problem, WeightsKind::softmax).weights;
  for (Index i = 0; i < 4; ++i) {
    const double own = std::exp(0.5);
    const double sum = own + static_cast<double>(i);
    for (Index j = 0; j < 4; ++j) {
      if (j > i) {
        ASSERT_EQ(bits_of(weights[i * 4 + j]), 0U);
      } else {
        ASSERT_NEAR(weights[i * 4 + j], (j == i ? own : 1.0) / sum, 1e-6);
      }
    }
  }
  EXPECT_EQ(weights[0], 1.0F);
}

TEST(attention_look, R12_a_visible_NaN_makes_the_weights_of_its_row_NaN_and_masked_ones_stay_0) {
  AttentionShape shape;
  shape.query_length = tile_queries;
  shape.key_length = tile_queries;
  Problem problem = Problem::random(shape, 7);
  problem.rules.causal = true;
  problem.key(0, 0, 5, 0) = not_a_number;
  const std::vector<float> weights = run_all_weights(problem, WeightsKind::softmax).weights;
  for (Index i = 0; i < tile_queries; ++i) {
    for (Index j = 0; j < tile_queries; ++j) {
      const float weight = weights[i * tile_queries + j];
      if (j > i) {
        ASSERT_EQ(bits_of(weight), 0U);
      } else {
        ASSERT_EQ(std::isnan(weight), i >= 5) << i << ", " << j;
      }
    }
  }
}

}  // namespace
}  // namespace lookback::test
