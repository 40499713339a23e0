#include <algorithm>

#include "gradients.hpp"
#include "lookback/parallel.hpp"

namespace lookback::test {
namespace {

/// The loss whose gradient with respect to the output is grad_output.
double loss(const Problem& problem, const std::vector<float>& grad_output) {
  const std::vector<double> output = reference::attention(problem.call()).output;
  double sum = 0.0;
  for (std::size_t at = 0; at < output.size(); ++at) sum += output[at] * grad_output[at];
  return sum;
}

/// The derivative of the loss by one number of the problem.
double central_difference(Problem& problem, const std::vector<float>& grad_output, float& number) {
  const float middle = number;
  number = middle + 0x1p-10F;
  const double above = number;
  const double loss_above = loss(problem, grad_output);
  number = middle - 0x1p-10F;
  const double step = above - number;
  const double loss_below = loss(problem, grad_output);
  number = middle;
  return (loss_above - loss_below) / step;
}

void expect_central_differences(Problem& problem, const std::vector<float>& grad_output, std::vector<float>& numbers,
                                const std::vector<double>& gradients, const char* name) {
  for (std::size_t at = 0; at < numbers.size(); ++at) {
    if (std::isinf(numbers[at])) continue;
    ASSERT_NEAR(gradients[at], central_difference(problem, grad_output, numbers[at]), 1e-4)
        << "gradient of " << name << ", element " << at;
  }
}

TEST(reference_gradients, R20_the_reference_agrees_with_central_differences_for_every_option) {
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    Problem problem = Problem::random({static_cast<Index>(1 + seed % 2), 4, 2, 5, 7, 3, 4}, seed);
    Random random(seed + 100);
    problem.rules.causal = seed % 3 == 0;
    if (seed % 4 == 1) problem.rules.window_left = 2;
    problem.offsets.assign(static_cast<std::size_t>(problem.shape.batch), 2);
    if (seed % 2 == 0) problem.softcap = 0.7F;
    if (seed % 3 != 1) problem.sinks = random.vector(problem.shape.heads);
    if (seed % 3 != 2) {
      problem.bias.resize(problem.shape, {seed % 2 == 0, seed % 4 == 0, seed % 5 == 0, seed % 6 == 0}, 0.0F);
      problem.bias.data = random.vector(static_cast<Index>(problem.bias.data.size()));
      problem.bias.data[0] = -infinity;
    }
    if (seed % 4 == 2) problem.slopes = {0.5F, 0.25F, 0.125F, 0.1F};
    if (seed % 4 == 3) problem.dropout = {0.3F, seed};
    const std::vector<float> grad_output = random_grad_output(problem, random);
    const reference::AttentionGradients exact =
        reference::attention_gradients(problem.call(), grad_output, static_cast<Index>(problem.bias.data.size()));
    expect_central_differences(problem, grad_output, problem.queries, exact.queries, "queries");
    expect_central_differences(problem, grad_output, problem.keys, exact.keys, "keys");
    expect_central_differences(problem, grad_output, problem.values, exact.values, "values");
    expect_central_differences(problem, grad_output, problem.bias.data, exact.bias, "bias");
    expect_central_differences(problem, grad_output, problem.sinks, exact.sinks, "sinks");
  }
}

TEST(attention_backward, R8_R9_R10_R20_hold_for_any_shape_mask_and_option) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const Problem problem = random_problem(random);
    ASSERT_TRUE(keeps_every_gradient_rule(problem, random)) << "seed " << seed;
  }
}

TEST(attention_backward, R20_every_tail_length_of_queries_keys_and_widths) {
  Random random(20);
  for (const Index length : tail_lengths(kernels::panel_width)) {
    for (const bool causal : {false, true}) {
      Problem problem = Problem::random({1, 2, 1, length, length + 3, 1 + length % 19, 1 + length % 23}, 7);
      problem.rules.causal = causal;
      const std::vector<float> grad_output = random_grad_output(problem, random);
      ASSERT_TRUE(matches(problem, grad_output, differentiate(problem, grad_output))) << "length " << length;
    }
  }
}

TEST(attention_backward, R20_keys_in_several_parts_with_every_kind_of_sum) {
  Problem problem = Problem::random({1, 2, 1, 150, 1600, 8, 12}, 3);
  Random random(21);
  problem.rules.causal = true;
  problem.offsets = {1400};
  problem.bias.resize(problem.shape, {.head = true}, 0.0F);
  problem.bias.data = random.vector(static_cast<Index>(problem.bias.data.size()));
  problem.sinks = {0.5F, -0.5F};
  ASSERT_TRUE(keeps_every_gradient_rule(problem, random));
}

TEST(attention_backward, R15_the_same_bits_with_1_2_3_and_4_threads) {
  Random random(15);
  for (int round = 0; round < 12; ++round) {
    Problem problem = random_problem(random);
    const std::vector<float> grad_output = random_grad_output(problem, random);
    const Gradients alone = differentiate(problem, grad_output);
    for (const Index wanted : {2, 3, 4}) {
      set_threads(wanted);
      ASSERT_TRUE(same_gradients(alone, differentiate(problem, grad_output))) << wanted << " threads";
    }
    set_threads(1);
  }
}

TEST(attention_backward, R15_the_same_bits_with_threads_over_several_parts) {
  Problem problem = Problem::random({2, 4, 2, 100, 1300, 16, 16}, 5);
  Random random(16);
  problem.bias.resize(problem.shape, {.batch = true, .query = true}, 0.25F);
  const std::vector<float> grad_output = random_grad_output(problem, random);
  const Gradients alone = differentiate(problem, grad_output);
  for (const Index wanted : {2, 3, 4}) {
    set_threads(wanted);
    ASSERT_TRUE(same_gradients(alone, differentiate(problem, grad_output))) << wanted << " threads";
  }
  set_threads(1);
}

TEST(attention_backward, R15_a_batch_row_alone_has_the_bits_that_it_has_in_a_batch) {
  const AttentionShape shape{3, 4, 2, 50, 70, 9, 10};
  Problem batch = Problem::random(shape, 8);
  batch.rules.causal = true;
  Random random(17);
  const std::vector<float> grad_output = random_grad_output(batch, random);
  const Gradients together = differentiate(batch, grad_output);
  for (Index b = 0; b < shape.batch; ++b) {
    const auto slice = [b, &shape](const std::vector<float>& all) {
      const auto size = static_cast<std::ptrdiff_t>(all.size()) / shape.batch;
      return std::vector<float>(all.begin() + b * size, all.begin() + (b + 1) * size);
    };
    Problem row = batch;
    row.shape.batch = 1;
    row.queries = slice(batch.queries);
    row.keys = slice(batch.keys);
    row.values = slice(batch.values);
    const Gradients alone = differentiate(row, slice(grad_output));
    EXPECT_TRUE(all_same_bits(alone.queries, slice(together.queries)));
    EXPECT_TRUE(all_same_bits(alone.keys, slice(together.keys)));
    EXPECT_TRUE(all_same_bits(alone.values, slice(together.values)));
  }
}

TEST(attention_backward, R9_rows_that_see_nothing_and_keys_that_nothing_sees_have_gradient_0) {
  Problem problem = Problem::random({1, 1, 1, 30, 40, 8, 8}, 9);
  problem.rules.causal = true;
  problem.offsets = {-5};
  Random random(18);
  const std::vector<float> grad_output = random_grad_output(problem, random);
  const Gradients gradients = differentiate(problem, grad_output);
  for (Index at = 0; at < 5 * 8; ++at) ASSERT_EQ(gradients.queries[at], 0.0F);
  for (Index at = 25 * 8; at < 40 * 8; ++at) {
    ASSERT_EQ(gradients.keys[at], 0.0F);
    ASSERT_EQ(gradients.values[at], 0.0F);
  }
  EXPECT_NE(gradients.keys[24 * 8], 0.0F);
}

TEST(attention_backward, R9_what_the_gradient_of_a_row_that_sees_nothing_holds_reaches_no_gradient) {
  for (const bool dropped : {false, true}) {
    for (const float softcap : {0.0F, 2.0F}) {
      Problem problem = Problem::random({2, 2, 1, 130, 140, 8, 8}, 22);
      problem.rules.causal = true;
      problem.offsets = {-5, -70};
      problem.sinks = {0.5F, -2.0F};
      problem.softcap = softcap;
      if (dropped) problem.dropout = {0.2F, 4};
      problem.bias.resize(problem.shape, {.batch = true, .head = true}, 0.25F);
      // Rows 20 … 22 of both batch rows, by the bias and not by the band.
      std::fill_n(problem.bias.data.begin() + 20 * 140, 3 * 140, -infinity);
      Random random(23);
      const std::vector<float> grad_output = random_grad_output(problem, random);
      const std::vector<float> poisoned = with_poison_in_blind_rows(problem, grad_output);
      ASSERT_EQ(std::count_if(poisoned.begin(), poisoned.end(), [](float value) { return !std::isfinite(value); }),
                2 * (5 + 3 + 70) * 8);
      const Gradients clean = differentiate(problem, grad_output);
      EXPECT_TRUE(same_gradients(clean, differentiate(problem, poisoned)));
      Problem blind = problem;
      for (Index row = 0; row < problem.rows(); ++row) {
        if (!std::isfinite(poisoned[row * 8])) std::fill_n(blind.queries.begin() + row * 8, 8, not_a_number);
      }
      EXPECT_TRUE(same_gradients(clean, differentiate(blind, poisoned)));
    }
  }
}

TEST(attention_backward, a_NaN_in_the_gradient_of_a_row_that_sees_a_key_reaches_its_sink) {
  Problem problem = Problem::random({1, 2, 1, 4, 4, 8, 8}, 24);
  problem.sinks = {0.5F, -2.0F};
  Random random(25);
  std::vector<float> grad_output = random_grad_output(problem, random);
  grad_output[4 * 8 + 1] = not_a_number;  // head 1
  const Gradients gradients = differentiate(problem, grad_output);
  EXPECT_TRUE(std::isfinite(gradients.sinks[0]));
  EXPECT_TRUE(std::isnan(gradients.sinks[1]));
}

TEST(attention_backward, R10_a_NaN_in_a_query_or_its_gradient_reaches_only_keys_that_it_sees) {
  for (const bool in_query : {false, true}) {
    Problem problem = Problem::random({1, 1, 1, 60, 60, 8, 8}, 10);
    problem.rules.causal = true;
    Random random(19);
    std::vector<float> grad_output = random_grad_output(problem, random);
    const Gradients clean = differentiate(problem, grad_output);
    (in_query ? problem.queries : grad_output)[30 * 8 + 3] = not_a_number;
    const Gradients poisoned = differentiate(problem, grad_output);
    for (Index row = 0; row < 60; ++row) {
      for (Index d = 0; d < 8; ++d) {
        const Index at = row * 8 + d;
        if (row > 30) {
          ASSERT_TRUE(same_bits(clean.keys[at], poisoned.keys[at])) << "key " << row;
          ASSERT_TRUE(same_bits(clean.values[at], poisoned.values[at])) << "value " << row;
        }
        if (row != 30) {
          ASSERT_TRUE(same_bits(clean.queries[at], poisoned.queries[at])) << "query " << row;
        }
      }
    }
    EXPECT_NE(poisoned.keys[8], poisoned.keys[8]);
  }
}

TEST(attention_backward, R21_no_queries_give_zero_gradients_of_keys_and_no_keys_of_queries) {
  const Problem no_queries = Problem::random({1, 2, 1, 0, 5, 3, 4}, 11);
  const Gradients of_keys = differentiate(no_queries, {});
  ASSERT_EQ(of_keys.status, Status::ok);
  EXPECT_EQ(of_keys.keys, std::vector<float>(15));
  EXPECT_EQ(of_keys.values, std::vector<float>(20));
  const Problem no_keys = Problem::random({1, 2, 1, 5, 0, 3, 4}, 12);
  const Gradients of_queries = differentiate(no_keys, std::vector<float>(40, 1.0F));
  ASSERT_EQ(of_queries.status, Status::ok);
  EXPECT_EQ(of_queries.queries, std::vector<float>(30));
}

TEST(attention_backward, what_is_missing_or_contradicts_itself_is_refused) {
  Problem problem = Problem::random({1, 1, 1, 3, 3, 2, 2}, 13);
  std::vector<float> buffer(12);
  const ConstView in{buffer.data(), 6, 6, 2};
  const MutableView out{buffer.data(), 6, 6, 2};
  AttentionBackwardCall call{problem.call(), in, buffer.data(), in, out, out, out};
  EXPECT_EQ(validate_attention_backward(call), Status::ok);
  const auto status_with = [&call](const std::function<void(AttentionBackwardCall&)>& change) {
    AttentionBackwardCall changed = call;
    change(changed);
    return attention_backward(changed, nullptr, 0);
  };
  EXPECT_EQ(status_with([](auto&) {}), Status::workspace_too_small);
  EXPECT_EQ(status_with([](auto& c) { c.output.data = nullptr; }), Status::null_pointer);
  EXPECT_EQ(status_with([](auto& c) { c.log_sum_exp = nullptr; }), Status::null_pointer);
  EXPECT_EQ(status_with([](auto& c) { c.grad_output.data = nullptr; }), Status::null_pointer);
  EXPECT_EQ(status_with([](auto& c) { c.grad_queries.data = nullptr; }), Status::null_pointer);
  EXPECT_EQ(status_with([](auto& c) { c.grad_keys.data = nullptr; }), Status::null_pointer);
  EXPECT_EQ(status_with([](auto& c) { c.grad_values.data = nullptr; }), Status::null_pointer);
  EXPECT_EQ(status_with([](auto& c) { c.forward.inputs.keys.data = nullptr; }), Status::null_pointer);
  EXPECT_EQ(status_with([&](auto& c) { c.grad_bias = buffer.data(); }), Status::invalid_argument);
  EXPECT_EQ(status_with([&](auto& c) { c.grad_sinks = buffer.data(); }), Status::invalid_argument);
  for (const float p : {-0.1F, 1.0F, not_a_number}) {
    EXPECT_EQ(status_with([p](auto& c) { c.forward.scores.dropout.p = p; }), Status::invalid_argument);
  }
}

}  // namespace
}  // namespace lookback::test
