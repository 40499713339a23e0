#include "attention/look.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/score_block.hpp"
#include "kernels/pack.hpp"

namespace lookback {

using namespace kernels;

Look::Look(const AttentionCall& call, const TileRows& rows, KeyRange tile_keys) noexcept
    : call_(call), rows_(rows), tile_keys_(tile_keys) {
  const WeightsRequest& request = call.outputs.weights;
  bool wanted = false;
  for (Index slot = 0; request.data != nullptr && slot < request.head_count; ++slot) wanted = wanted || wants(slot);
  if (!wanted) return;
  first_row_ = std::clamp<Index>(request.query_from - rows.first_query, 0, rows.count);
  end_row_ = std::clamp<Index>(request.query_to - rows.first_query, first_row_, rows.count);
}

bool Look::wants(Index slot) const noexcept {
  const WeightsRequest& request = call_.outputs.weights;
  return (request.heads != nullptr ? request.heads[slot] : slot) == rows_.head;
}

float* Look::target_row(Index slot, Index row) const noexcept {
  const WeightsRequest& request = call_.outputs.weights;
  const Index row_count = request.query_to - request.query_from;
  const Index at = (rows_.batch * request.head_count + slot) * row_count + rows_.first_query + row - request.query_from;
  return request.data + at * call_.shape.key_length;
}

void Look::take_block(KeyRange keys, Workspace& work) const noexcept {
  const WeightsRequest& request = call_.outputs.weights;
  if (first_row_ == end_row_ || request.kind != WeightsKind::softmax) return;
  std::copy_n(work.state->maximum, tile_queries, work.block_maxima + keys.from / block_keys * tile_queries);
  for (Index slot = 0; slot < request.head_count; ++slot) {
    if (!wants(slot)) continue;
    for (Index row = first_row_; row < end_row_; ++row) {
      unpack_query_lane(work.scores + (keys.from % block_keys) * tile_queries, row, keys.count(),
                        target_row(slot, row) + keys.from);
    }
  }
}

void Look::normalise(Index slot, const Workspace& work) const noexcept {
  for (Index row = first_row_; row < end_row_; ++row) {
    float* target = target_row(slot, row);
    const Index key_length = call_.shape.key_length;
    const Index from = tile_keys_.empty() ? key_length : tile_keys_.from;
    const Index to = tile_keys_.empty() ? key_length : tile_keys_.to;
    std::fill(target, target + from, 0.0F);
    std::fill(target + to, target + key_length, 0.0F);
    const float sum = work.state->sum[row];
    for (Index first = from / block_keys * block_keys; first < to; first += block_keys) {
      const Index block_from = std::max(first, from);
      const Index block_to = std::min(first + block_keys, to);
      const float maximum = work.block_maxima[first / block_keys * tile_queries + row];
      // Before a row has seen anything its maximum is −∞ and its probabilities are 0.
      const bool nothing = maximum == -std::numeric_limits<float>::infinity();
      const float factor = nothing ? 0.0F : std::exp(maximum - work.state->maximum[row]) / sum;
      scale_nonzero(target + block_from, block_to - block_from, factor);
    }
  }
}

void Look::recompute(Workspace& work) const noexcept {
  const WeightsRequest& request = call_.outputs.weights;
  for (Index first = 0; first < call_.shape.key_length; first += block_keys) {
    const KeyRange keys{static_cast<std::int32_t>(first),
                        static_cast<std::int32_t>(std::min(first + block_keys, call_.shape.key_length))};
    scores_of_block(call_, rows_, keys, request.kind, work);
    for (Index slot = 0; slot < request.head_count; ++slot) {
      if (!wants(slot)) continue;
      for (Index row = first_row_; row < end_row_; ++row) {
        unpack_query_lane(work.scores, row, keys.count(), target_row(slot, row) + first);
      }
    }
  }
}

void Look::finish(Workspace& work) const noexcept {
  const WeightsRequest& request = call_.outputs.weights;
  if (first_row_ == end_row_) return;
  if (request.kind != WeightsKind::softmax) return recompute(work);
  for (Index slot = 0; slot < request.head_count; ++slot) {
    if (wants(slot)) normalise(slot, work);
  }
}

}  // namespace lookback
