#pragma once

#include "attention/visibility.hpp"
#include "kernels/dropout.hpp"
#include "lookback/attention.hpp"

namespace lookback {

/// Dropout of the weights of one query tile; does nothing where the call asks for none.
class TileDropout {
public:
  TileDropout(const AttentionCall& call, const TileRows& rows) noexcept;

  [[nodiscard]] bool wanted() const noexcept { return wanted_; }
  [[nodiscard]] kernels::DropoutRule rule() const noexcept { return rule_; }
  [[nodiscard]] const kernels::DropoutLanes& lanes(Index first_row) const noexcept {
    return lanes_[first_row / kernels::panel_width];
  }

  /// On probabilities of `keys` (within one block) in scores [block_keys][tile_queries].
  void apply(const TileRows& rows, KeyRange keys, float* scores) const noexcept;

private:
  bool wanted_;
  kernels::DropoutRule rule_;
  kernels::DropoutLanes lanes_[kernels::tile_panels];
};

}  // namespace lookback
