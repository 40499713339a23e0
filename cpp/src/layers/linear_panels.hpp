#pragma once

// Where things lie in a packed weight: panels of panel_width outputs one after another, each [inputs][panel_width] of the weight's type,
// or groups of int8 as kernels/int8_tile.hpp describes.

#include "kernels/tile.hpp"
#include "lookback/linear.hpp"

namespace lookback {

[[nodiscard]] Index panel_bytes(Index inputs, LinearFormat format) noexcept;

/// The first byte of inputs that begin at `first` (a multiple of the group), in the panel that holds `output`: an offset in the weight.
[[nodiscard]] Index panel_offset(Index inputs, LinearFormat format, Index output, Index first) noexcept;

/// output += input · weightᵀ for a weight of float32 that is not looked at for errors: linear_forward, added to what stands there.
void linear_add(const PackedLinear& layer, const float* input, Index rows, float* output) noexcept;

}  // namespace lookback
