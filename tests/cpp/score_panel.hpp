#pragma once

// A block of scores [key][tile_queries] of exact size, and the panel of it that a kernel is given; all else must stay
// as it was.

#include "support.hpp"

namespace lookback::test {

class ScorePanel {
public:
  /// `panel` says which of the tile's panels the kernel works on.
  ScorePanel(Index key_count, Index panel, std::uint32_t seed)
      : key_count_(key_count), first_lane_(panel * kernels::panel_width) {
    Random random(seed);
    block_ = random.vector(key_count * kernels::tile_queries, 4.0F);
    // The last key's row ends with the panel, as far as a kernel may know.
    if (key_count > 0)
      block_.resize(block_.size() -
                    static_cast<std::size_t>(kernels::tile_queries - first_lane_ - kernels::panel_width));
    before_ = block_;
    block_.reserve(static_cast<std::size_t>(kernels::tile_queries));  // a place to point at, for 0 keys too
  }

  float* scores() { return block_.data() + first_lane_; }
  float& at(Index key, Index lane) {
    return block_[static_cast<std::size_t>(key * kernels::tile_queries + first_lane_ + lane)];
  }
  [[nodiscard]] float before(Index key, Index lane) const {
    return before_[static_cast<std::size_t>(key * kernels::tile_queries + first_lane_ + lane)];
  }
  /// Plants a score before the kernel runs.
  void plant(Index key, Index lane, float value) {
    at(key, lane) = value;
    before_ = block_;
  }
  [[nodiscard]] Index key_count() const { return key_count_; }

  /// Whether nothing outside the panel has changed.
  [[nodiscard]] bool rest_is_untouched() const {
    for (std::size_t i = 0; i < block_.size(); ++i) {
      const Index lane = static_cast<Index>(i) % kernels::tile_queries - first_lane_;
      if (lane >= 0 && lane < kernels::panel_width) continue;
      if (!same_bits(block_[i], before_[i])) return false;
    }
    return true;
  }

private:
  Index key_count_;
  Index first_lane_;
  std::vector<float> block_;
  std::vector<float> before_;
};

}  // namespace lookback::test
