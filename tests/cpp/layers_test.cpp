#include "lookback/activation.hpp"
#include "lookback/embedding.hpp"
#include "lookback/norm.hpp"
#include "packed_weight.hpp"
#include "support.hpp"

namespace lookback::test {
namespace {

std::vector<double> exact_norm(NormKind kind, const std::vector<float>& row, float epsilon) {
  const auto width = static_cast<double>(row.size());
  double mean = 0;
  for (const float x : row) mean += kind == NormKind::layer_norm ? static_cast<double>(x) / width : 0.0;
  double variance = 0;
  for (const float x : row) variance += (x - mean) * (x - mean) / width;
  std::vector<double> result;
  for (const float x : row) result.push_back((x - mean) / std::sqrt(variance + static_cast<double>(epsilon)));
  return result;
}

TEST(norm, each_row_is_the_float64_reference_at_every_width) {
  Random random(1);
  for (const NormKind kind : {NormKind::layer_norm, NormKind::rms_norm}) {
    for (const Index width : tail_lengths(4 * simd::lanes)) {
      if (width == 0) continue;
      for (const bool affine : {false, true}) {
        const Index rows = 3;
        Unaligned input(random.vector(rows * width, 3.0F));
        for (Index i = 0; i < rows * width; ++i) input[i] += 5.0F;
        Unaligned weight(random.vector(width));
        Unaligned bias(random.vector(width));
        Unaligned output(rows * width, untouched);
        const NormCall call{kind,
                            1e-5F,
                            width,
                            affine ? weight.data() : nullptr,
                            affine ? bias.data() : nullptr,
                            {input.data(), 0, 0, width},
                            {output.data(), 0, 0, width},
                            1,
                            1,
                            rows};
        ASSERT_EQ(norm_forward(call), Status::ok);
        for (Index row = 0; row < rows; ++row) {
          const std::vector<float> values(input.data() + row * width, input.data() + (row + 1) * width);
          const std::vector<double> exact = exact_norm(kind, values, 1e-5F);
          for (Index i = 0; i < width; ++i) {
            const double expected = affine ? exact[i] * weight[i] + bias[i] : exact[i];
            ASSERT_NEAR(output[row * width + i], expected, 1e-5) << width << " wide, row " << row << ", " << i;
          }
        }
      }
    }
  }
}

TEST(norm, in_place_and_through_strides_it_gives_the_same_bits) {
  Random random(2);
  const Index width = 11;
  const std::vector<float> source = random.vector(2 * 3 * 4 * width);  // [B, L, heads, width]
  std::vector<float> in_place = source;
  std::vector<float> apart(source.size(), untouched);
  NormCall call{NormKind::rms_norm, 1e-6F, width, nullptr, nullptr, {}, {}, 2, 4, 3};
  call.input = {source.data(), 12 * width, width, 4 * width};
  call.output = {apart.data(), 12 * width, width, 4 * width};
  ASSERT_EQ(norm_forward(call), Status::ok);
  call.input.data = in_place.data();
  call.output.data = in_place.data();
  ASSERT_EQ(norm_forward(call), Status::ok);
  EXPECT_TRUE(all_same_bits(in_place, apart));
  std::vector<float> alone(width);
  const NormCall one{
      NormKind::rms_norm,          1e-6F, width, nullptr, nullptr, {source.data() + 5 * width, 0, 0, width},
      {alone.data(), 0, 0, width}, 1,     1,     1};
  ASSERT_EQ(norm_forward(one), Status::ok);
  EXPECT_TRUE(all_same_bits(alone, {apart.begin() + 5 * width, apart.begin() + 6 * width}));
}

TEST(norm, a_row_of_one_number_or_of_zeros_is_finite_and_NaN_stays_in_its_row) {
  std::vector<float> rows{7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 1, not_a_number, 2, 3, 4};
  const NormCall call{NormKind::layer_norm,   1e-5F, 5, nullptr, nullptr, {rows.data(), 0, 0, 5},
                      {rows.data(), 0, 0, 5}, 1,     1, 3};
  ASSERT_EQ(norm_forward(call), Status::ok);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(rows[i], 0.0F);
  for (int i = 10; i < 15; ++i) EXPECT_TRUE(std::isnan(rows[i]));
}

TEST(norm, refuses_what_it_cannot_calculate) {
  float x = 1;
  const auto status = [&](NormKind kind, float epsilon, Index width, const float* input) {
    return norm_forward({kind, epsilon, width, nullptr, nullptr, {input, 0, 0, 1}, {&x, 0, 0, 1}, 1, 1, 1});
  };
  EXPECT_EQ(status(NormKind::rms_norm, 1e-5F, 0, &x), Status::invalid_shape);
  EXPECT_EQ(status(NormKind::rms_norm, -1.0F, 1, &x), Status::invalid_argument);
  EXPECT_EQ(status(NormKind::rms_norm, not_a_number, 1, &x), Status::invalid_argument);
  EXPECT_EQ(status(NormKind::layer_norm, 1e-5F, 1, nullptr), Status::null_pointer);
}

double exact_activation(Activation activation, double x) {
  switch (activation) {
    case Activation::gelu_tanh: return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::gelu_erf: return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case Activation::silu: return x / (1 + std::exp(-x));
  }
  return 0;
}

constexpr Activation activations[] = {Activation::gelu_tanh, Activation::gelu_erf, Activation::silu};

TEST(activation, each_element_is_the_float64_reference_at_every_length) {
  Random random(3);
  for (const Activation activation : activations) {
    for (const Index count : tail_lengths(simd::lanes)) {
      Unaligned input(random.vector(count, 12.0F));
      Unaligned output(count, untouched);
      ASSERT_EQ(activation_forward(activation, input.data(), count, output.data()), Status::ok);
      for (Index i = 0; i < count; ++i) {
        ASSERT_NEAR(output[i], exact_activation(activation, input[i]), 3e-7 * std::abs(input[i]) + 1e-30)
            << static_cast<int>(activation) << " of " << input[i];
      }
    }
  }
}

TEST(activation, the_gated_one_multiplies_and_may_be_in_place) {
  Random random(4);
  for (const Activation activation : activations) {
    for (const Index count : tail_lengths(simd::lanes)) {
      Unaligned gate(random.vector(count, 4.0F));
      Unaligned up(random.vector(count, 4.0F));
      const std::vector<float> before = gate.values();
      ASSERT_EQ(gated_activation_forward(activation, gate.data(), up.data(), count, gate.data()), Status::ok);
      for (Index i = 0; i < count; ++i) {
        ASSERT_NEAR(gate[i], exact_activation(activation, before[i]) * up[i], 3e-7 * 16);
      }
    }
  }
}

TEST(activation, far_ends_and_NaN) {
  for (const Activation activation : activations) {
    std::vector<float> values{1000.0F, -1000.0F, 3e38F, -3e38F, not_a_number, 0.0F};
    ASSERT_EQ(activation_forward(activation, values.data(), 6, values.data()), Status::ok);
    EXPECT_EQ(values[0], 1000.0F);
    EXPECT_EQ(values[1], 0.0F);
    if (activation != Activation::gelu_tanh) {  // its cube is beyond float32
      EXPECT_EQ(values[2], 3e38F);
      EXPECT_EQ(values[3], 0.0F);
    }
    EXPECT_TRUE(std::isnan(values[4]));
    EXPECT_EQ(values[5], 0.0F);
  }
  float x = 1;
  EXPECT_EQ(activation_forward(static_cast<Activation>(9), &x, 1, &x), Status::invalid_argument);
  EXPECT_EQ(activation_forward(Activation::silu, nullptr, 1, &x), Status::null_pointer);
  EXPECT_EQ(gated_activation_forward(Activation::silu, &x, nullptr, 1, &x), Status::null_pointer);
}

TEST(embedding, rows_are_the_scaled_ones_of_the_table_and_the_positions) {
  Random random(5);
  for (const Index width : {1, 3, 4, 7, 64, 67}) {
    const Index vocabulary = 11;
    const std::vector<float> table = random.vector(vocabulary * width);
    const std::vector<float> positions = random.vector(5 * width);
    std::vector<char> memory(static_cast<std::size_t>(packed_linear_bytes(width, vocabulary)));
    ASSERT_EQ(
        pack_linear({table.data(), WeightType::f32, false, 0, vocabulary, 0}, width, vocabulary, {}, memory.data()),
        Status::ok);
    const std::int32_t tokens[] = {10, 0, 8};
    const std::int32_t places[] = {4, 0, 2};
    Unaligned output(3 * width, untouched);
    EmbeddingCall call{
        {memory.data(), nullptr, width, vocabulary, {}}, 2.0F, positions.data(), 5, tokens, places, 3, output.data()};
    ASSERT_EQ(embedding_forward(call), Status::ok);
    for (Index row = 0; row < 3; ++row) {
      for (Index i = 0; i < width; ++i) {
        ASSERT_EQ(output[row * width + i], table[tokens[row] * width + i] * 2.0F + positions[places[row] * width + i]);
      }
    }
    const std::int32_t outside[] = {1, 11, 2};
    const std::int32_t beyond[] = {0, 0, 5};
    const std::vector<float> before = output.values();
    call.tokens = outside;
    EXPECT_EQ(embedding_forward(call), Status::token_out_of_range);
    call.tokens = tokens;
    call.positions = beyond;
    EXPECT_EQ(embedding_forward(call), Status::context_exceeded);
    EXPECT_TRUE(all_same_bits(output.values(), before));
  }
}

}  // namespace
}  // namespace lookback::test
