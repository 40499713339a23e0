#include "attention/decode.hpp"

#include <algorithm>
#include <limits>

#include "attention/look.hpp"
#include "attention/totals.hpp"
#include "kernels/dot_rows.hpp"
#include "kernels/row_softmax.hpp"

namespace lookback {
namespace {

using namespace kernels;

/// One query row against one block of keys.
struct RowBlock {
  const AttentionCall& call;
  const KeySource& source;
  const TileRows& rows;
  Workspace& work;
  Index row;
  KeyRange keys;  ///< what the row's band allows of the block

  [[nodiscard]] Index query() const noexcept { return rows.first_query + row; }
  /// Scores of the block [block_keys], key 0 being the block's first.
  [[nodiscard]] float* scores() const noexcept { return work.scores + keys.from % block_keys; }

  void multiply() const noexcept {
    const Index depth = call.shape.head_dim;
    const float* scaled_query = work.query_panels + row * depth;
    for (const KeySource::Run& run : source) {
      const KeyRange part = intersect(keys, run.columns);
      if (part.empty()) continue;
      const Index skip = part.from - run.columns.from;
      float* out = scores() + (part.from - keys.from);
      if (run.keys.floats != nullptr) {
        dot_rows(run.keys.floats + skip * run.keys.stride, run.keys.stride, part.count(), scaled_query, depth, out);
      } else {
        dot_rows_int8(run.keys.bytes + skip * run.keys.stride, run.keys.scales + skip, run.keys.stride, part.count(),
                      scaled_query, depth, out);
      }
    }
  }

  void cap() const noexcept {
    if (call.scores.softcap > 0.0F) cap_row(scores(), keys.count(), call.scores.softcap);
  }

  void add_biases() const noexcept {
    if (const BiasView& bias = call.scores.bias; bias.data != nullptr) {
      add_bias_row(scores(), keys.count(), bias.row(rows.batch, rows.head, query()) + keys.from * bias.key_stride,
                   bias.key_stride);
    }
    if (call.scores.alibi_slopes != nullptr) {
      add_distance_penalty_row(scores(), keys.count(), keys.from, rows.position[row],
                               call.scores.alibi_slopes[rows.head]);
    }
  }

  void accumulate(const std::uint8_t* visible) const noexcept {
    float* out = work.accumulators + row * work.accumulator_stride;
    const Index width = call.shape.value_dim;
    float* sums = work.accumulators + (tile_queries - 1) * work.accumulator_stride;  // a row that no query needs here
    std::fill_n(sums, width, 0.0F);
    for (const KeySource::Run& run : source) {
      const KeyRange part = intersect(keys, run.columns);
      if (part.empty()) continue;
      const Index skip = part.from - run.columns.from;
      const float* weights = scores() + (part.from - keys.from);
      const std::uint8_t* seen = visible != nullptr ? visible + (part.from - keys.from) : nullptr;
      if (run.values.floats != nullptr) {
        accumulate_rows(run.values.floats + skip * run.values.stride, run.values.stride, part.count(), weights, seen,
                        width, sums);
      } else {
        accumulate_rows_int8(run.values.bytes + skip * run.values.stride, run.values.scales + skip, run.values.stride,
                             part.count(), weights, seen, width, sums);
      }
    }
    correct_and_add(out, width, work.correction[row], sums);
  }
};

/// Attends one block; the row's state and accumulator change only if it sees something.
void attend_block(const RowBlock& block, const Look& look) noexcept {
  Workspace& work = block.work;
  const std::uint8_t* visible = nullptr;
  if (has_holes(block.call)) {
    const Coverage coverage = visible_keys(block.call, block.rows, block.row, block.keys, work.visible);
    if (coverage == Coverage::none) return;
    if (coverage == Coverage::some) visible = work.visible;
  }
  // Whole batches from the block's start on: what the band hides in them is −∞.
  const Index start = block.keys.from % block_keys;
  const Index first = start / simd::lanes * simd::lanes;
  const Index end = round_up(start + block.keys.count(), simd::lanes);
  std::fill(work.scores + first, work.scores + end, -std::numeric_limits<float>::infinity());
  block.multiply();
  block.cap();
  block.add_biases();
  if (visible != nullptr) hide_row(block.scores(), block.keys.count(), visible);
  work.correction[block.row] = exponentiate_row(work.scores + first, (end - first) / simd::lanes,
                                                work.state->maximum + block.row, work.state->sum + block.row);
  look.take_row(block.row, block.keys, block.scores(), work);
  block.accumulate(visible);
}

}  // namespace

const float* row_scores(const AttentionCall& call, const KeySource& source, const TileRows& rows, Index row,
                        KeyRange keys, WeightsKind stage, Workspace& work) noexcept {
  const RowBlock block{call, source, rows, work, row, keys};
  std::fill_n(block.scores(), keys.count(), 0.0F);  // what columns without a token score
  block.multiply();
  if (stage == WeightsKind::scores) return block.scores();
  block.cap();
  if (stage == WeightsKind::capped) return block.scores();
  block.add_biases();
  static_cast<void>(visible_keys(call, rows, row, keys, work.visible));
  hide_row(block.scores(), keys.count(), work.visible);
  return block.scores();
}

void attend_rows(const AttentionCall& call, const KeySource& source, const TileRows& rows, const Look& look,
                 Workspace& work) noexcept {
  const Index depth = call.shape.head_dim;
  for (Index row = 0; row < rows.count; ++row) {
    const float* query = call.inputs.queries.row(rows.batch, rows.head, rows.first_query + row);
    for (Index d = 0; d < depth; ++d) work.query_panels[row * depth + d] = query[d] * call.scores.scale;
  }
  look.begin_rows(work);
  const KeyRange all = rows.hull(0, rows.count);
  for (Index first = all.from / block_keys * block_keys; first < all.to; first += block_keys) {
    const KeyRange block{static_cast<std::int32_t>(first), static_cast<std::int32_t>(first + block_keys)};
    for (Index row = 0; row < rows.count; ++row) {
      const KeyRange band = intersect(block, {rows.from[row], rows.to[row]});
      if (!band.empty()) attend_block({call, source, rows, work, row, band}, look);
    }
    if (ends_group(first)) join_totals(rows, work);
  }
}

}  // namespace lookback
