// R17: rotary positions, against the formula in float64.

#include "lookback/rotary.hpp"
#include "support.hpp"

namespace lookback::test {
namespace {

RotaryOptions options_of(Index dims, bool interleaved) {
  RotaryOptions options;
  options.dims = dims;
  options.interleaved = interleaved;
  return options;
}

/// Rows at the given positions, turned.
std::vector<float> turned(const RotaryOptions& options, const std::vector<float>& rows,
                          const std::vector<std::int32_t>& positions, bool in_place) {
  const auto length = static_cast<Index>(positions.size());
  const Index width = static_cast<Index>(rows.size()) / length;
  std::vector<double> frequencies(static_cast<std::size_t>(options.dims / 2));
  std::vector<float> cosines(static_cast<std::size_t>(length * options.dims / 2));
  std::vector<float> sines = cosines;
  rotary_table(options, positions.data(), length, frequencies.data(), cosines.data(), sines.data());
  std::vector<float> output = in_place ? rows : std::vector<float>(rows.size(), untouched);
  RotaryCall call;
  call.input = {in_place ? output.data() : rows.data(), 0, 0, width};
  call.output = {output.data(), 0, 0, width};
  call.length = length;
  call.width = width;
  call.dims = options.dims;
  call.interleaved = options.interleaved;
  call.cosines = cosines.data();
  call.sines = sines.data();
  EXPECT_EQ(rotary_apply(call), Status::ok);
  return output;
}

TEST(rotary, R17_each_pair_is_turned_by_its_position_times_its_frequency_and_the_rest_is_copied) {
  Random random(1);
  const std::vector<std::int32_t> positions = {0, 1, 7, 4096, -3};
  for (const bool interleaved : {false, true}) {
    for (const Index dims : {2, 6, 10}) {
      const Index width = 10;
      const RotaryOptions options = options_of(dims, interleaved);
      const std::vector<float> rows = random.vector(5 * width);
      const std::vector<float> output = turned(options, rows, positions, false);
      for (Index row = 0; row < 5; ++row) {
        for (Index pair = 0; pair < dims / 2; ++pair) {
          const double angle =
              positions[row] * std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(dims));
          const Index first = row * width + (interleaved ? 2 * pair : pair);
          const Index second = row * width + (interleaved ? 2 * pair + 1 : pair + dims / 2);
          ASSERT_NEAR(output[first], rows[first] * std::cos(angle) - rows[second] * std::sin(angle), 3e-7);
          ASSERT_NEAR(output[second], rows[first] * std::sin(angle) + rows[second] * std::cos(angle), 3e-7);
        }
        for (Index c = dims; c < width; ++c) ASSERT_TRUE(same_bits(output[row * width + c], rows[row * width + c]));
      }
      EXPECT_TRUE(all_same_bits(output, turned(options, rows, positions, true))) << "in place";
    }
  }
}

TEST(rotary, R17_products_of_turned_rows_depend_on_their_distance_only) {
  Random random(2);
  const std::vector<float> pair = random.vector(2 * 8);
  const auto product = [&pair](std::int32_t q, std::int32_t k) {
    const std::vector<float> rows = turned(options_of(8, false), pair, {q, k}, false);
    double sum = 0.0;
    for (Index c = 0; c < 8; ++c) sum += static_cast<double>(rows[c]) * rows[8 + c];
    return sum;
  };
  EXPECT_NEAR(product(5, 2), product(1005, 1002), 1e-5);
  EXPECT_GT(std::abs(product(5, 2) - product(5, 4)), 1e-3);
}

TEST(rotary, R17_scalings_are_their_formulas) {
  std::vector<double> plain(4);
  std::vector<double> scaled(4);
  RotaryOptions options = options_of(8, false);
  rotary_frequencies(options, plain.data());
  options.factor = 4.0;
  options.scaling = RotaryScaling::linear;
  rotary_frequencies(options, scaled.data());
  for (int i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 4.0);
  options.scaling = RotaryScaling::ntk;
  rotary_frequencies(options, scaled.data());
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(scaled[i], std::pow(10000.0 * std::pow(4.0, 8.0 / 6.0), -i / 4.0), 1e-12);
  EXPECT_NEAR(scaled[3], plain[3] / 4.0, 1e-12) << "the slowest pair is stretched by the factor itself";

  options.scaling = RotaryScaling::llama3;
  options.original_length = 64.0;
  rotary_frequencies(options, scaled.data());
  EXPECT_DOUBLE_EQ(scaled[0], plain[0]) << "a wave of 6.3 is shorter than 64/4";
  EXPECT_DOUBLE_EQ(scaled[2], plain[2] / 4.0) << "a wave of 628 is longer than 64";
  options.original_length = 128.0;
  rotary_frequencies(options, scaled.data());
  const double kept = (128.0 * plain[1] / (2.0 * 3.14159265358979) - 1.0) / 3.0;
  EXPECT_NEAR(scaled[1], (1.0 - kept) * plain[1] / 4.0 + kept * plain[1], 1e-12) << "a wave of 63 lies between";

  options.scaling = RotaryScaling::yarn;
  options.original_length = 2048.0;
  rotary_frequencies(options, scaled.data());
  EXPECT_DOUBLE_EQ(scaled[0], plain[0]);
  EXPECT_DOUBLE_EQ(scaled[3], plain[3] / 4.0);
  const std::int32_t origin = 0;
  std::vector<float> cosines(4);
  std::vector<float> sines(4);
  rotary_table(options, &origin, 1, plain.data(), cosines.data(), sines.data());
  for (const float cosine : cosines) EXPECT_FLOAT_EQ(cosine, static_cast<float>(0.1 * std::log(4.0) + 1.0));
}

TEST(rotary, options_out_of_range_are_refused) {
  EXPECT_EQ(validate_rotary(options_of(8, false), 8), Status::ok);
  for (const Index dims : {0, 3, 10, -2}) EXPECT_EQ(validate_rotary(options_of(dims, false), 8), Status::invalid_shape);
  RotaryOptions options = options_of(8, false);
  options.base = 1.0;
  EXPECT_EQ(validate_rotary(options, 8), Status::invalid_argument);
  options = options_of(8, false);
  options.factor = 0.0;
  EXPECT_EQ(validate_rotary(options, 8), Status::invalid_argument);
  options = options_of(8, false);
  options.scaling = RotaryScaling::yarn;
  EXPECT_EQ(validate_rotary(options, 8), Status::invalid_argument) << "the original length is needed";
}

}  // namespace
}  // namespace lookback::test
