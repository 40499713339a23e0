#pragma once

// Where things lie in a packed weight: panels of panel_width outputs one after another, each [inputs][panel_width] of the weight's type,
// or groups of int8 as kernels/int8_tile.hpp describes.

#include "kernels/tile.hpp"
#include "lookback/linear.hpp"

namespace lookback {

[[nodiscard]] Index panel_bytes(Index inputs, LinearFormat format) noexcept;

/// The first byte of inputs that begin at `first` (a multiple of the group), in the panel that holds `output`.
template <typename Byte>
[[nodiscard]] Byte* panel_at(Byte* weight, Index inputs, LinearFormat format, Index output, Index first) noexcept {
  // The bytes before `first` are those of a panel that ends there.
  const Index before = first == 0 ? 0 : panel_bytes(first, format);
  return weight + output / kernels::panel_width * panel_bytes(inputs, format) + before;
}

}  // namespace lookback
