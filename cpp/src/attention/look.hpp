#pragma once

// What can be looked at: the weights of chosen heads and rows, and summaries of all of them, taken along the way or computed again,
// without any effect on the output.

#include "attention/key_source.hpp"
#include "attention/visibility.hpp"
#include "attention/workspace.hpp"

namespace lookback {

/// Follows one query tile of the forward pass.
class Look {
public:
  /// `tile_keys` is what the tile's bands allow.
  Look(const AttentionCall& call, const KeySource& source, const TileRows& rows, KeyRange tile_keys) noexcept;

  /// After the probabilities of `keys` stand in work.scores, relative to the maxima of this moment.
  void take_block(KeyRange keys, Workspace& work) const noexcept;

  /// For rows that are attended one by one: clears their weights, then takes the probabilities of one row and block at a time.
  void begin_rows(Workspace& work) const noexcept;
  void take_row(Index row, KeyRange keys, const float* probabilities, Workspace& work) const noexcept;

  /// After the last block, when maxima and sums are final.
  void finish(Workspace& work) const noexcept;

private:
  [[nodiscard]] float* requested_row(Index slot, Index row) const noexcept;
  [[nodiscard]] float* weight_row(Index row, const Workspace& work) const noexcept;
  [[nodiscard]] bool is_requested(Index row) const noexcept { return row >= first_requested_ && row < end_requested_; }
  void normalise(Index row, const Workspace& work) const noexcept;
  void hand_out(Index row, const float* weights) const noexcept;
  void hand_out_stage(Index row, KeyRange keys, const float* scores, Index stride) const noexcept;
  void recompute_stage(Workspace& work) const noexcept;

  const AttentionCall& call_;
  const KeySource& source_;
  const TileRows& rows_;
  KeyRange tile_keys_;
  Index first_slot_ = -1;      ///< of the request's heads the first that is this tile's
  Index first_requested_ = 0;  ///< rows of the tile whose weights were asked for
  Index end_requested_ = 0;
  Index first_followed_ = 0;  ///< rows whose softmax weights are needed, for the request or for a summary
  Index end_followed_ = 0;
};

}  // namespace lookback
