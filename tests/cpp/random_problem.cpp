#include <algorithm>

#include "problem.hpp"

namespace lookback::test {
namespace {

/// Lengths at and around the boundaries of a tile, small ones most often.
Index random_length(Random& random, Index tile, Index largest) {
  switch (random.below(8)) {
    case 0: return random.below(3);
    case 1: return tile - 1 + random.below(3);
    case 2: return std::min(largest, 2 * tile - 1 + random.below(3));
    case 3: return random.below(largest + 1);
    default: return random.below(2 * kernels::panel_width + 4);
  }
}

Broadcast random_broadcast(Random& random) {
  return {random.chance(40), random.chance(40), random.chance(25), random.chance(15)};
}

std::int32_t random_offset(Random& random, const AttentionShape& shape) {
  if (random.chance(5)) return random.chance(50) ? INT32_MIN : INT32_MAX;
  return static_cast<std::int32_t>(random.below(2 * shape.key_length + shape.query_length + 5) - shape.key_length -
                                   shape.query_length - 2);
}

void add_rules(Problem& problem, Random& random) {
  const AttentionShape& shape = problem.shape;
  problem.rules.causal = random.chance(50);
  if (random.chance(50)) {
    for (Index b = 0; b < shape.batch; ++b) problem.offsets.push_back(random_offset(random, shape));
  }
  if (random.chance(25)) problem.rules.window_left = static_cast<std::int32_t>(random.below(shape.key_length + 2));
  if (random.chance(25)) problem.rules.window_right = static_cast<std::int32_t>(random.below(shape.key_length + 2));
  if (random.chance(30)) {
    for (Index b = 0; b < shape.batch; ++b) {
      problem.key_lengths.push_back(static_cast<std::int32_t>(random.below(shape.key_length + 2)));
    }
  }
  const int density = random.chance(50) ? 90 : 30;
  if (random.chance(25)) {
    problem.key_mask.resize(static_cast<std::size_t>(shape.batch * shape.key_length));
    for (auto& bit : problem.key_mask) bit = random.chance(density) ? 1 : 0;
  }
  if (random.chance(35)) {
    problem.mask.resize(shape, random_broadcast(random), 0);
    for (auto& bit : problem.mask.data) bit = random.chance(density) ? 1 : 0;
  }
}

void add_scores(Problem& problem, Random& random) {
  const AttentionShape& shape = problem.shape;
  if (random.chance(35)) {
    problem.bias.resize(shape, random_broadcast(random), 0.0F);
    const int masked = random.chance(50) ? 20 : 0;
    for (auto& value : problem.bias.data) value = random.chance(masked) ? -infinity : random.within(2.0F);
  }
  const bool far = std::any_of(problem.offsets.begin(), problem.offsets.end(),
                               [](std::int32_t offset) { return offset == INT32_MIN || offset == INT32_MAX; });
  // A distance of 2³¹ has no float32 score to compare with; that it is harmless is a test of its own.
  if (random.chance(25) && !far) {
    for (Index h = 0; h < shape.heads; ++h) problem.slopes.push_back(0.5F / static_cast<float>(h + 1));
  }
  if (random.chance(25)) problem.sinks = random.vector(shape.heads, 3.0F);
  if (random.chance(25)) problem.softcap = 0.5F + static_cast<float>(random.below(50));
  if (random.chance(25)) problem.scale = random.within(2.0F);
}

::testing::AssertionResult broken(const char* rule, const ::testing::AssertionResult& why) {
  return ::testing::AssertionFailure() << rule << ": " << why.message();
}

}  // namespace

Problem random_problem(Random& random) {
  AttentionShape shape;
  shape.batch = 1 + random.below(2);
  shape.kv_heads = 1 + random.below(2);
  shape.heads = shape.kv_heads * (1 + random.below(3));
  shape.query_length = random_length(random, kernels::tile_queries, 2 * kernels::tile_queries + 3);
  shape.key_length = random_length(random, kernels::block_keys, 2 * kernels::block_keys + 3);
  shape.head_dim = 1 + random.below(random.chance(80) ? 11 : 40);
  shape.value_dim = 1 + random.below(random.chance(80) ? 11 : 4 * kernels::panel_width + 3);
  Problem problem = Problem::random(shape, random.bits(), random.chance(20) ? 8.0F : 1.0F);
  problem.folded = random.chance(50);
  add_rules(problem, random);
  add_scores(problem, random);
  if (random.chance(20)) problem.dropout = {0.1F + 0.1F * static_cast<float>(random.below(7)), random.bits()};
  return problem;
}

OwnedRequest random_request(const Problem& problem, Random& random) {
  OwnedRequest owned;
  const Index count = 1 + random.below(problem.shape.heads);
  for (Index slot = 0; slot < count; ++slot) {
    owned.heads.push_back(static_cast<std::int32_t>(random.below(problem.shape.heads)));
  }
  owned.request.kind = static_cast<WeightsKind>(random.below(4));
  owned.request.heads = owned.heads.data();
  owned.request.head_count = count;
  owned.request.query_from = random.below(problem.shape.query_length + 1);
  owned.request.query_to =
      owned.request.query_from + random.below(problem.shape.query_length - owned.request.query_from + 1);
  return owned;
}

::testing::AssertionResult keeps_every_rule(const Problem& problem, Random& random) {
  const reference::Attention expected = reference::attention(problem.call());
  const Result result = run(problem);
  if (const auto near = matches(expected, problem, result); !near) return near;
  if (const auto same = same_result(result, run(with_one_dense_mask(problem))); !same) return broken("R8", same);
  if (const auto same = same_result(result, run(with_poison_where_hidden(problem))); !same) return broken("R10", same);

  const OwnedRequest owned = random_request(problem, random);
  const WeightsRequest& request = owned.request;
  const Result looked = run(problem, request);
  if (const auto same = same_result(result, looked); !same) return broken("R12", same);
  const Result all = run_all_weights(problem, request.kind);
  if (const auto near = weights_match(expected, problem, request.kind, all.weights); !near) return near;
  std::vector<float> chosen;
  for (Index b = 0; b < problem.shape.batch; ++b) {
    for (Index slot = 0; slot < request.head_count; ++slot) {
      for (Index i = request.query_from; i < request.query_to; ++i) {
        const Index row = (b * problem.shape.heads + owned.heads[slot]) * problem.shape.query_length + i;
        const auto from = all.weights.begin() + row * problem.shape.key_length;
        chosen.insert(chosen.end(), from, from + problem.shape.key_length);
      }
    }
  }
  if (const auto same = all_same_bits(looked.weights, chosen); !same) return broken("R12: heads and rows", same);
  return ::testing::AssertionSuccess();
}

}  // namespace lookback::test
