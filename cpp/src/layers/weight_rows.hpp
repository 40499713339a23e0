#pragma once

// Rows of a packed weight, one by one: written as a file gives them, read as an embedding needs them.

#include "lookback/linear.hpp"

namespace lookback {

/// Outputs [first_output, first_output + output_count) × inputs [first_input, first_input + input_count) of a packed weight, as float32
/// [output_count, stride].
struct WeightBlock {
  Index first_output = 0;
  Index output_count = 0;
  Index first_input = 0;
  Index input_count = 0;
};

/// values [output_count, input_count] → panels.
void write_weight_block(float* packed, Index inputs, const WeightBlock& block, const float* values) noexcept;

/// target[i] = weight[output][i] · factor.
void read_weight_row(const PackedLinear& layer, Index output, float factor, float* target) noexcept;

}  // namespace lookback
