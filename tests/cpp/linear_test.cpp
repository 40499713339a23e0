#include "lookback/linear.hpp"
#include "reference.hpp"
#include "support.hpp"

namespace lookback::test {
namespace {

using kernels::panel_width;

/// The widths at which something can end: batches, panels, and one more or less.
std::vector<Index> widths() {
  std::vector<Index> result;
  for (const Index width : tail_lengths(panel_width)) {
    if (width > 0 && (width <= panel_width + 2 || width % panel_width <= 1 || width > 4 * panel_width))
      result.push_back(width);
  }
  return result;
}

Unaligned packed(Unaligned& weight, Index inputs, Index outputs) {
  Unaligned panels(static_cast<Index>(packed_linear_bytes(inputs, outputs) / sizeof(float)), untouched);
  EXPECT_EQ(pack_linear(weight.data(), inputs, outputs, panels.data()), Status::ok);
  return panels;
}

TEST(linear, unpacking_is_the_exact_inverse_of_packing) {
  Random random(1);
  for (const Index inputs : widths()) {
    for (const Index outputs : widths()) {
      Unaligned weight(random.vector(inputs * outputs));
      Unaligned panels = packed(weight, inputs, outputs);
      Unaligned back(inputs * outputs, untouched);
      ASSERT_EQ(unpack_linear(panels.data(), inputs, outputs, back.data()), Status::ok);
      ASSERT_TRUE(all_same_bits(back.values(), weight.values())) << inputs << " → " << outputs;
    }
  }
}

TEST(linear, packing_keeps_every_bit_NaN_and_infinities_included) {
  Unaligned weight(std::vector<float>{not_a_number, infinity, -infinity, -0.0F, 1e-42F, 3.4e38F});
  Unaligned panels = packed(weight, 2, 3);
  Unaligned back(6);
  ASSERT_EQ(unpack_linear(panels.data(), 2, 3, back.data()), Status::ok);
  EXPECT_TRUE(all_same_bits(back.values(), weight.values()));
}

void check_forward(Index rows, Index inputs, Index outputs, bool with_bias, Random& random) {
  Unaligned weight(random.vector(inputs * outputs));
  Unaligned bias(random.vector(outputs));
  Unaligned input(random.vector(rows * inputs));
  Unaligned output(rows * outputs, untouched);
  Unaligned panels = packed(weight, inputs, outputs);
  const PackedLinear layer{panels.data(), with_bias ? bias.data() : nullptr, inputs, outputs};
  ASSERT_EQ(linear_forward(layer, input.data(), rows, output.data()), Status::ok);
  for (Index row = 0; row < rows; ++row) {
    for (Index o = 0; o < outputs; ++o) {
      double sum = with_bias ? static_cast<double>(bias[o]) : 0.0;
      double magnitude = std::abs(sum);
      for (Index i = 0; i < inputs; ++i) {
        const double term = static_cast<double>(input[row * inputs + i]) * weight[o * inputs + i];
        sum += term;
        magnitude += std::abs(term);
      }
      ASSERT_NEAR(output[row * outputs + o], sum, 3 * 0x1p-23 * magnitude)
          << rows << " rows, " << inputs << " → " << outputs << ": row " << row << ", output " << o;
    }
  }
}

TEST(linear, each_element_is_the_bias_and_the_sum_over_the_inputs_at_every_width) {
  Random random(2);
  for (const Index inputs : widths()) {
    for (const Index outputs : widths()) check_forward(3, inputs, outputs, (inputs + outputs) % 2 == 0, random);
  }
}

TEST(linear, any_number_of_rows) {
  Random random(3);
  for (const Index rows : tail_lengths(kernels::register_rows)) {
    check_forward(rows, 7, panel_width + 3, true, random);
    check_forward(rows, 7, panel_width, false, random);
  }
}

TEST(linear, R15_the_bits_of_a_row_do_not_depend_on_how_many_rows_there_are) {
  Random random(4);
  const Index outputs = panel_width + 3;
  Unaligned weight(random.vector(33 * outputs));
  Unaligned panels = packed(weight, 33, outputs);
  const PackedLinear layer{panels.data(), nullptr, 33, outputs};
  Unaligned input(random.vector(9 * 33));
  Unaligned together(9 * outputs);
  ASSERT_EQ(linear_forward(layer, input.data(), 9, together.data()), Status::ok);
  for (Index row = 0; row < 9; ++row) {
    Unaligned alone(outputs);
    ASSERT_EQ(linear_forward(layer, input.data() + row * 33, 1, alone.data()), Status::ok);
    for (Index o = 0; o < outputs; ++o) ASSERT_TRUE(same_bits(alone[o], together[row * outputs + o]));
  }
}

TEST(linear, is_close_to_the_float64_reference) {
  Random random(5);
  const std::vector<float> weight = random.vector(64 * 20);
  const std::vector<float> bias = random.vector(20);
  const std::vector<float> input = random.vector(10 * 64);
  Unaligned source(weight);
  Unaligned panels = packed(source, 64, 20);
  std::vector<float> output(200);
  ASSERT_EQ(linear_forward({panels.data(), bias.data(), 64, 20}, input.data(), 10, output.data()), Status::ok);
  const std::vector<double> exact = reference::linear({input.begin(), input.end()}, weight, bias, 10, 64, 20);
  EXPECT_TRUE(all_near(output, exact, 64 * 0x1p-23));
}

TEST(linear, refuses_what_it_cannot_calculate_and_writes_nothing) {
  std::vector<float> numbers(256, 1.0F);
  std::vector<float> output(16, untouched);
  EXPECT_EQ(linear_forward({numbers.data(), nullptr, 0, 4}, numbers.data(), 1, output.data()), Status::invalid_shape);
  EXPECT_EQ(linear_forward({numbers.data(), nullptr, 4, 0}, numbers.data(), 1, output.data()), Status::invalid_shape);
  EXPECT_EQ(linear_forward({numbers.data(), nullptr, 4, 4}, numbers.data(), -1, output.data()), Status::invalid_shape);
  EXPECT_EQ(linear_forward({nullptr, nullptr, 4, 4}, numbers.data(), 1, output.data()), Status::null_pointer);
  EXPECT_EQ(linear_forward({numbers.data(), nullptr, 4, 4}, nullptr, 1, output.data()), Status::null_pointer);
  EXPECT_EQ(linear_forward({numbers.data(), nullptr, 4, 4}, numbers.data(), 1, nullptr), Status::null_pointer);
  EXPECT_EQ(pack_linear(numbers.data(), 0, 4, output.data()), Status::invalid_shape);
  EXPECT_EQ(pack_linear(nullptr, 4, 4, output.data()), Status::null_pointer);
  EXPECT_EQ(unpack_linear(numbers.data(), 4, -4, output.data()), Status::invalid_shape);
  EXPECT_EQ(unpack_linear(numbers.data(), 4, 4, nullptr), Status::null_pointer);
  for (const float value : output) EXPECT_TRUE(same_bits(value, untouched));
  EXPECT_EQ(linear_forward({nullptr, nullptr, 4, 4}, nullptr, 0, nullptr), Status::ok) << "no rows, no operands";
}

TEST(linear, R23_a_size_beyond_the_address_space_is_a_number) {
  EXPECT_GE(packed_linear_bytes(1 << 20, 1 << 20), 0x1p42);
  EXPECT_EQ(packed_linear_bytes(3, 1), static_cast<double>(3 * panel_width) * 4.0);
}

}  // namespace
}  // namespace lookback::test
