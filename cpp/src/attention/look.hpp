#pragma once

// What can be looked at: the weights of chosen heads and rows, taken along the way or computed again, without any effect on the
// output.

#include "attention/visibility.hpp"
#include "attention/workspace.hpp"

namespace lookback {

/// Follows one query tile of the forward pass.
class Look {
 public:
  /// `tile_keys` is what the tile's bands allow.
  Look(const AttentionCall& call, const TileRows& rows, KeyRange tile_keys) noexcept;

  /// After the probabilities of `keys` stand in work.scores, relative to the maxima of this moment.
  void take_block(KeyRange keys, Workspace& work) const noexcept;

  /// After the last block, when maxima and sums are final.
  void finish(Workspace& work) const noexcept;

 private:
  [[nodiscard]] float* target_row(Index slot, Index row) const noexcept;
  [[nodiscard]] bool wants(Index slot) const noexcept;
  void recompute(Workspace& work) const noexcept;
  void normalise(Index slot, const Workspace& work) const noexcept;

  const AttentionCall& call_;
  const TileRows& rows_;
  KeyRange tile_keys_;
  Index first_row_ = 0;  ///< rows of the tile that were asked for: [first_row_, end_row_)
  Index end_row_ = 0;
};

}  // namespace lookback
