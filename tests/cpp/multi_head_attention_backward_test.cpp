// The numbers are held against float64 in tests/js/layer-gradients.test.ts; here are memory, threads and refusals.

#include <functional>

#include "lookback/multi_head_attention.hpp"
#include "lookback/parallel.hpp"
#include "support.hpp"

namespace lookback::test {
namespace {

constexpr Index embed_dim = 24;

/// A layer with self-attention, and room for all gradients.
struct Layer {
  explicit Layer(Index batch, Index length) : rows(batch * length) {
    Random random(5);
    for (auto& panels : weights) {
      const std::vector<float> plain = random.vector(embed_dim * embed_dim, 0.4F);
      panels.resize(static_cast<std::size_t>(packed_linear_bytes(embed_dim, embed_dim) / sizeof(float)));
      EXPECT_EQ(
          pack_linear({plain.data(), WeightType::f32, false, 0, embed_dim}, embed_dim, embed_dim, {}, panels.data()),
          Status::ok);
    }
    input = random.vector(rows * embed_dim);
    grad_output = random.vector(rows * embed_dim);
    grad_input.assign(static_cast<std::size_t>(rows * embed_dim), untouched);
    for (auto& each : grad_weights) each.assign(static_cast<std::size_t>(embed_dim * embed_dim), untouched);
    for (auto& each : grad_biases) each.assign(static_cast<std::size_t>(embed_dim), untouched);
    for (Index row = 0; row < rows; ++row)
      positions.push_back(static_cast<std::int32_t>(row % std::max<Index>(length, 1)));
    MultiHeadAttentionCall& forward = call.forward;
    forward.attention.shape = {batch, 4, 4, length, length, embed_dim / 4, embed_dim / 4};
    forward.attention.visibility.causal = true;
    forward.attention.scores.scale = 0.4F;
    forward.input = forward.memory_keys = forward.memory_values = input.data();
    PackedLinear* layers[] = {&forward.query, &forward.key, &forward.value, &forward.output_projection};
    ProjectionGradients* gradients[] = {&call.query, &call.key, &call.value, &call.output_projection};
    for (std::size_t n = 0; n < 4; ++n) {
      *layers[n] = {weights[n].data(), nullptr, embed_dim, embed_dim, {}};
      *gradients[n] = {grad_weights[n].data(), grad_biases[n].data()};
    }
    forward.rotary.dims = embed_dim / 4;
    forward.positions = positions.data();
    call.grad_output = grad_output.data();
    call.grad_input = call.grad_memory_keys = call.grad_memory_values = grad_input.data();
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  Status backward() const {
    const Scratch scratch(multi_head_attention_backward_workspace_bytes(call));
    return multi_head_attention_backward(call, scratch.data(), scratch.bytes());
  }

  Index rows;
  std::vector<float> weights[4], input, grad_output, grad_input, grad_weights[4], grad_biases[4];
  std::vector<std::int32_t> positions;
  MultiHeadAttentionBackwardCall call;
};

TEST(multi_head_attention_backward, R15_the_same_bits_with_1_2_3_and_4_threads) {
  const Layer alone(3, 70);
  ASSERT_EQ(alone.backward(), Status::ok);
  for (const Index wanted : {2, 3, 4}) {
    set_threads(wanted);
    const Layer shared(3, 70);
    ASSERT_EQ(shared.backward(), Status::ok);
    EXPECT_TRUE(all_same_bits(alone.grad_input, shared.grad_input));
    for (std::size_t n = 0; n < 4; ++n) {
      EXPECT_TRUE(all_same_bits(alone.grad_weights[n], shared.grad_weights[n]));
      EXPECT_TRUE(all_same_bits(alone.grad_biases[n], shared.grad_biases[n]));
    }
  }
  set_threads(1);
}

TEST(multi_head_attention_backward, R21_no_tokens_give_parameters_a_gradient_of_0) {
  const Layer layer(2, 0);
  ASSERT_EQ(layer.backward(), Status::ok);
  for (const auto& each : layer.grad_weights) EXPECT_EQ(each, std::vector<float>(each.size()));
  for (const auto& each : layer.grad_biases) EXPECT_EQ(each, std::vector<float>(each.size()));
}

TEST(multi_head_attention_backward, B4_what_is_missing_is_refused_and_nothing_is_written) {
  Layer layer(1, 5);
  const MultiHeadAttentionBackwardCall whole = layer.call;
  const auto status_with = [&](const std::function<void(MultiHeadAttentionBackwardCall&)>& change) {
    layer.call = whole;
    change(layer.call);
    return layer.backward();
  };
  EXPECT_EQ(multi_head_attention_backward(whole, nullptr, 0), Status::workspace_too_small);
  EXPECT_EQ(status_with([](auto& c) { c.grad_output = nullptr; }), Status::null_pointer);
  EXPECT_EQ(status_with([](auto& c) { c.grad_input = nullptr; }), Status::null_pointer);
  EXPECT_EQ(status_with([](auto& c) { c.grad_memory_keys = nullptr; }), Status::null_pointer);
  EXPECT_EQ(status_with([](auto& c) { c.query.weight = nullptr; }), Status::null_pointer);
  EXPECT_EQ(status_with([](auto& c) { c.forward.positions = nullptr; }), Status::null_pointer);
  EXPECT_EQ(status_with([](auto& c) { c.forward.key.outputs = 6; }), Status::invalid_heads);
  EXPECT_EQ(status_with([](auto& c) { c.forward.projected_keys = c.forward.input; }), Status::invalid_argument);
  for (const float value : layer.grad_input) EXPECT_EQ(value, untouched);
}

}  // namespace
}  // namespace lookback::test
