#pragma once

#include "attention/key_source.hpp"
#include "attention/visibility.hpp"
#include "attention/workspace.hpp"

namespace lookback {

/// Few queries are attended row by row, with keys and values read where they lie; more are worth packing for.
[[nodiscard]] constexpr bool is_decode(const AttentionCall& call) noexcept { return call.shape.query_length <= 8; }

class Look;

/// All keys for the rows of one head: work.accumulators and work.state are final but for the normalisation.
void attend_rows(const AttentionCall& call, const KeySource& source, const TileRows& rows, const Look& look,
                 Workspace& work) noexcept;

/// One row's scores for the keys of one block, up to the wanted stage: the very ones that attend_rows sees. They begin at the result.
const float* row_scores(const AttentionCall& call, const KeySource& source, const TileRows& rows, Index row,
                        KeyRange keys, WeightsKind stage, Workspace& work) noexcept;

}  // namespace lookback
