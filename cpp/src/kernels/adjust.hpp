#pragma once

// What happens to a block of raw scores [key][tile_queries] before softmax, one panel of queries at a time: softcap, bias, ALiBi,
// hiding. Nothing here knows a mask object: bands come as limits per lane, masks as bytes.

#include <cstdint>

#include "kernels/tile.hpp"

namespace lookback::kernels {

/// score = cap · tanh(score / cap).
void cap_scores(float* scores, Index key_count, float cap) noexcept;

/// score[key][lane] += bias[lane · query_stride + key · key_stride] for lane < lane_count.
void add_bias(float* scores, Index key_count, const float* bias, Index query_stride, Index key_stride,
              Index lane_count) noexcept;

/// score[key][lane] −= slope · |positions[lane] − (first_key + key)|.
void add_distance_penalty(float* scores, Index key_count, Index first_key, const std::int32_t* positions,
                          float slope) noexcept;

/// score = −∞ unless from[lane] ≤ first_key + key < to[lane]; by selection, whatever the score is.
void hide_outside_band(float* scores, Index key_count, Index first_key, const std::int32_t* from,
                       const std::int32_t* to) noexcept;

/// score = −∞ where visible[lane][key] (rows of `visible_stride` bytes, panel_width of them) is 0; by selection.
void hide_masked(float* scores, Index key_count, const std::uint8_t* visible, Index visible_stride) noexcept;

}  // namespace lookback::kernels
