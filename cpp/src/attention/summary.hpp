#pragma once

// Figures of a row's weights, one pass over them.

#include "attention/visibility.hpp"

namespace lookback {

/// Clears what rows will add to.
void begin_summary(const AttentionCall& call) noexcept;

/// Row `row` of the tile, whose weights [Lk] are final.
void summarise_row(const AttentionCall& call, const TileRows& rows, Index row, const float* weights) noexcept;

}  // namespace lookback
