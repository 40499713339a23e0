#pragma once

// Long sums in two levels. Adding the sums of thousands of blocks one after the other would let rounding errors grow with their
// number; so the sums of a group of blocks are made by themselves, and groups join totals that stand beside them.

#include "attention/visibility.hpp"
#include "attention/workspace.hpp"

namespace lookback {

/// Whether the block from `first_key` on is the last one of its group. Groups are counted from key 0, so the order of sums depends
/// on the key's number only.
[[nodiscard]] constexpr bool ends_group(Index first_key) noexcept {
  return (first_key / kernels::block_keys + 1) % group_blocks == 0;
}

/// Before a tile's first block.
void begin_totals(Workspace& work) noexcept;

/// After a group: its sums (work.accumulators and work.state->sum) join the totals and begin again at 0. A group that saw nothing
/// changes no bit.
void join_totals(const TileRows& rows, Workspace& work) noexcept;

/// After the last block: the totals take the place of the sums.
void finish_totals(const TileRows& rows, Workspace& work) noexcept;

}  // namespace lookback
