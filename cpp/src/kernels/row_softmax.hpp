#pragma once

// The same steps as adjust.hpp and softmax.hpp, for the scores of one query: [key] instead of [key][query]. A block is padded with
// −∞ to whole batches, and lane l of the sums holds keys l, l + lanes, … of the block: what is hidden changes no bit.

#include <cstdint>

#include "kernels/tile.hpp"

namespace lookback::kernels {

void cap_row(float* scores, Index key_count, float cap) noexcept;

/// score[key] += bias[key · key_stride].
void add_bias_row(float* scores, Index key_count, const float* bias, Index key_stride) noexcept;

/// score[key] −= slope · |position − (first_key + key)|.
void add_distance_penalty_row(float* scores, Index key_count, std::int32_t first_key, std::int32_t position,
                              float slope) noexcept;

/// score[key] = −∞ where visible[key] is 0; by selection.
void hide_row(float* scores, Index key_count, const std::uint8_t* visible) noexcept;

/// Scores [0, batch_count · lanes) become e^(score − m) with m = max(*maximum, their maximum); *sum and *maximum are updated. Returns
/// what earlier sums have to be multiplied by.
float exponentiate_row(float* scores, Index batch_count, float* maximum, float* sum) noexcept;

}  // namespace lookback::kernels
