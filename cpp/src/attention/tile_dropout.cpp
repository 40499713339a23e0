#include "attention/tile_dropout.hpp"

namespace lookback {

using namespace kernels;

TileDropout::TileDropout(const AttentionCall& call, const TileRows& rows) noexcept
    : wanted_(call.scores.dropout.p > 0.0F), rule_(call.scores.dropout.p) {
  if (!wanted_) return;
  for (Index row = 0; row < tile_queries; ++row) {
    const DropoutKey key = dropout_key(call.scores.dropout.seed, rows.batch, rows.head, rows.position[row]);
    lanes_[row / panel_width].first[row % panel_width] = key.first;
    lanes_[row / panel_width].second[row % panel_width] = key.second;
  }
}

void TileDropout::apply(const TileRows& rows, KeyRange keys, float* scores) const noexcept {
  if (!wanted_) return;
  for (Index first = 0; first < rows.count; first += panel_width) {
    drop_weights(scores + (keys.from % block_keys) * tile_queries + first, keys.count(), keys.from, lanes(first),
                 rule_);
  }
}

}  // namespace lookback
