#pragma once

#include "attention/key_source.hpp"
#include "attention/visibility.hpp"
#include "attention/workspace.hpp"

namespace lookback {

/// Few queries are attended row by row, with keys and values read where they lie; more are worth packing for. Dropout is for training, where
/// queries are many.
inline constexpr Index most_decode_queries = 8;
[[nodiscard]] constexpr bool is_decode(const AttentionCall& call) noexcept {
  return call.shape.query_length <= most_decode_queries && call.scores.dropout.p == 0.0F;
}

/// Keys of one part: parts are summed by themselves, whoever sums them, and joined in one order. Counted from key 0.
inline constexpr Index part_keys = 4 * kernels::block_keys;
/// Query rows that pass over a block of keys together: those of heads that share it.
inline constexpr Index decode_slots = 16;
static_assert(decode_slots < kernels::tile_queries);

/// One item of a call that is_decode: a part of the keys of one kv head for all rows that use it, or all of its parts where somebody
/// looks at weights; the rows are then finished too.
void decode_item(const AttentionRun& run, Index item, Workspace& work) noexcept;

/// After all items: joins the parts of every row.
void finish_decode(const AttentionRun& run) noexcept;

/// One row's scores for the keys of one block, up to the wanted stage: the very ones that decode_item sees. They begin at the result.
const float* row_scores(const AttentionCall& call, const KeySource& source, const TileRows& rows, Index row,
                        KeyRange keys, WeightsKind stage, Workspace& work) noexcept;

}  // namespace lookback
