#include "attention/decode.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/finish.hpp"
#include "attention/look.hpp"
#include "kernels/dot_rows.hpp"
#include "kernels/int8_tile.hpp"
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
  Index slot;     ///< its place in the workspace
  KeyRange keys;  ///< what the row's band allows of the block

  [[nodiscard]] Index query() const noexcept { return rows.first_query + row; }
  /// Scores of the block [block_keys], key 0 being the block's first.
  [[nodiscard]] float* scores() const noexcept { return work.scores + keys.from % block_keys; }

  void multiply() const noexcept {
    const Index depth = call.shape.head_dim;
    const float* scaled_query = work.query_panels + slot * depth;
    for (const KeySource::Run& run : source) {
      const KeyRange part = intersect(keys, run.columns);
      if (part.empty()) continue;
      const Index skip = part.from - run.columns.from;
      float* out = scores() + (part.from - keys.from);
      if (run.keys.floats != nullptr) {
        dot_rows(run.keys.floats + skip * run.keys.stride, run.keys.stride, part.count(), scaled_query, depth, out);
      } else {
        dot_rows_int8(run.keys.bytes + skip * run.keys.stride, run.keys.scales + skip, run.keys.stride, part.count(),
                      work.query_codes + slot * padded_pairs(depth),
                      work.query_scales + slot * group_count(depth, int8_query_group), depth, out);
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

  void accumulate_run(const KeySource::Run& run, KeyRange part, const std::uint8_t* visible,
                      float* sums) const noexcept {
    const Index skip = part.from - run.columns.from;
    const Index width = call.shape.value_dim;
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

  void accumulate(const std::uint8_t* visible) const noexcept {
    float* out = work.accumulators + slot * work.accumulator_stride;
    const Index width = call.shape.value_dim;
    float* sums = work.accumulators + (tile_queries - 1) * work.accumulator_stride;  // no slot's
    std::fill_n(sums, width, 0.0F);
    for (const KeySource::Run& run : source) {
      const KeyRange part = intersect(keys, run.columns);
      if (!part.empty()) accumulate_run(run, part, visible, sums);
    }
    correct_and_add(out, width, work.correction[slot], sums);
  }
};

/// Attends one block; the row's state and accumulator change only if it sees something.
void attend_block(const RowBlock& block, const Look* look) noexcept {
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
  work.correction[block.slot] = exponentiate_row(work.scores + first, (end - first) / simd::lanes,
                                                 work.state->maximum + block.slot, work.state->sum + block.slot);
  if (look != nullptr) look->take_row(block.row, block.keys, block.scores(), work);
  block.accumulate(visible);
}

Index part_index(const AttentionRun& run, const TileRows& rows, Index row, Index part) noexcept {
  const AttentionShape& shape = run.call.shape;
  return ((rows.batch * shape.heads + rows.head) * shape.query_length + row) * run.part_count + part;
}

/// The query rows of heads that share keys, each in a slot of its own: they pass over a block of keys one after the other while it is
/// in the cache.
class SharingHeads {
public:
  SharingHeads(const AttentionRun& run, const KeySource& source, Index batch, Index first_head, Index head_count,
               Workspace& work) noexcept
      : run_(run), source_(source), work_(work), head_count_(head_count) {
    for (Index head = 0; head < head_count; ++head) {
      rows_[head] = TileRows(run.call, batch, first_head + head, 0);
      for (Index row = 0; row < rows_[head].count; ++row) take_query(rows_[head], row, slot(head, row));
    }
  }

  [[nodiscard]] const TileRows& rows(Index head) const noexcept { return rows_[head]; }

  /// Leaves the part's sums in run.parts.
  void attend_part(Index part, const Look* look) const noexcept {
    const Index slots = slot(head_count_, 0);
    std::fill_n(work_.state->maximum, slots, -std::numeric_limits<float>::infinity());
    std::fill_n(work_.state->sum, slots, 0.0F);
    std::fill_n(work_.accumulators, slots * work_.accumulator_stride, 0.0F);
    const Index end = std::min((part + 1) * part_keys, run_.call.shape.key_length);
    for (Index first = part * part_keys; first < end; first += block_keys) {
      const KeyRange block{static_cast<std::int32_t>(first),
                           static_cast<std::int32_t>(std::min(first + block_keys, end))};
      attend_keys(block, look);
    }
    for (Index head = 0; head < head_count_; ++head) {
      for (Index row = 0; row < rows_[head].count; ++row) {
        const Index from = slot(head, row);
        const Index to = part_index(run_, rows_[head], row, part);
        run_.parts.maxima[to] = work_.state->maximum[from];
        run_.parts.sums[to] = work_.state->sum[from];
        std::copy_n(work_.accumulators + from * work_.accumulator_stride, work_.accumulator_stride,
                    run_.parts.accumulators + to * work_.accumulator_stride);
      }
    }
  }

private:
  [[nodiscard]] Index slot(Index head, Index row) const noexcept { return head * run_.call.shape.query_length + row; }

  void take_query(const TileRows& rows, Index row, Index slot) const noexcept {
    const AttentionCall& call = run_.call;
    const Index depth = call.shape.head_dim;
    const float* query = call.inputs.queries.row(rows.batch, rows.head, row);
    float* scaled = work_.query_panels + slot * depth;
    for (Index d = 0; d < depth; ++d) scaled[d] = query[d] * call.scores.scale;
    if (work_.query_codes == nullptr) return;
    quantize_inputs(scaled, depth, int8_query_group, work_.query_codes + slot * padded_pairs(depth),
                    work_.query_scales + slot * group_count(depth, int8_query_group));
  }

  void attend_keys(KeyRange block, const Look* look) const noexcept {
    for (Index head = 0; head < head_count_; ++head) {
      const TileRows& rows = rows_[head];
      for (Index row = 0; row < rows.count; ++row) {
        const KeyRange band = intersect(block, {rows.from[row], rows.to[row]});
        if (!band.empty()) attend_block({run_.call, source_, rows, work_, row, slot(head, row), band}, look);
      }
    }
  }

  const AttentionRun& run_;
  const KeySource& source_;
  Workspace& work_;
  Index head_count_;
  TileRows rows_[decode_slots];
};

/// The sums of a row's parts, in groups of group_parts, become work.accumulators and work.state (totals.hpp says why in two levels).
void join_parts(const AttentionRun& run, const TileRows& rows, Workspace& work) noexcept {
  constexpr Index group_parts = group_blocks * block_keys / part_keys;
  const Index width = work.accumulator_stride;
  float* group = work.accumulators + (tile_queries - 1) * width;
  for (Index row = 0; row < rows.count; ++row) {
    const Index first = part_index(run, rows, row, 0);
    const float* maxima = run.parts.maxima + first;
    const float maximum = *std::max_element(maxima, maxima + run.part_count);
    float* total = work.accumulators + row * width;
    std::fill_n(total, width, 0.0F);
    float sum = 0.0F;
    for (Index begin = 0; begin < run.part_count; begin += group_parts) {
      float group_sum = 0.0F;
      std::fill_n(group, width, 0.0F);
      for (Index part = begin; part < std::min(begin + group_parts, run.part_count); ++part) {
        // Equal ones may both be infinite.
        const float factor = maxima[part] == maximum ? 1.0F : std::exp(maxima[part] - maximum);
        group_sum += run.parts.sums[first + part] * factor;
        const float* sums = run.parts.accumulators + (first + part) * width;
        for (Index column = 0; column < width; ++column) group[column] += sums[column] * factor;
      }
      sum += group_sum;
      for (Index column = 0; column < width; ++column) total[column] += group[column];
    }
    work.state->maximum[row] = maximum;
    work.state->sum[row] = sum;
  }
}

}  // namespace

const float* row_scores(const AttentionCall& call, const KeySource& source, const TileRows& rows, Index row,
                        KeyRange keys, WeightsKind stage, Workspace& work) noexcept {
  const RowBlock block{call, source, rows, work, row, row, keys};
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

void decode_item(const AttentionRun& run, Index item, Workspace& work) noexcept {
  const AttentionCall& call = run.call;
  const Index head_index = item / run.head_items;
  const Index batch = head_index / call.shape.kv_heads;
  const Index kv_head = head_index % call.shape.kv_heads;
  const Index group = call.shape.heads / call.shape.kv_heads;
  const KeySource source(call, batch, kv_head);
  const bool looking = is_looking(call);
  const Index chunk = looking ? 1 : decode_slots / call.shape.query_length;
  for (Index first = 0; first < group; first += chunk) {
    SharingHeads heads(run, source, batch, kv_head * group + first, std::min(chunk, group - first), work);
    if (!looking) {
      heads.attend_part(item % run.head_items, nullptr);
      continue;
    }
    const TileRows& rows = heads.rows(0);
    const Look look(call, source, rows, rows.hull(0, rows.count));
    look.begin_rows(work);
    for (Index part = 0; part < run.part_count; ++part) heads.attend_part(part, &look);
    join_parts(run, rows, work);
    finish_rows(call, rows, work);
    look.finish(work);
  }
}

void finish_decode(const AttentionRun& run) noexcept {
  if (is_looking(run.call)) return;
  Workspace& work = run.workspaces[0];
  for (Index batch = 0; batch < run.call.shape.batch; ++batch) {
    for (Index head = 0; head < run.call.shape.heads; ++head) {
      const TileRows rows(run.call, batch, head, 0);
      join_parts(run, rows, work);
      finish_rows(run.call, rows, work);
    }
  }
}

}  // namespace lookback
