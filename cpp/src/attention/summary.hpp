#pragma once

// Figures of a row's weights, one pass over them.

#include "attention/visibility.hpp"
#include "attention/workspace.hpp"

namespace lookback {

/// Clears what rows will add to.
void begin_summary(const AttentionRun& run) noexcept;

/// Row `row` of the tile, whose weights [Lk] are final.
void summarise_row(const AttentionCall& call, const TileRows& rows, Index row, const float* weights,
                   float* map_rests) noexcept;

/// After all tiles: what they left for cells of earlier ones joins them.
void finish_summary(const AttentionRun& run) noexcept;

}  // namespace lookback
