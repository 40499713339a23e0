#include "lookback/multi_head_attention.hpp"

#include <algorithm>

#include "problem.hpp"

namespace lookback::test {
namespace {

/// One linear layer with its plain and its packed weight.
struct Projection {
  Index inputs, outputs;
  std::vector<float> weight, bias, panels;

  Projection(Index input_count, Index output_count, bool with_bias, Random& random)
      : inputs(input_count),
        outputs(output_count),
        weight(random.vector(input_count * output_count, 0.5F)),
        bias(with_bias ? random.vector(output_count) : std::vector<float>{}),
        panels(static_cast<std::size_t>(packed_linear_bytes(input_count, output_count) / sizeof(float))) {
    EXPECT_EQ(pack_linear({weight.data(), WeightType::f32, false, 0, outputs}, inputs, outputs, {}, panels.data()),
              Status::ok);
  }

  [[nodiscard]] PackedLinear packed() const {
    return {panels.data(), bias.empty() ? nullptr : bias.data(), inputs, outputs, {}};
  }

  [[nodiscard]] std::vector<float> apply(const std::vector<float>& input) const {
    const Index rows = static_cast<Index>(input.size()) / inputs;
    std::vector<float> output(static_cast<std::size_t>(rows * outputs));
    EXPECT_EQ(linear_forward(packed(), input.data(), rows, output.data(), nullptr, 0), Status::ok);
    return output;
  }
};

struct Dimensions {
  Index embed_dim, key_dim, value_dim, outputs;
  bool bias;
};

struct Layer {
  AttentionShape shape;
  Random random{17};
  Projection query, key, value, output_projection;
  std::vector<float> input, memory_keys, memory_values, output, log_sum_exp, weights;
  MultiHeadAttentionCall call;

  Layer(const AttentionShape& extents, const Dimensions& dimensions)
      : shape(extents),
        query(dimensions.embed_dim, extents.heads * extents.head_dim, dimensions.bias, random),
        key(dimensions.key_dim, extents.kv_heads * extents.head_dim, dimensions.bias, random),
        value(dimensions.value_dim, extents.kv_heads * extents.value_dim, dimensions.bias, random),
        output_projection(extents.heads * extents.value_dim, dimensions.outputs, dimensions.bias, random),
        input(random.vector(extents.batch * extents.query_length * dimensions.embed_dim)),
        memory_keys(random.vector(extents.batch * extents.key_length * dimensions.key_dim)),
        memory_values(random.vector(extents.batch * extents.key_length * dimensions.value_dim)),
        output(static_cast<std::size_t>(extents.batch * extents.query_length * dimensions.outputs), untouched),
        log_sum_exp(static_cast<std::size_t>(extents.batch * extents.heads * extents.query_length), untouched),
        weights(static_cast<std::size_t>(extents.batch * extents.heads * extents.query_length * extents.key_length),
                untouched) {
    call.attention.shape = shape;
    call.attention.scores.scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
    call.attention.outputs.log_sum_exp = log_sum_exp.data();
    call.attention.outputs.weights.data = weights.empty() ? nullptr : weights.data();
    call.attention.outputs.weights.head_count = shape.heads;
    call.attention.outputs.weights.query_to = shape.query_length;
    call.input = input.data();
    call.memory_keys = memory_keys.data();
    call.memory_values = memory_values.data();
    call.output = output.data();
    call.query = query.packed();
    call.key = key.packed();
    call.value = value.packed();
    call.output_projection = output_projection.packed();
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  [[nodiscard]] Status forward() const {
    const Scratch scratch(multi_head_attention_workspace_bytes(call));
    return multi_head_attention_forward(call, scratch.data(), scratch.bytes());
  }

  /// The attention between the projections, on the layer's own projected operands.
  [[nodiscard]] Problem problem() const {
    Problem problem;
    problem.shape = shape;
    problem.folded = true;
    problem.queries = query.apply(input);
    problem.keys = key.apply(memory_keys);
    problem.values = value.apply(memory_values);
    problem.rules.causal = call.attention.visibility.causal;
    problem.scale = call.attention.scores.scale;
    return problem;
  }

  [[nodiscard]] bool nothing_is_written() const {
    const auto is_untouched = [](float element) { return same_bits(element, untouched); };
    return std::all_of(output.begin(), output.end(), is_untouched) &&
           std::all_of(log_sum_exp.begin(), log_sum_exp.end(), is_untouched) &&
           std::all_of(weights.begin(), weights.end(), is_untouched);
  }
};

AttentionShape layer_shape(Index batch, Index heads, Index kv_heads, Index queries, Index keys, Index head_dim,
                           Index value_dim) {
  AttentionShape shape;
  shape.batch = batch;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.query_length = queries;
  shape.key_length = keys;
  shape.head_dim = head_dim;
  shape.value_dim = value_dim;
  return shape;
}

/// [B, H, L, W] → [B, L, H·W].
template <typename T>
std::vector<T> folded(const std::vector<T>& source, const AttentionShape& shape) {
  std::vector<T> result(source.size());
  for (Index at = 0; at < static_cast<Index>(source.size()); ++at) {
    const Index c = at % shape.value_dim;
    const Index row = at / shape.value_dim % shape.query_length;
    const Index head = at / shape.value_dim / shape.query_length % shape.heads;
    const Index batch = at / shape.value_dim / shape.query_length / shape.heads;
    result[((batch * shape.query_length + row) * shape.heads + head) * shape.value_dim + c] = source[at];
  }
  return result;
}

void check(const AttentionShape& shape, const Dimensions& dimensions, bool causal) {
  Layer layer(shape, dimensions);
  layer.call.attention.visibility.causal = causal;
  ASSERT_EQ(layer.forward(), Status::ok);

  const Problem problem = layer.problem();
  const Result parts = run_all_weights(problem, WeightsKind::softmax);
  EXPECT_TRUE(all_same_bits(layer.output, layer.output_projection.apply(folded(parts.output, shape))))
      << "the same steps, one by one";
  EXPECT_TRUE(all_same_bits(layer.log_sum_exp, parts.log_sum_exp));
  EXPECT_TRUE(all_same_bits(layer.weights, parts.weights));

  const auto project = [](const Projection& layer_part, const std::vector<float>& source) {
    const std::vector<double> wide(source.begin(), source.end());
    const Index rows = static_cast<Index>(source.size()) / layer_part.inputs;
    const std::vector<double> exact =
        reference::linear(wide, layer_part.weight, layer_part.bias, rows, layer_part.inputs, layer_part.outputs);
    return std::vector<float>(exact.begin(), exact.end());
  };
  Problem exact = problem;
  exact.queries = project(layer.query, layer.input);
  exact.keys = project(layer.key, layer.memory_keys);
  exact.values = project(layer.value, layer.memory_values);
  const std::vector<double> heads = folded(reference::attention(exact.call()).output, shape);
  const std::vector<double> expected = reference::linear(
      heads, layer.output_projection.weight, layer.output_projection.bias, shape.batch * shape.query_length,
      layer.output_projection.inputs, layer.output_projection.outputs);
  double largest = 0.0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  EXPECT_TRUE(all_near(layer.output, expected, 1e-5 * largest)) << "M4";
}

TEST(multi_head_attention, M2_cross_attention_takes_keys_and_values_from_memories_of_their_own_widths) {
  check(layer_shape(2, 3, 3, 9, 14, 5, 4), {10, 7, 11, 13, true}, false);
  check(layer_shape(1, 4, 2, kernels::tile_queries + 1, kernels::block_keys + 1, 4, 3),
        {6, 5, 9, kernels::panel_width, false}, false);
}

TEST(multi_head_attention, M2_causal_self_attention_with_and_without_biases) {
  check(layer_shape(2, 2, 2, 17, 17, 8, 8), {16, 16, 16, 16, true}, true);
  check(layer_shape(1, 2, 1, 31, 31, 3, 5), {6, 6, 6, 6, false}, true);
}

TEST(multi_head_attention, M2_projected_memory_gives_the_bits_of_projecting_it_in_the_call) {
  Layer layer(layer_shape(2, 4, 2, 5, 21, 3, 4), {12, 12, 12, 12, true});
  ASSERT_EQ(layer.forward(), Status::ok);
  const std::vector<float> output = layer.output;
  const std::vector<float> keys = layer.key.apply(layer.memory_keys);
  const std::vector<float> values = layer.value.apply(layer.memory_values);
  layer.call.projected_keys = keys.data();
  layer.call.projected_values = values.data();
  layer.call.memory_keys = nullptr;
  layer.call.memory_values = nullptr;
  std::fill(layer.output.begin(), layer.output.end(), untouched);
  ASSERT_EQ(layer.forward(), Status::ok);
  EXPECT_TRUE(all_same_bits(layer.output, output));
}

TEST(multi_head_attention, R15_a_batch_row_alone_has_the_bits_it_has_in_a_batch) {
  Layer layer(layer_shape(3, 2, 2, 6, 8, 4, 4), {8, 8, 8, 8, true});
  ASSERT_EQ(layer.forward(), Status::ok);
  const std::vector<float> together = layer.output;
  layer.call.attention.shape.batch = 1;
  layer.call.attention.outputs = {};
  for (Index b = 0; b < 3; ++b) {
    layer.call.input = layer.input.data() + b * 6 * 8;
    layer.call.memory_keys = layer.memory_keys.data() + b * 8 * 8;
    layer.call.memory_values = layer.memory_values.data() + b * 8 * 8;
    ASSERT_EQ(layer.forward(), Status::ok);
    for (Index at = 0; at < 6 * 8; ++at)
      ASSERT_TRUE(same_bits(layer.output[at], together[b * 6 * 8 + at])) << "batch row " << b;
  }
}

TEST(multi_head_attention, R21_no_memory_leaves_the_bias_and_no_queries_leave_nothing) {
  Layer no_keys(layer_shape(1, 2, 2, 3, 0, 4, 4), {8, 8, 8, 5, true});
  ASSERT_EQ(no_keys.forward(), Status::ok);
  for (Index at = 0; at < 15; ++at) EXPECT_EQ(no_keys.output[at], no_keys.output_projection.bias[at % 5]);
  Layer no_queries(layer_shape(1, 2, 2, 0, 4, 4, 4), {8, 8, 8, 5, true});
  EXPECT_EQ(no_queries.forward(), Status::ok);
}

void expect_refusal(Status expected, void (*spoil)(Layer&)) {
  Layer layer(layer_shape(2, 4, 2, 5, 6, 3, 3), {12, 12, 12, 12, true});
  spoil(layer);
  EXPECT_EQ(layer.forward(), expected);
  EXPECT_TRUE(layer.nothing_is_written());
}

TEST(multi_head_attention, R15_slices_give_the_bits_of_one_piece) {
  for (const Index queries : {0, 1, 130, 300}) {
    Layer whole(layer_shape(2, 4, 2, queries, 41, 3, 5), {12, 7, 9, 10, true});
    Layer sliced(layer_shape(2, 4, 2, queries, 41, 3, 5), {12, 7, 9, 10, true});
    ASSERT_EQ(whole.forward(), Status::ok);
    const Scratch scratch(multi_head_attention_workspace_bytes(sliced.call));
    Index items = -1;
    ASSERT_EQ(multi_head_attention_begin(sliced.call, scratch.data(), scratch.bytes(), items), Status::ok);
    EXPECT_GE(items, queries / 24);
    for (Index from = 0, step = 1; from < items; from += step++) {
      multi_head_attention_run(scratch.data(), from, std::min(items, from + step));
    }
    ASSERT_EQ(multi_head_attention_end(scratch.data(), true), Status::ok);
    EXPECT_TRUE(all_same_bits(sliced.output, whole.output));
    EXPECT_TRUE(all_same_bits(sliced.log_sum_exp, whole.log_sum_exp));
    EXPECT_TRUE(all_same_bits(sliced.weights, whole.weights));
  }
}

TEST(multi_head_attention, a_run_that_is_not_finished_can_end_anywhere) {
  Layer layer(layer_shape(1, 2, 2, 300, 300, 4, 4), {8, 8, 8, 8, true});
  const Scratch scratch(multi_head_attention_workspace_bytes(layer.call));
  Index items = 0;
  for (Index part = 0; part < 4; ++part) {
    ASSERT_EQ(multi_head_attention_begin(layer.call, scratch.data(), scratch.bytes(), items), Status::ok);
    multi_head_attention_run(scratch.data(), 0, items * part / 4);
    EXPECT_EQ(multi_head_attention_end(scratch.data(), false), Status::ok);
  }
  ASSERT_EQ(layer.forward(), Status::ok);
}

TEST(multi_head_attention, M1_widths_that_do_not_fit_the_heads_are_refused) {
  expect_refusal(Status::invalid_heads, [](Layer& layer) { layer.call.query.outputs = 11; });
  expect_refusal(Status::invalid_heads, [](Layer& layer) { layer.call.key.outputs = 12; });
  expect_refusal(Status::invalid_heads, [](Layer& layer) { layer.call.value.outputs = 5; });
  expect_refusal(Status::invalid_heads, [](Layer& layer) { layer.call.output_projection.inputs = 6; });
}

TEST(multi_head_attention, refuses_what_it_cannot_calculate_and_writes_nothing) {
  expect_refusal(Status::null_pointer, [](Layer& layer) { layer.call.input = nullptr; });
  expect_refusal(Status::null_pointer, [](Layer& layer) { layer.call.output = nullptr; });
  expect_refusal(Status::null_pointer, [](Layer& layer) { layer.call.memory_keys = nullptr; });
  expect_refusal(Status::null_pointer, [](Layer& layer) { layer.call.memory_values = nullptr; });
  expect_refusal(Status::null_pointer, [](Layer& layer) { layer.call.projected_keys = layer.call.memory_keys; });
  expect_refusal(Status::null_pointer, [](Layer& layer) { layer.call.query.weight = nullptr; });
  expect_refusal(Status::null_pointer, [](Layer& layer) { layer.call.key.weight = nullptr; });
  expect_refusal(Status::null_pointer, [](Layer& layer) { layer.call.value.weight = nullptr; });
  expect_refusal(Status::null_pointer, [](Layer& layer) { layer.call.output_projection.weight = nullptr; });
  expect_refusal(Status::invalid_shape, [](Layer& layer) { layer.call.output_projection.outputs = 0; });
  expect_refusal(Status::invalid_shape, [](Layer& layer) { layer.call.key.inputs = 0; });
  expect_refusal(Status::invalid_shape, [](Layer& layer) { layer.call.attention.shape.batch = 0; });
  expect_refusal(Status::invalid_argument, [](Layer& layer) { layer.call.attention.scores.scale = infinity; });
  expect_refusal(Status::invalid_range, [](Layer& layer) { layer.call.attention.outputs.weights.query_to = 6; });
}

TEST(multi_head_attention, a_workspace_one_byte_too_small_is_refused) {
  Layer layer(layer_shape(2, 4, 2, 5, 6, 3, 3), {12, 12, 12, 12, true});
  const Scratch scratch(multi_head_attention_workspace_bytes(layer.call));
  EXPECT_EQ(multi_head_attention_forward(layer.call, scratch.data(), scratch.bytes() - 1), Status::workspace_too_small);
  EXPECT_EQ(multi_head_attention_forward(layer.call, nullptr, scratch.bytes()), Status::workspace_too_small);
  EXPECT_TRUE(layer.nothing_is_written());
}

}  // namespace
}  // namespace lookback::test
