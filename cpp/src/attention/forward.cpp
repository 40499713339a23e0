#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/cache_call.hpp"
#include "attention/decode.hpp"
#include "attention/finish.hpp"
#include "attention/key_source.hpp"
#include "attention/look.hpp"
#include "attention/score_block.hpp"
#include "attention/summary.hpp"
#include "attention/tile_dropout.hpp"
#include "attention/totals.hpp"
#include "attention/visibility.hpp"
#include "attention/workspace.hpp"
#include "kernels/pack.hpp"
#include "kernels/quantize.hpp"
#include "kernels/value_tile.hpp"
#include "lookback/attention.hpp"
#include "lookback/parallel.hpp"

namespace lookback {
namespace {

using namespace kernels;

/// One run of values into column panels; rows of an int8 cache are converted on the way. Whether all were finite.
bool pack_run(const AttentionCall& call, const KeySource::Run& run, KeyRange keys, Workspace& work) noexcept {
  const Index skip = keys.from - run.columns.from;
  const Index width = call.shape.value_dim;
  const float* source = nullptr;
  Index stride = run.values.stride;
  if (run.values.floats != nullptr) {
    source = run.values.floats + skip * stride;
  } else {
    for (Index row = 0; row < keys.count(); ++row) {
      dequantize_row(run.values.bytes + (skip + row) * stride, width, run.values.scales[skip + row],
                     work.converted_rows + row * width);
    }
    source = work.converted_rows;
    stride = width;
  }
  return pack_columns(source, stride, keys.count(), width, work.value_panels + keys.from * panel_width,
                      work.value_panel_stride);
}

/// Copies one head's values into column panels; notes which blocks hold NaN or ±∞.
void pack_values(const AttentionCall& call, const KeySource& source, Workspace& work) noexcept {
  if (call.inputs.cache) {  // there may be columns without a token
    std::fill_n(work.value_panels, work.accumulator_stride * call.shape.key_length, 0.0F);
  }
  for (Index block = 0; block < block_count(call.shape.key_length); ++block) {
    const Index first = block * block_keys;
    const KeyRange keys{static_cast<std::int32_t>(first),
                        static_cast<std::int32_t>(std::min(first + block_keys, call.shape.key_length))};
    bool finite = true;
    for (const KeySource::Run& run : source) {
      const KeyRange part = intersect(keys, run.columns);
      if (!part.empty()) finite = pack_run(call, run, part, work) && finite;
    }
    work.block_is_finite[block] = finite ? 1 : 0;
  }
}

/// The product with a block of values that holds NaN or ±∞: each row only takes part in what it sees.
void accumulate_carefully(const AttentionCall& call, const TileRows& rows, KeyRange keys, Workspace& work) noexcept {
  const float* probabilities = work.scores + (keys.from % block_keys) * tile_queries;
  for (Index row = 0; row < rows.count; ++row) {
    static_cast<void>(visible_keys(call, rows, row, keys, work.visible));
    for (Index panel = 0; panel < work.value_panel_count; ++panel) {
      accumulate_visible_values(probabilities + row, work.visible,
                                work.value_panels + panel * work.value_panel_stride + keys.from * panel_width,
                                keys.count(), work.correction[row],
                                work.accumulators + row * work.accumulator_stride + panel * panel_width);
    }
  }
}

void accumulate(const TileRows& rows, KeyRange keys, Workspace& work) noexcept {
  constexpr Index most_groups = (tile_queries + register_rows - 1) / register_rows;
  KeyRange seen_by_group[most_groups];
  const Index rows_of_group = rows_at_once();
  for (Index first = 0; first < rows.count; first += rows_of_group) {
    const Index row_count = std::min(rows_of_group, rows.count - first);
    seen_by_group[first / rows_of_group] = intersect(keys, rows.hull(first, row_count));
  }
  for (Index panel = 0; panel < work.value_panel_count; ++panel) {
    for (Index first = 0; first < rows.count; first += rows_of_group) {
      const KeyRange range = seen_by_group[first / rows_of_group];
      if (range.empty()) continue;
      accumulate_values(
          work.scores + (range.from % block_keys) * tile_queries + first, std::min(rows_of_group, rows.count - first),
          work.value_panels + panel * work.value_panel_stride + range.from * panel_width, range.count(),
          work.correction + first, work.accumulators + first * work.accumulator_stride + panel * panel_width,
          work.accumulator_stride);
    }
  }
}

/// Block by block for all rows of the tile at once.
void attend_blocks(const AttentionCall& call, const KeySource& source, const TileRows& rows, const Look& look,
                   Workspace& work) noexcept {
  pack_queries(call, rows, work);
  const TileDropout dropout(call, rows);
  const KeyRange tile_keys = rows.hull(0, rows.count);
  for (Index first = tile_keys.from / block_keys * block_keys; first < tile_keys.to; first += block_keys) {
    const KeyRange block{static_cast<std::int32_t>(first), static_cast<std::int32_t>(first + block_keys)};
    const KeyRange keys = intersect(block, tile_keys);
    const bool seen = probabilities_of_block(call, source, rows, keys, work);
    look.take_block(keys, work);
    if (seen) dropout.apply(rows, keys, work.scores);
    if (seen && work.block_is_finite[first / block_keys] != 0) {
      accumulate(rows, keys, work);
    } else if (seen) {
      accumulate_carefully(call, rows, keys, work);
    }
    if (ends_group(first)) join_totals(rows, work);
  }
}

void attend_tile(const AttentionCall& call, const KeySource& source, const TileRows& rows, Workspace& work) noexcept {
  std::fill(work.state->maximum, work.state->maximum + tile_queries, -std::numeric_limits<float>::infinity());
  std::fill(work.state->sum, work.state->sum + tile_queries, 0.0F);
  std::fill(work.accumulators, work.accumulators + tile_queries * work.accumulator_stride, 0.0F);
  begin_totals(work);
  const Look look(call, source, rows, rows.hull(0, rows.count));
  attend_blocks(call, source, rows, look, work);
  finish_totals(rows, work);
  finish_rows(call, rows, work);
  look.finish(work);
}

/// One tile of queries of all heads that share keys. A head's last tiles, with causality the longest, come first: the short ones
/// are left for when some threads have nothing more to do.
void attend_item(const AttentionRun& run, Index item, Workspace& work) noexcept {
  const AttentionCall& call = run.call;
  const Index head_index = item / run.head_items;
  const Index tile = run.tile_count - 1 - item % run.head_items;
  const Index batch = head_index / call.shape.kv_heads;
  const Index kv_head = head_index % call.shape.kv_heads;
  const KeySource source(call, batch, kv_head);
  if (work.packed_head != head_index) {
    pack_values(call, source, work);
    work.packed_head = head_index;
  }
  const Index group = call.shape.heads / call.shape.kv_heads;
  for (Index head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    attend_tile(call, source, TileRows(call, batch, head, tile * tile_queries), work);
  }
}

/// Multiply-adds of one item, were no key hidden.
double item_cost(const AttentionRun& run) noexcept {
  const AttentionShape& shape = run.call.shape;
  const Index rows = std::min(shape.query_length, tile_queries) * (shape.heads / shape.kv_heads);
  const Index keys = run.head_items > run.tile_count ? part_keys : shape.key_length;
  return static_cast<double>(rows) * static_cast<double>(keys) * static_cast<double>(shape.head_dim + shape.value_dim);
}

}  // namespace

Status attention_begin(const AttentionCall& call, void* workspace, std::size_t workspace_bytes, Index& items) noexcept {
  if (const Status status = validate_attention(call); status != Status::ok) return status;
  if (workspace == nullptr || static_cast<double>(workspace_bytes) < attention_workspace_bytes(call)) {
    return Status::workspace_too_small;
  }
  AttentionRun& run = AttentionRun::lay_out(call, workspace);
  run.new_tokens = new_tokens(call);
  run.call = call.inputs.cache ? columns_of_cache(call, run.cache) : call;
  begin_summary(run);
  items = run.item_count;
  return Status::ok;
}

void attention_run(void* workspace, Index from, Index to) noexcept {
  const AttentionRun& run = *static_cast<const AttentionRun*>(workspace);
  parallel_for(from, to, item_cost(run) * static_cast<double>(to - from), [&run](Index item, Index thread) noexcept {
    const auto attend = is_decode(run.call) ? decode_item : attend_item;
    attend(run, item, run.workspaces[thread]);
  });
}

void attention_complete(void* workspace) noexcept {
  AttentionRun& run = *static_cast<AttentionRun*>(workspace);
  if (run.complete) return;
  if (is_decode(run.call)) finish_decode(run);
  finish_summary(run);
  run.complete = true;
}

void attention_end(void* workspace, bool finished) noexcept {
  const AttentionRun& run = *static_cast<const AttentionRun*>(workspace);
  if (finished) attention_complete(workspace);
  if (run.call.inputs.cache) end_cache_call(run, finished);
}

Status attention_forward(const AttentionCall& call, void* workspace, std::size_t workspace_bytes) noexcept {
  Index items = 0;
  if (const Status status = attention_begin(call, workspace, workspace_bytes, items); status != Status::ok) {
    return status;
  }
  attention_run(workspace, 0, items);
  attention_end(workspace, true);
  return Status::ok;
}

}  // namespace lookback
