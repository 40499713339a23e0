#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/backward_tile.hpp"
#include "attention/backward_workspace.hpp"
#include "attention/bias_gradient.hpp"
#include "attention/key_source.hpp"
#include "kernels/pack.hpp"
#include "lookback/attention.hpp"
#include "lookback/parallel.hpp"

namespace lookback {
namespace {

using namespace kernels;

/// The part's keys as column panels; notes which blocks hold NaN or ±∞.
void pack_keys(const BackwardRun& run, Index batch, Index kv_head, KeyRange part, BackwardWorkspace& work) noexcept {
  const AttentionCall& call = run.call.forward;
  const ConstView& keys = call.inputs.keys;
  for (Index first = part.from; first < part.to; first += block_keys) {
    const Index count = std::min<Index>(block_keys, part.to - first);
    work.block_is_finite[(first - part.from) / block_keys] =
        pack_columns(keys.row(batch, kv_head, first), keys.row_stride, count, call.shape.head_dim,
                     work.key_columns + (first - part.from) * panel_width, run.part_keys * panel_width);
  }
}

/// The tile's share of dQ: it is the whole where there is one part.
void store_query_gradients(const BackwardRun& run, const TileRows& rows, Index part, const float* gradients) noexcept {
  const Index head_dim = run.call.forward.shape.head_dim;
  for (Index row = 0; row < rows.count; ++row) {
    const Index query = rows.first_query + row;
    const float* source = gradients + row * run.key_width;
    if (run.part_count > 1) {
      std::copy_n(source, head_dim, run.query_part(rows.batch, rows.head, query, part));
    } else {
      store_scaled_row(source, head_dim, run.call.forward.scores.scale,
                       run.call.grad_queries.row(rows.batch, rows.head, query));
    }
  }
}

/// One part of the keys of one kv head against all queries that use it.
void backward_item(const BackwardRun& run, Index item, BackwardWorkspace& work) noexcept {
  const AttentionCall& call = run.call.forward;
  const AttentionShape& shape = call.shape;
  const Index number = item % run.part_count;
  const Index kv_head = item / run.part_count % shape.kv_heads;
  const Index batch = item / run.part_count / shape.kv_heads;
  const KeyRange part = run.part(number);
  const KeySource source(call, batch, kv_head);
  pack_keys(run, batch, kv_head, part, work);
  std::fill_n(work.grad_keys, part.count() * run.key_width, 0.0F);
  std::fill_n(work.grad_values, part.count() * run.value_width, 0.0F);
  const Index group = shape.heads / shape.kv_heads;
  for (Index head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (Index tile = 0; tile < run.tile_count; ++tile) {
      const TileRows rows(call, batch, head, tile * tile_queries);
      backward_tile(run, source, rows, part, work);
      store_query_gradients(run, rows, number, work.grad_queries);
    }
  }
  for (Index key = part.from; key < part.to; ++key) {
    store_scaled_row(work.grad_keys + (key - part.from) * run.key_width, shape.head_dim, call.scores.scale,
                     run.call.grad_keys.row(batch, kv_head, key));
    store_scaled_row(work.grad_values + (key - part.from) * run.value_width, shape.value_dim, 1.0F,
                     run.call.grad_values.row(batch, kv_head, key));
  }
}

/// dQ of the queries of one head from its parts, in their order.
void join_query_parts(const BackwardRun& run, Index batch, Index head) noexcept {
  const AttentionShape& shape = run.call.forward.shape;
  for (Index query = 0; query < shape.query_length; ++query) {
    float* sum = run.query_part(batch, head, query, 0);
    for (Index number = 1; number < run.part_count; ++number) {
      const float* part = run.query_part(batch, head, query, number);
      for (Index d = 0; d < shape.head_dim; ++d) sum[d] += part[d];
    }
    store_scaled_row(sum, shape.head_dim, run.call.forward.scores.scale, run.call.grad_queries.row(batch, head, query));
  }
}

/// Whether a query sees any key; `visible` is room for block_keys of them.
bool sees_keys(const AttentionCall& call, Index batch, Index head, Index query, std::uint8_t* visible) noexcept {
  const TileRows rows(call, batch, head, query / tile_queries * tile_queries);
  const Index row = query - rows.first_query;
  const Index end = rows.to[row];
  for (Index first = rows.from[row]; first < end; first += block_keys) {
    const KeyRange block{static_cast<std::int32_t>(first),
                         static_cast<std::int32_t>(std::min(first + block_keys, end))};
    if (visible_keys(call, rows, row, block, visible) != Coverage::none) return true;
  }
  return false;
}

void sink_gradient(const BackwardRun& run, Index head, std::uint8_t* visible) noexcept {
  const AttentionShape& shape = run.call.forward.shape;
  const double sink = run.call.forward.scores.sinks[head];
  double sum = 0.0;
  for (Index batch = 0; batch < shape.batch; ++batch) {
    for (Index query = 0; query < shape.query_length; ++query) {
      const double log_sum_exp = run.call.log_sum_exp[(batch * shape.heads + head) * shape.query_length + query];
      if (log_sum_exp == -std::numeric_limits<double>::infinity()) continue;
      const double product = grad_output_times_output(run.call, batch, head, query);
      // A row that sees nothing has output 0, which hides any gradient but NaN and ±∞.
      if (!std::isfinite(product) && !sees_keys(run.call.forward, batch, head, query, visible)) continue;
      sum -= std::exp(sink - log_sum_exp) * product;
    }
  }
  run.call.grad_sinks[head] = static_cast<float>(sum);
}

/// Multiply-adds, were no key hidden.
double cost(const AttentionShape& shape) noexcept {
  const double pairs = static_cast<double>(shape.query_length) * static_cast<double>(shape.key_length);
  const double widths = 3.0 * static_cast<double>(shape.head_dim) + 2.0 * static_cast<double>(shape.value_dim);
  return static_cast<double>(shape.batch) * static_cast<double>(shape.heads) * pairs * widths;
}

}  // namespace

Status attention_backward_begin(const AttentionBackwardCall& call, void* workspace, std::size_t workspace_bytes,
                                Index& items) noexcept {
  if (const Status status = validate_attention_backward(call); status != Status::ok) return status;
  if (workspace == nullptr || static_cast<double>(workspace_bytes) < attention_backward_workspace_bytes(call)) {
    return Status::workspace_too_small;
  }
  items = BackwardRun::lay_out(call, workspace).item_count;
  return Status::ok;
}

void attention_backward_run(void* workspace, Index from, Index to) noexcept {
  const BackwardRun& run = *static_cast<const BackwardRun*>(workspace);
  const double share = static_cast<double>(to - from) / static_cast<double>(run.item_count);
  parallel_for(from, to, cost(run.call.forward.shape) * share,
               [&run](Index item, Index thread) noexcept { backward_item(run, item, run.workspaces[thread]); });
}

void attention_backward_end(void* workspace) noexcept {
  const BackwardRun& run = *static_cast<const BackwardRun*>(workspace);
  const AttentionShape& shape = run.call.forward.shape;
  const Index heads = shape.batch * shape.heads;
  const double rows = static_cast<double>(heads) * static_cast<double>(shape.query_length);
  if (run.part_count > 1) {
    parallel_for(0, heads, rows * static_cast<double>(run.part_count * shape.head_dim),
                 [&](Index item, Index) noexcept { join_query_parts(run, item / shape.heads, item % shape.heads); });
  }
  if (run.call.grad_bias != nullptr && !run.bias_is_full) sum_bias_gradients(run);
  if (run.call.grad_sinks != nullptr) {
    parallel_for(
        0, shape.heads, rows * static_cast<double>(shape.value_dim),
        [&run](Index head, Index thread) noexcept { sink_gradient(run, head, run.workspaces[thread].scores.visible); });
  }
}

Status attention_backward(const AttentionBackwardCall& call, void* workspace, std::size_t workspace_bytes) noexcept {
  Index items = 0;
  if (const Status status = attention_backward_begin(call, workspace, workspace_bytes, items); status != Status::ok) {
    return status;
  }
  attention_backward_run(workspace, 0, items);
  attention_backward_end(workspace);
  return Status::ok;
}

}  // namespace lookback
