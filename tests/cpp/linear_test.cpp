#include "lookback/linear.hpp"
#include "packed_weight.hpp"
#include "reference.hpp"

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

/// What rounding one row's inputs to 16 bits may add to an output: half a step of each group, times its weights.
double input_rounding(const std::vector<float>& input, const std::vector<float>& weight, Index row, Index output,
                      const PackedLinear& layer) {
  if (layer.format.type != WeightType::int8) return 0.0;
  double total = 0.0;
  for (Index first = 0; first < layer.inputs; first += layer.format.group) {
    double largest = 0.0;
    double weights = 0.0;
    for (Index i = first; i < std::min(first + layer.format.group, layer.inputs); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(input[row * layer.inputs + i])));
      weights += std::abs(static_cast<double>(weight[output * layer.inputs + i]));
    }
    total += largest / 65000 * weights;
  }
  return total;
}

void check_forward(Index rows, Index inputs, Index outputs, LinearFormat format, bool with_bias, Random& random) {
  const PackedWeight weight(random.vector(inputs * outputs), inputs, outputs, format);
  const std::vector<float> stored = weight.stored();
  Unaligned bias(random.vector(outputs));
  const std::vector<float> input = random.vector(rows * inputs);
  const PackedLinear layer = weight.layer(with_bias ? bias.data() : nullptr);
  const std::vector<float> output = forward(layer, input);
  for (Index row = 0; row < rows; ++row) {
    for (Index o = 0; o < outputs; ++o) {
      double sum = with_bias ? static_cast<double>(bias[o]) : 0.0;
      double magnitude = std::abs(sum);
      for (Index i = 0; i < inputs; ++i) {
        const double term = static_cast<double>(input[row * inputs + i]) * stored[o * inputs + i];
        sum += term;
        magnitude += std::abs(term);
      }
      ASSERT_NEAR(output[row * outputs + o], sum,
                  3 * 0x1p-23 * magnitude + input_rounding(input, stored, row, o, layer))
          << name_of(format) << ", " << rows << " rows, " << inputs << " → " << outputs << ": row " << row
          << ", output " << o;
    }
  }
}

TEST(linear, R22_each_element_is_the_bias_and_the_sum_over_the_inputs_at_every_width) {
  Random random(2);
  for (const LinearFormat format : all_formats()) {
    for (const Index inputs : widths()) {
      for (const Index outputs : widths())
        check_forward(3, inputs, outputs, format, (inputs + outputs) % 2 == 0, random);
    }
  }
}

TEST(linear, R22_any_number_of_rows) {
  Random random(3);
  for (const LinearFormat format : all_formats()) {
    for (const Index rows : tail_lengths(kernels::register_rows)) {
      check_forward(rows, 7, panel_width + 3, format, true, random);
      check_forward(rows, 67, panel_width, format, false, random);
    }
  }
}

TEST(linear, R15_the_bits_of_a_row_do_not_depend_on_how_many_rows_there_are) {
  Random random(4);
  const Index outputs = 3 * panel_width + 3;
  for (const LinearFormat format : all_formats()) {
    for (const Index inputs : {5, 33, 64, 197, 600}) {
      const PackedWeight weight(random.vector(inputs * outputs), inputs, outputs, format);
      const std::vector<float> input = random.vector(139 * inputs);
      const std::vector<float> together = forward(weight.layer(), input);
      for (const Index count : {1, 2, 3, 5, 8}) {
        for (Index row = 0; row + count <= 139; row += 7 * count) {
          const std::vector<float> some(input.begin() + row * inputs, input.begin() + (row + count) * inputs);
          const std::vector<float> expected(together.begin() + row * outputs,
                                            together.begin() + (row + count) * outputs);
          ASSERT_TRUE(all_same_bits(forward(weight.layer(), some), expected))
              << name_of(format) << ": rows " << row << " and " << count << " more, " << inputs << " inputs";
        }
      }
    }
  }
}

TEST(linear, R15_nor_on_how_the_weights_of_a_layer_that_no_cache_nearby_holds_are_read) {
  Random random(14);
  const Index inputs = 1030;
  const Index outputs = 1099;  // more than 1 MiB of int8
  const std::vector<float> values = random.vector(inputs * outputs);
  const std::vector<float> bias = random.vector(outputs);
  const std::vector<float> input = random.vector(4 * inputs);
  for (const LinearFormat format : all_formats()) {
    const PackedWeight weight(values, inputs, outputs, format);
    ASSERT_GT(packed_linear_bytes(inputs, outputs, format), 0x1p20);
    const std::vector<float> together = forward(weight.layer(bias.data()), input);
    for (const Index count : {1, 2, 3}) {
      const std::vector<float> some(input.end() - count * inputs, input.end());
      const std::vector<float> expected(together.end() - count * outputs, together.end());
      ASSERT_TRUE(all_same_bits(forward(weight.layer(bias.data()), some), expected))
          << name_of(format) << ": " << count;
    }
  }
}

TEST(linear, is_close_to_the_float64_reference) {
  Random random(5);
  const std::vector<float> weight = random.vector(64 * 20);
  const std::vector<float> bias = random.vector(20);
  const std::vector<float> input = random.vector(10 * 64);
  const PackedWeight packed(weight, 64, 20, f32);
  const std::vector<double> exact = reference::linear({input.begin(), input.end()}, weight, bias, 10, 64, 20);
  EXPECT_TRUE(all_near(forward(packed.layer(bias.data()), input), exact, 64 * 0x1p-23));
}

TEST(linear, a_non_finite_input_reaches_its_row_and_no_other) {
  Random random(6);
  for (const LinearFormat format : all_formats()) {
    const PackedWeight weight(random.vector(70 * 11), 70, 11, format);
    const std::vector<float> input = random.vector(6 * 70);
    const std::vector<float> clean = forward(weight.layer(), input);
    for (const float planted : {not_a_number, infinity, -infinity}) {
      for (const Index at : {0, 3, 68, 69}) {
        std::vector<float> spoilt = input;
        spoilt[4 * 70 + at] = planted;
        const std::vector<float> output = forward(weight.layer(), spoilt);
        for (Index n = 0; n < 6 * 11; ++n) {
          if (n / 11 == 4)
            ASSERT_FALSE(std::isfinite(output[n])) << name_of(format) << ", input " << at;
          else
            ASSERT_TRUE(same_bits(output[n], clean[n])) << name_of(format) << ", output " << n;
        }
      }
    }
  }
}

TEST(linear, a_non_finite_weight_reaches_its_output_and_no_other) {
  Random random(7);
  for (const LinearFormat format : all_formats()) {
    const std::vector<float> values = random.vector(70 * 11);
    const std::vector<float> input = random.vector(6 * 70);
    const std::vector<float> clean = forward(PackedWeight(values, 70, 11, format).layer(), input);
    for (const float planted : {not_a_number, infinity, -infinity}) {
      std::vector<float> spoilt = values;
      spoilt[9 * 70 + 69] = planted;
      const std::vector<float> output = forward(PackedWeight(spoilt, 70, 11, format).layer(), input);
      for (Index n = 0; n < 6 * 11; ++n) {
        if (n % 11 == 9)
          ASSERT_FALSE(std::isfinite(output[n])) << name_of(format);
        else
          ASSERT_TRUE(same_bits(output[n], clean[n])) << name_of(format) << ", output " << n;
      }
    }
  }
}

TEST(linear, inputs_too_small_or_large_for_a_scale_give_neither_NaN_nor_infinity) {
  for (const LinearFormat format : all_formats()) {
    const PackedWeight weight(std::vector<float>(32, 0.5F), 32, 1, format);
    EXPECT_EQ(forward(weight.layer(), std::vector<float>(32, 0.0F))[0], 0.0F);
    EXPECT_NEAR(forward(weight.layer(), std::vector<float>(32, 1e-42F))[0], 1.6e-41F, 2e-41F);
    EXPECT_NEAR(forward(weight.layer(), std::vector<float>(32, 1e-25F))[0], 1.6e-24F, 1e-28F);
    EXPECT_NEAR(forward(weight.layer(), std::vector<float>(32, 1e37F))[0], 1.6e38F, 1e34F);
  }
}

TEST(linear, refuses_what_it_cannot_calculate_and_writes_nothing) {
  std::vector<float> numbers(256, 1.0F);
  std::vector<float> output(16, untouched);
  const auto status = [&](PackedLinear layer, const float* input, Index rows, float* target) {
    return linear_forward(layer, input, rows, target, numbers.data(), sizeof(float) * 256);
  };
  EXPECT_EQ(status({numbers.data(), nullptr, 0, 4, {}}, numbers.data(), 1, output.data()), Status::invalid_shape);
  EXPECT_EQ(status({numbers.data(), nullptr, 4, 0, {}}, numbers.data(), 1, output.data()), Status::invalid_shape);
  EXPECT_EQ(status({numbers.data(), nullptr, 4, 4, {}}, numbers.data(), -1, output.data()), Status::invalid_shape);
  EXPECT_EQ(status({nullptr, nullptr, 4, 4, {}}, numbers.data(), 1, output.data()), Status::null_pointer);
  EXPECT_EQ(status({numbers.data(), nullptr, 4, 4, {}}, nullptr, 1, output.data()), Status::null_pointer);
  EXPECT_EQ(status({numbers.data(), nullptr, 4, 4, {}}, numbers.data(), 1, nullptr), Status::null_pointer);
  for (const Index group : {-16, 0, 8, 24, 272}) {
    const PackedLinear layer{numbers.data(), nullptr, 4, 4, {WeightType::int8, group}};
    EXPECT_EQ(status(layer, numbers.data(), 1, output.data()), Status::invalid_argument) << group;
    EXPECT_EQ(linear_workspace_bytes(layer, 1), 0.0);
    EXPECT_EQ(packed_linear_bytes(4, 4, layer.format), 0.0);
  }
  for (const int type : {-1, 4}) {
    const PackedLinear layer{numbers.data(), nullptr, 4, 4, {static_cast<WeightType>(type)}};
    EXPECT_EQ(status(layer, numbers.data(), 1, output.data()), Status::invalid_argument) << type;
  }
  for (const float value : output) EXPECT_TRUE(same_bits(value, untouched));
  EXPECT_EQ(status({nullptr, nullptr, 4, 4, {}}, nullptr, 0, nullptr), Status::ok) << "no rows, no operands";
}

TEST(linear, a_workspace_that_is_too_small_is_refused_and_one_for_f32_is_not_needed) {
  std::vector<float> input(300 * 5, 1.0F);
  std::vector<float> output(300 * 3, untouched);
  for (const LinearFormat format : all_formats()) {
    const PackedWeight weight(std::vector<float>(15, 1.0F), 5, 3, format);
    const double needed = linear_workspace_bytes(weight.layer(), 300);
    EXPECT_EQ(needed > 0, format.type != WeightType::f32);
    EXPECT_EQ(linear_workspace_bytes(weight.layer(), 1 << 20), needed) << "it does not grow with the rows";
    const Scratch workspace(needed + 64);
    const auto status = [&](void* memory, double bytes) {
      return linear_forward(weight.layer(), input.data(), 300, output.data(), memory, static_cast<std::size_t>(bytes));
    };
    if (needed > 0) {
      EXPECT_EQ(status(workspace.data(), needed - 1), Status::workspace_too_small);
      EXPECT_EQ(status(nullptr, needed), Status::workspace_too_small);
      for (const float value : output) ASSERT_TRUE(same_bits(value, untouched));
    }
    EXPECT_EQ(status(needed > 0 ? workspace.data() : nullptr, needed), Status::ok);
    std::fill(output.begin(), output.end(), untouched);
  }
}

TEST(linear, R23_a_size_beyond_the_address_space_is_a_number) {
  EXPECT_GE(packed_linear_bytes(1 << 20, 1 << 20), 0x1p42);
  EXPECT_GE(packed_linear_bytes(1 << 20, 1 << 20, {WeightType::int8, 64}), 0x1p40);
  EXPECT_EQ(packed_linear_bytes(3, 1), static_cast<double>(3 * panel_width) * 4.0);
  EXPECT_EQ(packed_linear_bytes(3, 1, bf16), static_cast<double>(3 * panel_width) * 2.0);
  EXPECT_EQ(packed_linear_bytes(65, 1, {WeightType::int8, 64}), static_cast<double>((66 + 2 * 4) * panel_width));
}

}  // namespace
}  // namespace lookback::test
