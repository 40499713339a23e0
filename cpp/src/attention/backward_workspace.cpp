#include "attention/backward_workspace.hpp"

#include <algorithm>
#include <new>

#include "attention/planner.hpp"
#include "lookback/parallel.hpp"

namespace lookback {
namespace {

using namespace kernels;

constexpr Index least_part_keys = 2 * block_keys;
constexpr Index most_parts = 8;

bool is_broadcast(Index stride, Index extent) noexcept { return stride == 0 && extent != 1; }

bool is_full(const AttentionCall& call) noexcept {
  const BiasView& bias = call.scores.bias;
  return !is_broadcast(bias.batch_stride, call.shape.batch) && !is_broadcast(bias.head_stride, call.shape.heads) &&
         !is_broadcast(bias.query_stride, call.shape.query_length) &&
         (bias.key_stride == 1 || call.shape.key_length == 1);
}

double product(Index a, Index b) noexcept { return static_cast<double>(a) * static_cast<double>(b); }

void plan(const BackwardRun& run, Planner& planner, BackwardWorkspace& parts) noexcept {
  const AttentionShape& shape = run.call.forward.shape;
  parts.scores.query_panels = planner.take<float>(product(shape.head_dim, tile_queries));
  parts.scores.scores = planner.take<float>(product(block_keys, tile_queries));
  if (run.call.forward.scores.softcap > 0.0F) {
    parts.scores.capped = planner.take<float>(product(block_keys, tile_queries));
  }
  parts.scores.visible = planner.take<std::uint8_t>(product(panel_width, block_keys));
  parts.gradients = planner.take<float>(product(block_keys, tile_queries));
  parts.grad_output_panels = planner.take<float>(product(shape.value_dim, tile_queries));
  parts.query_columns = planner.take<float>(product(run.key_width, tile_queries));
  parts.grad_output_columns = planner.take<float>(product(run.value_width, tile_queries));
  parts.key_columns = planner.take<float>(product(run.key_width, run.part_keys));
  parts.block_is_finite = planner.take<bool>(static_cast<double>(run.part_keys / block_keys));
  parts.grad_queries = planner.take<float>(product(run.key_width, tile_queries));
  parts.grad_keys = planner.take<float>(product(run.key_width, run.part_keys));
  parts.grad_values = planner.take<float>(product(run.value_width, run.part_keys));
  if (run.call.grad_bias != nullptr && !run.bias_is_full) {
    parts.bias_row = planner.take<double>(static_cast<double>(shape.key_length));
  }
}

void plan_bias(BackwardRun& run, Planner& planner) noexcept {
  if (run.call.grad_bias == nullptr) return;
  const AttentionShape& shape = run.call.forward.shape;
  if (run.bias_is_full) {
    const BiasView& bias = run.call.forward.scores.bias;
    run.bias_gradients = {run.call.grad_bias, bias.batch_stride, bias.head_stride, bias.query_stride};
    return;
  }
  run.bias_gradients = {
      planner.take<float>(product(shape.batch, shape.heads) * product(shape.query_length, shape.key_length)),
      shape.heads * shape.query_length * shape.key_length, shape.query_length * shape.key_length, shape.key_length};
}

/// Sizes come from the same plan as places: without memory it is carried out on a record of its own.
double plan(const AttentionBackwardCall& call, void* memory, BackwardRun*& placed) noexcept {
  const AttentionShape& shape = call.forward.shape;
  Planner planner(memory);
  BackwardRun sizes;
  placed = planner.take<BackwardRun>(1);
  BackwardRun& run = placed != nullptr ? *new (placed) BackwardRun : sizes;
  run.call = call;
  run.tile_count = (shape.query_length + tile_queries - 1) / tile_queries;
  run.part_keys = std::max(least_part_keys, round_up((shape.key_length + most_parts - 1) / most_parts, block_keys));
  run.part_keys = std::min(run.part_keys, round_up(shape.key_length, block_keys));
  run.part_count = run.part_keys == 0 ? 1 : (shape.key_length + run.part_keys - 1) / run.part_keys;
  run.item_count = shape.batch * shape.kv_heads * run.part_count;
  run.key_width = round_up(shape.head_dim, panel_width);
  run.value_width = round_up(shape.value_dim, panel_width);
  run.bias_is_full = is_full(call.forward);
  plan_bias(run, planner);
  if (run.part_count > 1) {
    run.query_parts =
        planner.take<float>(product(shape.batch, shape.heads) * product(shape.query_length, run.part_count) *
                            static_cast<double>(shape.head_dim));
  }
  const Index threads = thread_count();
  run.workspaces = planner.take<BackwardWorkspace>(static_cast<double>(threads));
  for (Index thread = 0; thread < threads; ++thread) {
    BackwardWorkspace parts;
    plan(run, planner, parts);
    if (run.workspaces != nullptr) new (run.workspaces + thread) BackwardWorkspace(parts);
  }
  return planner.bytes();
}

}  // namespace

double BackwardRun::bytes(const AttentionBackwardCall& call) noexcept {
  BackwardRun* none = nullptr;
  return plan(call, nullptr, none);
}

BackwardRun& BackwardRun::lay_out(const AttentionBackwardCall& call, void* memory) noexcept {
  BackwardRun* run = nullptr;
  plan(call, memory, run);
  return *run;
}

KeyRange BackwardRun::part(Index number) const noexcept {
  const Index from = number * part_keys;
  return {static_cast<std::int32_t>(from),
          static_cast<std::int32_t>(std::min(from + part_keys, call.forward.shape.key_length))};
}

float* BackwardRun::query_part(Index batch, Index head, Index query, Index number) const noexcept {
  const AttentionShape& shape = call.forward.shape;
  const Index row = (batch * shape.heads + head) * shape.query_length + query;
  return query_parts + (row * part_count + number) * shape.head_dim;
}

double attention_backward_workspace_bytes(const AttentionBackwardCall& call) noexcept {
  return BackwardRun::bytes(call);
}

}  // namespace lookback
