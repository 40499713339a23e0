// R15 over threads and slices: who computes which tile, and when, changes no bit of anything that a call returns.

#include <algorithm>

#include "lookback/parallel.hpp"
#include "problem.hpp"

namespace lookback::test {
namespace {

/// All that a call can return.
struct Everything {
  std::vector<float> output, log_sum_exp, weights, top_weights, entropy, distance, map;
  std::vector<std::int32_t> top_indices;
};

/// How the items are run between begin and end.
using Run = std::function<void(void* workspace, Index items)>;

void run_whole(void* workspace, Index items) { attention_run(workspace, 0, items); }

std::vector<float> floats(Index count) { return std::vector<float>(static_cast<std::size_t>(count), untouched); }

Everything run_everything(const Problem& problem, const WeightsRequest& request, Index map_rows, const Run& run) {
  AttentionCall call = problem.call();
  const AttentionShape& shape = problem.shape;
  Everything all;
  const Index map_columns = std::min<Index>(shape.key_length, 5);
  all.output = floats(problem.rows() * shape.value_dim);
  all.log_sum_exp = all.entropy = all.distance = floats(problem.rows());
  all.weights = floats(shape.batch * request.head_count * (request.query_to - request.query_from) * shape.key_length);
  all.top_weights = floats(problem.rows() * 3);
  all.top_indices.assign(static_cast<std::size_t>(problem.rows() * 3), 12345);
  all.map = floats(shape.batch * shape.heads * map_rows * map_columns);
  const bool folded = problem.folded;
  const Index width = shape.value_dim;
  call.outputs.output =
      folded
          ? MutableView{all.output.data(), shape.query_length * shape.heads * width, width, shape.heads * width}
          : MutableView{all.output.data(), shape.heads * shape.query_length * width, shape.query_length * width, width};
  call.outputs.log_sum_exp = all.log_sum_exp.data();
  call.outputs.weights = request;
  call.outputs.weights.data = all.weights.empty() ? nullptr : all.weights.data();
  call.outputs.summary = {3,
                          all.top_indices.data(),
                          all.top_weights.data(),
                          all.entropy.data(),
                          all.distance.data(),
                          map_rows > 0 && map_columns > 0 ? all.map.data() : nullptr,
                          map_rows,
                          map_columns};
  const Scratch scratch(attention_workspace_bytes(call));
  Index items = -1;
  EXPECT_EQ(attention_begin(call, scratch.data(), scratch.bytes(), items), Status::ok);
  run(scratch.data(), items);
  attention_end(scratch.data(), true);
  return all;
}

::testing::AssertionResult same_everything(const Everything& a, const Everything& b) {
  const auto compare = [](const char* name, const std::vector<float>& left, const std::vector<float>& right) {
    const auto same = all_same_bits(left, right);
    return same ? same : ::testing::AssertionFailure() << name << ": " << same.message();
  };
  if (const auto same = compare("output", a.output, b.output); !same) return same;
  if (const auto same = compare("log_sum_exp", a.log_sum_exp, b.log_sum_exp); !same) return same;
  if (const auto same = compare("weights", a.weights, b.weights); !same) return same;
  if (const auto same = compare("top weights", a.top_weights, b.top_weights); !same) return same;
  if (const auto same = compare("entropy", a.entropy, b.entropy); !same) return same;
  if (const auto same = compare("distance", a.distance, b.distance); !same) return same;
  if (const auto same = compare("map", a.map, b.map); !same) return same;
  if (a.top_indices == b.top_indices) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "top indices";
}

/// Random problems with several tiles, large enough for four threads to be worth waking.
std::vector<Problem> large_problems(std::size_t count, Random& random) {
  std::vector<Problem> problems;
  while (problems.size() < count) {
    Problem problem = random_problem(random);
    const AttentionShape& shape = problem.shape;
    const Index cost =
        shape.batch * shape.heads * shape.query_length * shape.key_length * (shape.head_dim + shape.value_dim);
    if (cost > 2500000) problems.push_back(std::move(problem));
  }
  return problems;
}

TEST(attention_threads, R15_every_result_has_the_same_bits_with_1_2_3_and_4_threads) {
  Random random(15);
  for (const Problem& problem : large_problems(25, random)) {
    const OwnedRequest owned = random_request(problem, random);
    const Index map_rows = 1 + random.below(problem.shape.query_length);
    const Everything alone = run_everything(problem, owned.request, map_rows, run_whole);
    for (const Index wanted : {2, 3, 4}) {
      set_threads(wanted);
      ASSERT_TRUE(same_everything(alone, run_everything(problem, owned.request, map_rows, run_whole)))
          << wanted << " threads";
    }
    set_threads(1);
  }
}

TEST(attention_threads, R15_slices_of_any_size_in_any_order_give_the_bits_of_the_whole) {
  Random random(16);
  for (int round = 0; round < 60; ++round) {
    const Problem problem = random_problem(random);
    const OwnedRequest owned = random_request(problem, random);
    const Index map_rows = problem.shape.query_length == 0 ? 0 : 1 + random.below(problem.shape.query_length);
    const Everything whole = run_everything(problem, owned.request, map_rows, run_whole);
    const auto run_slices = [&random](void* workspace, Index items) {
      std::vector<std::pair<Index, Index>> slices;
      for (Index from = 0; from < items;) {
        const Index to = from + 1 + random.below(items - from);
        slices.emplace_back(from, to);
        from = to;
      }
      for (std::size_t left = slices.size(); left > 0; --left) {
        std::swap(slices[left - 1], slices[static_cast<std::size_t>(random.below(static_cast<Index>(left)))]);
        attention_run(workspace, slices[left - 1].first, slices[left - 1].second);
      }
    };
    set_threads(1 + random.below(3));
    ASSERT_TRUE(same_everything(whole, run_everything(problem, owned.request, map_rows, run_slices)));
    set_threads(1);
  }
}

/// A few queries over several parts of the keys; heads share them.
Problem few_queries(Index query_length, std::uint32_t seed) {
  Problem problem = Problem::random({2, 6, 2, query_length, 3000, 20, 12}, seed, 2.0F);
  problem.rules.causal = true;
  problem.offsets.assign(2, static_cast<std::int32_t>(3000 - query_length));
  return problem;
}

TEST(attention_threads, R15_R22_R11_threads_share_the_keys_of_a_few_queries_without_changing_a_bit) {
  for (const Index query_length : {1, 3, 8}) {
    const Problem problem = few_queries(query_length, static_cast<std::uint32_t>(query_length));
    const Result alone = run(problem);
    ASSERT_TRUE(matches(problem, alone));
    for (const Index wanted : {2, 3}) {
      set_threads(wanted);
      const Result shared = run(problem);
      EXPECT_TRUE(same_result(alone, shared)) << wanted << " threads, " << query_length << " queries";
    }
    set_threads(1);
  }
}

TEST(attention_threads, R12_looking_at_a_few_queries_changes_no_bit_of_what_their_parts_give) {
  const Problem problem = few_queries(2, 9);
  EXPECT_TRUE(same_result(run(problem), run_all_weights(problem, WeightsKind::softmax)));
}

TEST(attention_threads, B6_a_call_that_is_given_up_leaves_the_cache_as_it_was) {
  for (const bool rolling : {false, true}) {
    Problem problem = Problem::random({2, 2, 1, 30, 30, 5, 4}, 7);
    KvCacheShape stored;
    stored.batch = 2;
    stored.head_dim = 5;
    stored.value_dim = 4;
    stored.capacity = 64;
    stored.rolling = rolling;
    const Scratch memory(KvCache::bytes(stored));
    ASSERT_EQ(KvCache::create(stored, memory.data()), Status::ok);
    AttentionCall call = problem.call();
    call.inputs.cache = KvCache(memory.data());
    call.inputs.new_length = 30;
    call.visibility.causal = true;
    if (rolling) call.visibility.window_left = 20;
    std::vector<float> output(2 * 2 * 30 * 4);
    call.outputs.output = {output.data(), 2 * 30 * 4, 30 * 4, 4};
    const Scratch scratch(attention_workspace_bytes(call));
    std::vector<float> first;
    for (const bool finished : {false, true}) {
      Index items = 0;
      ASSERT_EQ(attention_begin(call, scratch.data(), scratch.bytes(), items), Status::ok);
      ASSERT_EQ(items, 4);
      attention_run(scratch.data(), 0, finished ? items : 1);
      attention_end(scratch.data(), finished);
      ASSERT_EQ(call.inputs.cache.length(), finished ? 30 : 0) << "rolling " << rolling;
    }
  }
}

TEST(attention_threads, a_call_that_is_refused_begins_nothing) {
  const Problem problem = Problem::random({1, 1, 1, 4, 4, 4, 4}, 3);
  AttentionCall call = problem.call();
  std::vector<float> output(16, untouched);
  call.outputs.output = {output.data(), 16, 16, 4};
  const Scratch scratch(attention_workspace_bytes(call));
  Index items = -1;
  EXPECT_EQ(attention_begin(call, scratch.data(), scratch.bytes() - 1, items), Status::workspace_too_small);
  call.scores.scale = infinity;
  EXPECT_EQ(attention_begin(call, scratch.data(), scratch.bytes(), items), Status::invalid_argument);
  EXPECT_EQ(items, -1);
  EXPECT_TRUE(all_same_bits(output, std::vector<float>(16, untouched)));
}

}  // namespace
}  // namespace lookback::test
