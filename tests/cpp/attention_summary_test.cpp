// R13: figures of the weights, compared with the same figures of the reference's weights.

#include <algorithm>
#include <numeric>

#include "problem.hpp"

namespace lookback::test {
namespace {

using kernels::block_keys;
using kernels::tile_queries;

struct Summary {
  std::vector<std::int32_t> top_indices;
  std::vector<float> top_weights, entropy, distance, map;
  Result result;
};

/// All figures at once, with or without the softmax weights beside them.
Summary summarise(const Problem& problem, Index top_k, Index map_rows, Index map_columns, bool with_weights) {
  AttentionCall call = problem.call();
  const AttentionShape& shape = problem.shape;
  const auto rows = static_cast<std::size_t>(problem.rows());
  Summary summary;
  summary.top_indices.assign(rows * static_cast<std::size_t>(top_k), 77);
  summary.top_weights.assign(rows * static_cast<std::size_t>(top_k), untouched);
  summary.entropy.assign(rows, untouched);
  summary.distance.assign(rows, untouched);
  summary.map.assign(static_cast<std::size_t>(shape.batch * shape.heads * map_rows * map_columns), untouched);
  summary.result.output.assign(rows * static_cast<std::size_t>(shape.value_dim), untouched);
  summary.result.log_sum_exp.assign(rows, untouched);
  // Places to point at, so that a request of no size is still a request.
  summary.top_indices.reserve(1);
  summary.top_weights.reserve(1);
  summary.map.reserve(1);
  SummaryRequest& request = call.outputs.summary;
  request.top_k = top_k;
  request.top_indices = summary.top_indices.data();
  request.top_weights = summary.top_weights.data();
  request.entropy = summary.entropy.data();
  request.distance = summary.distance.data();
  request.map = summary.map.data();
  request.map_rows = map_rows;
  request.map_columns = map_columns;
  if (with_weights) {
    summary.result.weights.assign(rows * static_cast<std::size_t>(shape.key_length), untouched);
    call.outputs.weights.data = summary.result.weights.data();
    call.outputs.weights.head_count = shape.heads;
    call.outputs.weights.query_to = shape.query_length;
  }
  call.outputs.output = {summary.result.output.data(), shape.heads * shape.query_length * shape.value_dim,
                         shape.query_length * shape.value_dim, shape.value_dim};
  call.outputs.log_sum_exp = summary.result.log_sum_exp.data();
  const Scratch scratch(attention_workspace_bytes(call));
  summary.result.status = attention_forward(call, scratch.data(), scratch.bytes());
  return summary;
}

Problem summarised_problem(std::uint32_t seed) {
  AttentionShape shape;
  shape.batch = 2;
  shape.heads = 2;
  shape.query_length = tile_queries + 7;
  shape.key_length = block_keys + 13;
  shape.head_dim = 6;
  shape.value_dim = 3;
  Problem problem = Problem::random(shape, seed, 3.0F);
  problem.rules.causal = true;
  problem.offsets = {-3, static_cast<std::int32_t>(block_keys) - 16};
  return problem;
}

/// The largest weights by falling weight, then rising key, as R13 says.
std::vector<Index> order_of(const float* weights, Index count) {
  std::vector<Index> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(),
            [weights](Index a, Index b) { return weights[a] != weights[b] ? weights[a] > weights[b] : a < b; });
  return order;
}

TEST(attention_summary, R13_every_figure_is_that_of_the_weights) {
  const Problem problem = summarised_problem(1);
  const AttentionShape& shape = problem.shape;
  const reference::Attention expected = reference::attention(problem.call());
  const Index top_k = 5;
  const Summary summary = summarise(problem, top_k, 4, 7, true);
  ASSERT_TRUE(matches(expected, problem, summary.result));
  ASSERT_TRUE(weights_match(expected, problem, WeightsKind::softmax, summary.result.weights));
  std::vector<double> map(summary.map.size());
  for (Index row = 0; row < problem.rows(); ++row) {
    const float* weights = summary.result.weights.data() + row * shape.key_length;
    const double* exact = expected.stages[3].data() + row * shape.key_length;
    const Index query = row % shape.query_length;
    const std::int32_t offset = problem.offsets[row / shape.query_length / shape.heads];
    const std::vector<Index> order = order_of(weights, shape.key_length);
    for (Index place = 0; place < top_k; ++place) {
      const float weight = weights[order[place]];
      ASSERT_EQ(summary.top_indices[row * top_k + place], weight > 0.0F ? order[place] : -1) << "row " << row;
      ASSERT_TRUE(same_bits(summary.top_weights[row * top_k + place], weight)) << "row " << row;
    }
    double entropy = 0.0;
    double distance = 0.0;
    for (Index j = 0; j < shape.key_length; ++j) {
      if (exact[j] > 0.0) entropy -= exact[j] * std::log(exact[j]);
      distance += exact[j] * static_cast<double>(query + offset - j);
    }
    ASSERT_NEAR(summary.entropy[row], entropy, 2e-5) << "row " << row;
    ASSERT_NEAR(summary.distance[row], distance, 2e-5 * (1.0 + static_cast<double>(shape.key_length))) << "row " << row;
    for (Index r = 0; r < 4; ++r) {
      const Index from = r * shape.query_length / 4;
      const Index to = (r + 1) * shape.query_length / 4;
      if (query < from || query >= to) continue;
      for (Index c = 0; c < 7; ++c) {
        for (Index j = c * shape.key_length / 7; j < (c + 1) * shape.key_length / 7; ++j) {
          map[(row / shape.query_length * 4 + r) * 7 + c] += exact[j] / static_cast<double>(to - from);
        }
      }
    }
  }
  EXPECT_TRUE(all_near(summary.map, map, 1e-5));
}

TEST(attention_summary, R13_asking_changes_no_bit_and_neither_do_weights_asked_beside_it) {
  const Problem problem = summarised_problem(2);
  const Result plain = run_all_weights(problem, WeightsKind::softmax);
  const Summary alone = summarise(problem, 3, 2, 2, false);
  const Summary beside = summarise(problem, 3, 2, 2, true);
  EXPECT_TRUE(same_result(plain, alone.result));
  EXPECT_TRUE(same_result(plain, beside.result));
  EXPECT_TRUE(all_same_bits(plain.weights, beside.result.weights));
  EXPECT_EQ(alone.top_indices, beside.top_indices);
  EXPECT_TRUE(all_same_bits(alone.top_weights, beside.top_weights));
  EXPECT_TRUE(all_same_bits(alone.entropy, beside.entropy));
  EXPECT_TRUE(all_same_bits(alone.distance, beside.distance));
  EXPECT_TRUE(all_same_bits(alone.map, beside.map));
}

TEST(attention_summary, R13_a_map_of_full_size_is_the_weights_and_of_one_cell_their_mean) {
  Problem problem = summarised_problem(3);
  problem.offsets = {static_cast<std::int32_t>(block_keys) + 44, static_cast<std::int32_t>(block_keys) + 44};
  const AttentionShape& shape = problem.shape;
  const Summary full = summarise(problem, 1, shape.query_length, shape.key_length, true);
  EXPECT_TRUE(all_same_bits(full.map, full.result.weights));
  for (const float cell : summarise(problem, 1, 1, 1, false).map) EXPECT_NEAR(cell, 1.0F, 1e-5F);
}

TEST(attention_summary, R13_equal_weights_are_listed_by_rising_key) {
  Problem problem = summarised_problem(4);
  problem.scale = 0.0F;
  const Index top_k = 3;
  const Summary summary = summarise(problem, top_k, 1, 1, false);
  for (Index row = 0; row < problem.rows(); ++row) {
    const Index seen = row % problem.shape.query_length + problem.offsets[row / problem.shape.query_length / 2] + 1;
    for (Index place = 0; place < top_k; ++place) {
      ASSERT_EQ(summary.top_indices[row * top_k + place], place < seen ? place : -1) << "row " << row;
    }
  }
}

TEST(attention_summary, R9_a_row_that_sees_nothing_has_an_empty_list_and_zeros) {
  Problem problem = summarised_problem(5);
  problem.key_lengths = {0, 0};
  const Summary summary = summarise(problem, 2, 3, 3, false);
  EXPECT_EQ(summary.result.status, Status::ok);
  for (const std::int32_t index : summary.top_indices) EXPECT_EQ(index, -1);
  for (const auto* figures : {&summary.top_weights, &summary.entropy, &summary.distance, &summary.map}) {
    for (const float figure : *figures) EXPECT_EQ(figure, 0.0F);
  }
}

TEST(attention_summary, R13_requests_that_do_not_fit_are_refused_and_write_nothing) {
  const Problem problem = summarised_problem(6);
  for (const auto& [top_k, rows, columns] : {std::tuple{Index{0}, Index{1}, Index{1}},
                                             {1, 0, 1},
                                             {1, 1, 0},
                                             {1, problem.shape.query_length + 1, 1},
                                             {1, 1, problem.shape.key_length + 1}}) {
    const Summary summary = summarise(problem, top_k, rows, columns, false);
    EXPECT_EQ(summary.result.status, Status::invalid_range);
    for (const float value : summary.result.output) ASSERT_TRUE(same_bits(value, untouched));
    for (const float value : summary.map) ASSERT_TRUE(same_bits(value, untouched));
  }
}

}  // namespace
}  // namespace lookback::test
