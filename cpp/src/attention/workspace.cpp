#include "attention/workspace.hpp"

#include <algorithm>
#include <new>

#include "attention/decode.hpp"
#include "attention/planner.hpp"
#include "kernels/dot_rows.hpp"
#include "kernels/int8_tile.hpp"
#include "lookback/parallel.hpp"

namespace lookback {
namespace {

using namespace kernels;

void plan(const AttentionCall& call, Planner& planner, Workspace& parts) noexcept {
  const AttentionShape& shape = call.shape;
  const auto depth = static_cast<double>(shape.head_dim);
  const auto key_length = static_cast<double>(shape.key_length);
  const auto blocks = static_cast<double>(block_count(shape.key_length));
  parts.value_panel_count = round_up(shape.value_dim, panel_width) / panel_width;
  parts.value_panel_stride = shape.key_length * panel_width;
  parts.accumulator_stride = parts.value_panel_count * panel_width;
  parts.query_panels = planner.take<float>(depth * tile_queries);
  if (is_decode(call) && call.inputs.cache && call.inputs.cache.shape().type == CacheType::int8) {
    parts.query_codes = planner.take<std::int16_t>(static_cast<double>(padded_pairs(shape.head_dim)) * decode_slots);
    parts.query_scales =
        planner.take<float>(static_cast<double>(group_count(shape.head_dim, int8_query_group)) * decode_slots);
  }
  parts.scores = planner.take<float>(static_cast<double>(block_keys * tile_queries));
  parts.accumulators =
      planner.take<float>(static_cast<double>(tile_queries) * static_cast<double>(parts.accumulator_stride));
  if (!is_decode(call)) {
    parts.value_panels = planner.take<float>(static_cast<double>(parts.accumulator_stride) * key_length);
  }
  parts.block_maxima = planner.take<float>(blocks * tile_queries);
  parts.block_is_finite = planner.take<std::uint8_t>(blocks);
  parts.visible = planner.take<std::uint8_t>(static_cast<double>(panel_width * block_keys));
  parts.state = planner.take<RowState>(1);
  parts.correction = planner.take<float>(tile_queries);
  if (!is_decode(call) && block_count(shape.key_length) > group_blocks) {
    parts.totals =
        planner.take<float>(static_cast<double>(tile_queries) * static_cast<double>(parts.accumulator_stride));
    parts.total_state = planner.take<RowState>(1);
  }
  if (call.inputs.cache && call.inputs.cache.shape().type == CacheType::int8) {
    const Index width = std::max(shape.head_dim, shape.value_dim);
    parts.converted_rows = planner.take<float>(static_cast<double>(block_keys) * static_cast<double>(width));
  }
  if (call.outputs.summary.wanted()) parts.weight_rows = planner.take<float>(tile_queries * key_length);
}

void plan(const AttentionCall& call, Planner& planner, CacheWorkspace& parts) noexcept {
  if (!call.inputs.cache) return;
  const AttentionShape& shape = call.shape;
  const auto batch = static_cast<double>(shape.batch);
  parts.offsets = planner.take<std::int32_t>(batch);
  parts.starts = planner.take<std::int32_t>(batch);
  parts.ends = planner.take<std::int32_t>(batch);
  parts.key_mask = planner.take<std::uint8_t>(batch * static_cast<double>(shape.key_length));
  const KvCacheShape& cache = call.inputs.cache.shape();
  if (cache.rolling && cache.type == CacheType::int8) {
    const double tokens = batch * static_cast<double>(shape.kv_heads) * static_cast<double>(call.inputs.new_length);
    parts.new_keys = planner.take<float>(tokens * static_cast<double>(shape.head_dim));
    parts.new_values = planner.take<float>(tokens * static_cast<double>(shape.value_dim));
  }
}

/// Of one head.
Index tiles(const AttentionCall& call) noexcept { return (call.shape.query_length + tile_queries - 1) / tile_queries; }

/// Of one head's keys.
Index parts(const AttentionCall& call) noexcept {
  return std::max<Index>(1, (call.shape.key_length + part_keys - 1) / part_keys);
}

/// Of one kv head. Who looks at weights needs all parts of a row at once.
Index kv_head_items(const AttentionCall& call) noexcept {
  return tiles(call) * (is_decode(call) && !is_looking(call) ? parts(call) : 1);
}

void plan_parts(const AttentionCall& call, Planner& planner, AttentionRun& run) noexcept {
  if (!is_decode(call)) return;
  const AttentionShape& shape = call.shape;
  run.part_count = parts(call);
  const double rows = static_cast<double>(shape.batch) * static_cast<double>(shape.heads) *
                      static_cast<double>(shape.query_length) * static_cast<double>(run.part_count);
  run.parts.accumulators = planner.take<float>(rows * static_cast<double>(round_up(shape.value_dim, panel_width)));
  run.parts.maxima = planner.take<float>(rows);
  run.parts.sums = planner.take<float>(rows);
}

/// Sizes come from the same plan as places: without memory it is carried out on a record of its own.
double plan(const AttentionCall& call, void* memory, AttentionRun*& placed) noexcept {
  const AttentionShape& shape = call.shape;
  Planner planner(memory);
  AttentionRun sizes;
  placed = planner.take<AttentionRun>(1);
  AttentionRun& run = placed != nullptr ? *new (placed) AttentionRun : sizes;
  run.tile_count = tiles(call);
  run.head_items = kv_head_items(call);
  run.item_count = AttentionRun::items(call);
  plan_parts(call, planner, run);
  plan(call, planner, run.cache);
  const SummaryRequest& summary = call.outputs.summary;
  if (summary.map != nullptr && run.tile_count > 1) {
    run.map_rests = planner.take<float>(static_cast<double>(shape.batch) * static_cast<double>(shape.heads) *
                                        static_cast<double>(run.tile_count) * static_cast<double>(summary.map_columns));
  }
  const Index threads = std::clamp<Index>(run.item_count, 1, thread_count());
  run.workspaces = planner.take<Workspace>(static_cast<double>(threads));
  for (Index thread = 0; thread < threads; ++thread) {
    Workspace parts;
    plan(call, planner, parts);
    parts.map_rests = run.map_rests;
    if (run.workspaces != nullptr) new (run.workspaces + thread) Workspace(parts);
  }
  return planner.bytes();
}

}  // namespace

double AttentionRun::bytes(const AttentionCall& call) noexcept {
  AttentionRun* none = nullptr;
  return plan(call, nullptr, none);
}

Index AttentionRun::items(const AttentionCall& call) noexcept {
  return call.shape.batch * call.shape.kv_heads * kv_head_items(call);
}

AttentionRun& AttentionRun::lay_out(const AttentionCall& call, void* memory) noexcept {
  AttentionRun* run = nullptr;
  plan(call, memory, run);
  return *run;
}

double attention_workspace_bytes(const AttentionCall& call) noexcept { return AttentionRun::bytes(call); }

}  // namespace lookback
