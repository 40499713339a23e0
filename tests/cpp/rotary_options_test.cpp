// R17: options of rotary positions that would give NaN or leave frequencies unset are refused.

#include <vector>

#include "lookback/rotary.hpp"
#include "support.hpp"

namespace lookback::test {
namespace {

RotaryOptions valid_options(RotaryScaling scaling) {
  RotaryOptions options;
  options.dims = 8;
  options.scaling = scaling;
  options.factor = 4.0;
  options.original_length = 64.0;
  return options;
}

Status with(RotaryScaling scaling, double RotaryOptions::* member, double value) {
  RotaryOptions options = valid_options(scaling);
  options.*member = value;
  return validate_rotary(options, 8);
}

TEST(rotary_options, R17_every_scaling_is_accepted_and_gives_finite_frequencies) {
  for (int scaling = 0; scaling <= 4; ++scaling) {
    const RotaryOptions options = valid_options(static_cast<RotaryScaling>(scaling));
    ASSERT_EQ(validate_rotary(options, 8), Status::ok) << scaling;
    std::vector<double> frequencies(4, -1.0);
    rotary_frequencies(options, frequencies.data());
    for (const double frequency : frequencies) EXPECT_TRUE(std::isfinite(frequency) && frequency > 0.0) << scaling;
  }
}

TEST(rotary_options, R17_an_unknown_scaling_is_refused) {
  for (const int scaling : {-1, 5}) {
    EXPECT_EQ(validate_rotary(valid_options(static_cast<RotaryScaling>(scaling)), 8), Status::invalid_argument);
  }
}

TEST(rotary_options, R17_numbers_that_would_give_NaN_are_refused) {
  EXPECT_EQ(with(RotaryScaling::linear, &RotaryOptions::factor, static_cast<double>(infinity)),
            Status::invalid_argument);
  EXPECT_EQ(with(RotaryScaling::llama3, &RotaryOptions::low_frequency_factor, 0.0), Status::invalid_argument);
  EXPECT_EQ(with(RotaryScaling::llama3, &RotaryOptions::low_frequency_factor, 4.0), Status::invalid_argument)
      << "as high";
  EXPECT_EQ(with(RotaryScaling::yarn, &RotaryOptions::beta_fast, 0.0), Status::invalid_argument);
  EXPECT_EQ(with(RotaryScaling::yarn, &RotaryOptions::beta_slow, -1.0), Status::invalid_argument);
  EXPECT_EQ(with(RotaryScaling::none, &RotaryOptions::beta_slow, -1.0), Status::ok) << "not of this scaling";
}

}  // namespace
}  // namespace lookback::test
