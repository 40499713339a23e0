#include "attention/look.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/decode.hpp"
#include "attention/score_block.hpp"
#include "attention/summary.hpp"
#include "kernels/pack.hpp"

namespace lookback {

using namespace kernels;

namespace {

Index head_of_slot(const WeightsRequest& request, Index slot) noexcept {
  return request.heads != nullptr ? request.heads[slot] : slot;
}

}  // namespace

Look::Look(const AttentionCall& call, const KeySource& source, const TileRows& rows, KeyRange tile_keys) noexcept
    : call_(call), source_(source), rows_(rows), tile_keys_(tile_keys) {
  const WeightsRequest& request = call.outputs.weights;
  for (Index slot = request.head_count - 1; request.data != nullptr && slot >= 0; --slot) {
    if (head_of_slot(request, slot) == rows.head) first_slot_ = slot;
  }
  if (first_slot_ >= 0) {
    first_requested_ = std::clamp<Index>(request.query_from - rows.first_query, 0, rows.count);
    end_requested_ = std::clamp<Index>(request.query_to - rows.first_query, first_requested_, rows.count);
  }
  if (call.outputs.summary.wanted()) {
    end_followed_ = rows.count;
  } else if (request.kind == WeightsKind::softmax) {
    first_followed_ = first_requested_;
    end_followed_ = end_requested_;
  }
}

float* Look::requested_row(Index slot, Index row) const noexcept {
  const WeightsRequest& request = call_.outputs.weights;
  const Index row_count = request.query_to - request.query_from;
  const Index at = (rows_.batch * request.head_count + slot) * row_count + rows_.first_query + row - request.query_from;
  return request.data + at * call_.shape.key_length;
}

/// Where a followed row's weights gather: in the result itself, unless a summary needs them.
float* Look::weight_row(Index row, const Workspace& work) const noexcept {
  if (work.weight_rows != nullptr) return work.weight_rows + row * call_.shape.key_length;
  return requested_row(first_slot_, row);
}

void Look::take_block(KeyRange keys, Workspace& work) const noexcept {
  if (first_followed_ == end_followed_) return;
  std::copy_n(work.state->maximum, tile_queries, work.block_maxima + keys.from / block_keys * tile_queries);
  unpack_query_lanes(work.scores + (keys.from % block_keys) * tile_queries + first_followed_,
                     end_followed_ - first_followed_, keys.count(), weight_row(first_followed_, work) + keys.from,
                     call_.shape.key_length);
}

void Look::begin_rows(Workspace& work) const noexcept {
  if (first_followed_ == end_followed_) return;
  std::fill_n(work.block_maxima, block_count(call_.shape.key_length) * tile_queries, 0.0F);
  for (Index row = first_followed_; row < end_followed_; ++row) {
    std::fill_n(weight_row(row, work), call_.shape.key_length, 0.0F);
  }
}

void Look::take_row(Index row, KeyRange keys, const float* probabilities, Workspace& work) const noexcept {
  if (row < first_followed_ || row >= end_followed_) return;
  work.block_maxima[keys.from / block_keys * tile_queries + row] = work.state->maximum[row];
  std::copy_n(probabilities, keys.count(), weight_row(row, work) + keys.from);
}

void Look::normalise(Index row, const Workspace& work) const noexcept {
  float* weights = weight_row(row, work);
  const Index key_length = call_.shape.key_length;
  const Index from = tile_keys_.empty() ? key_length : tile_keys_.from;
  const Index to = tile_keys_.empty() ? key_length : tile_keys_.to;
  std::fill(weights, weights + from, 0.0F);
  std::fill(weights + to, weights + key_length, 0.0F);
  const float sum = work.state->sum[row];
  for (Index first = from / block_keys * block_keys; first < to; first += block_keys) {
    const Index block_from = std::max(first, from);
    const Index block_to = std::min(first + block_keys, to);
    const float maximum = work.block_maxima[first / block_keys * tile_queries + row];
    // Before a row has seen anything its maximum is −∞ and its probabilities are 0.
    const bool nothing = maximum == -std::numeric_limits<float>::infinity();
    const float factor = nothing ? 0.0F : std::exp(maximum - work.state->maximum[row]) / sum;
    scale_nonzero(weights + block_from, block_to - block_from, factor);
  }
}

/// Copies final weights to every place that asked for them.
void Look::hand_out(Index row, const float* weights) const noexcept {
  const WeightsRequest& request = call_.outputs.weights;
  if (!is_requested(row) || request.kind != WeightsKind::softmax) return;
  for (Index slot = first_slot_; slot < request.head_count; ++slot) {
    float* target = requested_row(slot, row);
    if (head_of_slot(request, slot) == rows_.head && target != weights) {
      std::copy_n(weights, call_.shape.key_length, target);
    }
  }
}

/// Copies a row's part of an earlier stage to every place that asked for it.
void Look::hand_out_stage(Index row, KeyRange keys, const float* scores, Index stride) const noexcept {
  const WeightsRequest& request = call_.outputs.weights;
  for (Index slot = first_slot_; slot < request.head_count; ++slot) {
    if (head_of_slot(request, slot) != rows_.head) continue;
    float* target = requested_row(slot, row) + keys.from;
    for (Index key = 0; key < keys.count(); ++key) target[key] = scores[key * stride];
  }
}

void Look::recompute_stage(Workspace& work) const noexcept {
  const WeightsKind stage = call_.outputs.weights.kind;
  for (Index first = 0; first < call_.shape.key_length; first += block_keys) {
    const KeyRange keys{static_cast<std::int32_t>(first),
                        static_cast<std::int32_t>(std::min(first + block_keys, call_.shape.key_length))};
    if (!is_decode(call_)) scores_of_block(call_, source_, rows_, keys, stage, work);
    for (Index row = first_requested_; row < end_requested_; ++row) {
      if (is_decode(call_)) {
        hand_out_stage(row, keys, row_scores(call_, source_, rows_, row, keys, stage, work), 1);
      } else {
        hand_out_stage(row, keys, work.scores + row, tile_queries);
      }
    }
  }
}

void Look::finish(Workspace& work) const noexcept {
  for (Index row = first_followed_; row < end_followed_; ++row) {
    normalise(row, work);
    const float* weights = weight_row(row, work);
    hand_out(row, weights);
    if (call_.outputs.summary.wanted()) summarise_row(call_, rows_, row, weights, work.map_rests);
  }
  if (first_requested_ < end_requested_ && call_.outputs.weights.kind != WeightsKind::softmax) recompute_stage(work);
}

}  // namespace lookback
