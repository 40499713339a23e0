// Accuracy and layouts of the forward pass, against the float64 reference.

#include <algorithm>

#include "problem.hpp"

namespace lookback::test {
namespace {

using kernels::block_keys;
using kernels::panel_width;
using kernels::tile_queries;

AttentionShape shape_of(Index queries, Index keys, Index head_dim = 5, Index value_dim = 3) {
  AttentionShape shape;
  shape.query_length = queries;
  shape.key_length = keys;
  shape.head_dim = head_dim;
  shape.value_dim = value_dim;
  return shape;
}

std::string size_of(const Problem& problem) {
  return std::to_string(problem.shape.query_length) + " queries, " + std::to_string(problem.shape.key_length) +
         " keys, widths " + std::to_string(problem.shape.head_dim) + " and " + std::to_string(problem.shape.value_dim);
}

TEST(attention, R22_is_exact_enough_for_every_number_of_queries_up_to_two_tiles) {
  for (Index queries = 1; queries <= 2 * tile_queries + 1; ++queries) {
    Problem problem = Problem::random(shape_of(queries, queries), 1);
    ASSERT_TRUE(matches(problem, run(problem))) << size_of(problem);
    problem.rules.causal = true;
    ASSERT_TRUE(matches(problem, run(problem))) << "causal, " << size_of(problem);
  }
}

TEST(attention, R22_is_exact_enough_on_both_sides_of_every_block_boundary) {
  for (const Index keys :
       {Index{1}, Index{2}, Index{3}, Index{5}, Index{23}, Index{24}, Index{25}, block_keys - 1, block_keys,
        block_keys + 1, 2 * block_keys - 1, 2 * block_keys, 2 * block_keys + 1, Index{769}}) {
    for (const Index queries : {Index{1}, tile_queries - 1, tile_queries, tile_queries + 1}) {
      Problem problem = Problem::random(shape_of(queries, keys), 2);
      ASSERT_TRUE(matches(problem, run(problem))) << size_of(problem);
      problem.rules.causal = true;
      problem.offsets = {static_cast<std::int32_t>(keys - queries)};
      ASSERT_TRUE(matches(problem, run(problem))) << "causal at the end, " << size_of(problem);
    }
  }
}

TEST(attention, R22_is_exact_enough_for_every_width_of_heads_and_values) {
  for (const Index width : tail_lengths(panel_width / 2)) {
    if (width == 0) continue;
    Problem deep = Problem::random(shape_of(9, 17, width, 3), 3);
    ASSERT_TRUE(matches(deep, run(deep))) << size_of(deep);
    Problem wide = Problem::random(shape_of(9, 17, 3, width), 4);
    ASSERT_TRUE(matches(wide, run(wide))) << size_of(wide);
  }
}

TEST(attention, R22_holds_where_all_products_have_one_sign_whatever_the_width) {
  for (const Index head_dim : {64, 128, 256}) {
    Problem problem = Problem::random(shape_of(20, 100, head_dim, 4), 22, 8.0F);
    for (auto* operand : {&problem.queries, &problem.keys}) {
      for (float& value : *operand) value = std::abs(value);
    }
    ASSERT_TRUE(matches(problem, run(problem))) << size_of(problem);
  }
}

TEST(attention, R22_holds_for_scores_up_to_10000_where_a_naive_exponential_overflows) {
  Problem problem = Problem::random(shape_of(30, 300, 16, 8), 5, 25.0F);
  problem.scale = 1.0F;
  const reference::Attention expected = reference::attention(problem.call());
  ASSERT_GT(*std::max_element(expected.magnitude.begin(), expected.magnitude.end()), 3000.0);
  ASSERT_TRUE(matches(expected, problem, run(problem)));
  for (float& key : problem.keys) key = std::abs(key) * 1.5F;
  for (float& query : problem.queries) query = std::abs(query) * 1.5F;
  ASSERT_TRUE(matches(problem, run(problem))) << "all scores positive";
  problem.scale = -1.0F;
  ASSERT_TRUE(matches(problem, run(problem))) << "all scores negative";
}

TEST(attention, R2_any_finite_scale_and_0_and_negatives_included) {
  for (const float scale : {0.0F, -0.0F, -1.0F, 1e-30F, 12.5F}) {
    Problem problem = Problem::random(shape_of(7, 40), 6);
    problem.scale = scale;
    ASSERT_TRUE(matches(problem, run(problem))) << "scale " << scale;
  }
}

TEST(attention, R1_the_folded_layout_gives_the_bits_of_the_head_first_one) {
  AttentionShape shape = shape_of(tile_queries + 2, block_keys + 3, 7, 9);
  shape.batch = 2;
  shape.kv_heads = 2;
  shape.heads = 4;
  Problem heads_first = Problem::random(shape, 7);
  Problem folded = heads_first;
  folded.folded = true;
  const auto fold = [](const std::vector<float>& source, Index heads, Index length, Index width) {
    std::vector<float> result(source.size());
    for (Index at = 0; at < static_cast<Index>(source.size()); ++at) {
      const Index c = at % width;
      const Index row = at / width % length;
      const Index head = at / width / length % heads;
      const Index batch = at / width / length / heads;
      result[((batch * length + row) * heads + head) * width + c] = source[at];
    }
    return result;
  };
  folded.queries = fold(heads_first.queries, shape.heads, shape.query_length, shape.head_dim);
  folded.keys = fold(heads_first.keys, shape.kv_heads, shape.key_length, shape.head_dim);
  folded.values = fold(heads_first.values, shape.kv_heads, shape.key_length, shape.value_dim);
  const Result result = run(folded);
  EXPECT_TRUE(matches(folded, result));
  EXPECT_TRUE(same_result(result, run(heads_first)));
}

TEST(attention, R1_rows_may_lie_apart_and_nothing_is_written_between_them) {
  Problem problem = Problem::random(shape_of(tile_queries + 1, 30, 5, 6), 8);
  const Result expected = run(problem);
  AttentionCall call = problem.call();
  const Index stride = 11;
  std::vector<float> output(static_cast<std::size_t>(tile_queries * stride + 6), untouched);
  call.outputs.output = {output.data(), 0, 0, stride};
  const Scratch scratch(attention_workspace_bytes(call));
  ASSERT_EQ(attention_forward(call, scratch.data(), scratch.bytes()), Status::ok);
  for (Index at = 0; at < static_cast<Index>(output.size()); ++at) {
    const float value = at % stride < 6 ? expected.output[at / stride * 6 + at % stride] : untouched;
    ASSERT_TRUE(same_bits(output[at], value)) << "element " << at;
  }
}

TEST(attention, R11_query_head_h_reads_key_value_head_h_times_Hkv_over_H) {
  for (const auto& [heads, kv_heads] : {std::pair{6, 1}, {6, 2}, {6, 3}, {6, 6}}) {
    AttentionShape shape = shape_of(13, 29);
    shape.batch = 2;
    shape.heads = heads;
    shape.kv_heads = kv_heads;
    const Problem grouped = Problem::random(shape, 9);
    const Result result = run(grouped);
    ASSERT_TRUE(matches(grouped, result)) << heads << " heads, " << kv_heads << " key/value heads";
    // The same with every head's keys and values written out.
    Problem repeated = grouped;
    repeated.shape.kv_heads = heads;
    repeated.keys.clear();
    repeated.values.clear();
    for (Index at = 0; at < 2 * heads; ++at) {
      const Index source = at / heads * kv_heads + at % heads * kv_heads / heads;
      repeated.keys.insert(repeated.keys.end(), grouped.keys.begin() + source * 29 * 5,
                           grouped.keys.begin() + (source + 1) * 29 * 5);
      repeated.values.insert(repeated.values.end(), grouped.values.begin() + source * 29 * 3,
                             grouped.values.begin() + (source + 1) * 29 * 3);
    }
    ASSERT_TRUE(same_result(result, run(repeated)));
  }
}

TEST(attention, R14_log_sum_exp_is_that_of_the_scores) {
  for (const float bound : {1.0F, 30.0F}) {
    Problem problem = Problem::random(shape_of(40, 600, 9, 2), 10, bound);
    EXPECT_TRUE(matches(problem, run(problem)));
  }
}

TEST(attention, R14_leaving_log_sum_exp_out_changes_no_bit) {
  Problem problem = Problem::random(shape_of(31, 300), 11);
  problem.sinks = {0.5F};
  const Result with = run(problem);
  AttentionCall call = problem.call();
  std::vector<float> output(with.output.size());
  call.outputs.output = {output.data(), 0, 0, problem.shape.value_dim};
  const Scratch scratch(attention_workspace_bytes(call));
  ASSERT_EQ(attention_forward(call, scratch.data(), scratch.bytes()), Status::ok);
  EXPECT_TRUE(all_same_bits(output, with.output));
}

TEST(attention, R15_a_batch_row_alone_has_the_bits_it_has_in_a_batch) {
  AttentionShape shape = shape_of(tile_queries + 5, block_keys + 9);
  shape.batch = 3;
  shape.heads = 2;
  shape.kv_heads = 2;
  Problem all = Problem::random(shape, 12);
  all.rules.causal = true;
  const auto edge = static_cast<std::int32_t>(block_keys);
  all.offsets = {0, edge / 2, edge - 10};
  all.key_lengths = {edge + 9, 17, edge - 50};
  all.bias.resize(shape, {}, 0.0F);
  Random random(13);
  for (float& bias : all.bias.data) bias = random.chance(10) ? -infinity : random.within(2.0F);
  const Result together = run(all);
  for (Index b = 0; b < 3; ++b) {
    const auto part = [b](const auto& values) {
      const auto size = static_cast<Index>(values.size()) / 3;
      return std::decay_t<decltype(values)>(values.begin() + b * size, values.begin() + (b + 1) * size);
    };
    Problem alone = all;
    alone.shape.batch = 1;
    alone.queries = part(all.queries);
    alone.keys = part(all.keys);
    alone.values = part(all.values);
    alone.offsets = part(all.offsets);
    alone.key_lengths = part(all.key_lengths);
    alone.bias.data = part(all.bias.data);
    const Result result = run(alone);
    ASSERT_TRUE(all_same_bits(result.output, part(together.output))) << "batch row " << b;
    ASSERT_TRUE(all_same_bits(result.log_sum_exp, part(together.log_sum_exp))) << "batch row " << b;
  }
}

TEST(attention, R15_running_twice_gives_the_same_bits) {
  const Problem problem = Problem::random(shape_of(50, 530, 16, 16), 14);
  EXPECT_TRUE(same_result(run(problem), run(problem)));
}

TEST(attention, R17_alibi_subtracts_slope_times_distance_on_both_sides) {
  for (const std::int32_t offset : {0, -5, 200}) {
    AttentionShape shape = shape_of(tile_queries + 3, block_keys + 5);
    shape.heads = 4;
    shape.kv_heads = 2;
    Problem problem = Problem::random(shape, 15);
    problem.slopes = {0.25F, 0.0625F, 0.015625F, 0.00390625F};
    problem.offsets = {offset};
    ASSERT_TRUE(matches(problem, run(problem))) << "offset " << offset;
  }
}

TEST(attention, R18_a_sink_takes_its_share_and_has_no_value) {
  AttentionShape shape = shape_of(tile_queries + 3, block_keys + 5);
  shape.heads = 5;
  shape.kv_heads = 5;
  Problem problem = Problem::random(shape, 16);
  problem.sinks = {0.0F, -2.0F, 6.0F, 500.0F, -infinity};
  const reference::Attention expected = reference::attention(problem.call());
  const Result result = run_all_weights(problem, WeightsKind::softmax);
  EXPECT_TRUE(matches(expected, problem, result));
  EXPECT_TRUE(weights_match(expected, problem, WeightsKind::softmax, result.weights));
  for (Index row = 0; row < problem.rows(); ++row) {
    double sum = 0.0;
    for (Index j = 0; j < shape.key_length; ++j) sum += result.weights[row * shape.key_length + j];
    const double share = std::exp(problem.sinks[row / shape.query_length] - expected.log_sum_exp[row]);
    ASSERT_NEAR(sum, 1.0 - share, 1e-5);
  }
}

TEST(attention, R18_a_sink_of_minus_infinity_is_no_sink) {
  Problem problem = Problem::random(shape_of(9, 20), 17);
  const Result without = run(problem);
  problem.sinks = {-infinity};
  EXPECT_TRUE(same_result(without, run(problem)));
}

TEST(attention, R4_softcap_bounds_scores_before_the_bias) {
  Problem problem = Problem::random(shape_of(tile_queries + 1, block_keys + 2, 8, 4), 18, 9.0F);
  problem.softcap = 20.0F;
  ASSERT_TRUE(matches(problem, run(problem)));
  problem.bias.resize(problem.shape, {}, 0.0F);
  Random random(19);
  for (float& bias : problem.bias.data) bias = random.chance(20) ? -infinity : random.within(3.0F);
  ASSERT_TRUE(matches(problem, run(problem)));
}

TEST(attention, R21_no_queries_give_an_empty_output_and_no_keys_give_zero_rows) {
  for (const Index queries : {0, 1, 30}) {
    for (const Index keys : {0, 1, 300}) {
      if (queries != 0 && keys != 0) continue;
      Problem problem = Problem::random(shape_of(queries, keys), 20);
      for (const bool causal : {false, true}) {
        problem.rules.causal = causal;
        const Result result = run_all_weights(problem, WeightsKind::softmax);
        ASSERT_TRUE(matches(problem, result));
        for (const float value : result.output) ASSERT_EQ(bits_of(value), 0U);
        for (const float value : result.log_sum_exp) ASSERT_EQ(value, -infinity);
      }
    }
  }
}

TEST(attention, R21_no_keys_leave_the_sink_in_log_sum_exp) {
  Problem problem = Problem::random(shape_of(3, 0), 21);
  problem.sinks = {1.5F};
  const Result result = run(problem);
  for (const float value : result.output) EXPECT_EQ(bits_of(value), 0U);
  for (const float value : result.log_sum_exp) EXPECT_EQ(value, 1.5F);
}

}  // namespace
}  // namespace lookback::test
