#pragma once

// From a tile's queries and a block of keys to probabilities in work.scores, rows of keys [key − block start][tile_queries].

#include "attention/key_source.hpp"
#include "attention/visibility.hpp"
#include "attention/workspace.hpp"

namespace lookback {

/// Brings the tile's queries into work.query_panels, times scale.
void pack_queries(const AttentionCall& call, const TileRows& rows, Workspace& work) noexcept;

/// Scores of all panels for `keys` (within one block) up to the wanted stage, hidden keys −∞ from `masked` on.
void scores_of_block(const AttentionCall& call, const KeySource& source, const TileRows& rows, KeyRange keys,
                     WeightsKind stage, Workspace& work) noexcept;

/// Scores of the tile's rows from `first_row` on, a panel of them, for what they may see of `keys` (within one block), which is returned; −∞
/// where hidden. Empty if no row sees any of the keys: then nothing was written. Keys are float32 in memory.
KeyRange masked_scores_of_panel(const AttentionCall& call, const KeySource& source, const TileRows& rows, KeyRange keys,
                                Index first_row, Workspace& work) noexcept;

/// Probabilities relative to the running maxima, which are updated; work.correction is what earlier sums are to be multiplied
/// by. False if no row sees any of the keys (then nothing has changed and the probabilities are 0).
bool probabilities_of_block(const AttentionCall& call, const KeySource& source, const TileRows& rows, KeyRange keys,
                            Workspace& work) noexcept;

}  // namespace lookback
