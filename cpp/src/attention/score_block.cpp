#include "attention/score_block.hpp"

#include <algorithm>
#include <limits>

#include "kernels/adjust.hpp"
#include "kernels/pack.hpp"
#include "kernels/quantize.hpp"
#include "kernels/row_tile.hpp"

namespace lookback {
namespace {

using namespace kernels;

/// One panel of a tile against one block of keys.
struct PanelBlock {
  const AttentionCall& call;
  const KeySource& source;
  const TileRows& rows;
  Workspace& work;
  Index first_row;  ///< of the panel within the tile
  Index row_count;  ///< rows of it that exist

  [[nodiscard]] float* scores(Index key) const noexcept {
    return work.scores + (key % block_keys) * tile_queries + first_row;
  }

  void multiply(KeyRange keys) const noexcept {
    alignas(64) static constexpr float zeros[panel_width] = {};
    const Index depth = call.shape.head_dim;
    const float* panel = work.query_panels + first_row * depth;
    for (const KeySource::Run& run : source) {
      const KeyRange part = intersect(keys, run.columns);
      if (part.empty()) continue;
      const bool converted = source.needs_conversion();
      const float* first = converted ? work.converted_rows + (part.from % block_keys) * depth
                                     : run.keys.floats + (part.from - run.columns.from) * run.keys.stride;
      multiply_rows(first, converted ? depth : run.keys.stride, part.count(), panel, depth, zeros, scores(part.from),
                    tile_queries);
    }
  }

  void cap(KeyRange keys) const noexcept {
    if (call.scores.softcap > 0.0F) cap_scores(scores(keys.from), keys.count(), call.scores.softcap);
    if (work.capped == nullptr) return;
    copy_panel(scores(keys.from), keys.count(), work.capped + (scores(keys.from) - work.scores));
  }

  void add_biases(KeyRange keys) const noexcept {
    if (const BiasView& bias = call.scores.bias; bias.data != nullptr) {
      const float* first = bias.row(rows.batch, rows.head, rows.first_query + first_row) + keys.from * bias.key_stride;
      add_bias(scores(keys.from), keys.count(), first, bias.query_stride, bias.key_stride, row_count);
    }
    if (call.scores.alibi_slopes != nullptr) {
      add_distance_penalty(scores(keys.from), keys.count(), keys.from, rows.position + first_row,
                           call.scores.alibi_slopes[rows.head]);
    }
  }

  [[nodiscard]] bool changes_scores() const noexcept {
    return call.scores.softcap > 0.0F || call.scores.bias.data != nullptr || call.scores.alibi_slopes != nullptr;
  }

  /// Fills work.visible for the panel's rows; lanes without a row repeat the last one.
  [[nodiscard]] Coverage look_for_holes(KeyRange keys) const noexcept {
    bool none = true;
    bool all = true;
    for (Index lane = 0; lane < panel_width; ++lane) {
      const Index row = first_row + std::min(lane, row_count - 1);
      const Coverage coverage = visible_keys(call, rows, row, keys, work.visible + lane * block_keys);
      none = none && coverage == Coverage::none;
      all = all && coverage == Coverage::all;
    }
    return none ? Coverage::none : all ? Coverage::all : Coverage::some;
  }

  /// The keys of `keys` that every row of the panel sees as far as bands go.
  [[nodiscard]] KeyRange core(KeyRange keys) const noexcept {
    KeyRange range = keys;
    for (Index row = first_row; row < first_row + row_count; ++row) {
      range = intersect(range, {rows.from[row], rows.to[row]});
    }
    return range.empty() ? KeyRange{keys.to, keys.to} : range;
  }

  void hide_band(KeyRange keys) const noexcept {
    if (keys.empty()) return;
    hide_outside_band(scores(keys.from), keys.count(), keys.from, rows.from + first_row, rows.to + first_row);
  }

  /// Raw scores, −∞ outside of the bands; nothing but bands decides what is visible.
  void score_plainly(KeyRange keys) const noexcept {
    multiply(keys);
    const KeyRange inside = core(keys);
    hide_band({keys.from, inside.from});
    hide_band({inside.to, keys.to});
  }

  void score_fully(KeyRange keys, Coverage coverage) const noexcept {
    multiply(keys);
    cap(keys);
    add_biases(keys);
    if (coverage == Coverage::some) hide_masked(scores(keys.from), keys.count(), work.visible, block_keys);
  }
};

/// Brings the block's keys into work.converted_rows where they are not float32 in memory.
void convert_keys(const AttentionCall& call, const KeySource& source, KeyRange keys, Workspace& work) noexcept {
  if (!source.needs_conversion()) return;
  const Index depth = call.shape.head_dim;
  for (const KeySource::Run& run : source) {
    const KeyRange part = intersect(keys, run.columns);
    for (std::int32_t key = part.from; key < part.to; ++key) {
      const Index row = key - run.columns.from;
      float* target = work.converted_rows + (key % block_keys) * depth;
      if (run.keys.floats != nullptr) {
        std::copy_n(run.keys.floats + row * run.keys.stride, depth, target);
      } else {
        dequantize_row(run.keys.bytes + row * run.keys.stride, depth, run.keys.scales[row], target);
      }
    }
  }
}

/// One panel's scores of the keys of `tile_keys` that any of its rows may see, which are returned; −∞ where hidden. Empty if none is seen:
/// then nothing was written.
KeyRange masked_scores(const PanelBlock& panel, KeyRange tile_keys) noexcept {
  const KeyRange keys = intersect(tile_keys, panel.rows.hull(panel.first_row, panel.row_count));
  if (keys.empty()) return {};
  bool plain = !panel.changes_scores();
  Coverage coverage = Coverage::all;
  if (!plain || has_holes(panel.call)) {
    coverage = panel.look_for_holes(keys);
    plain = plain && coverage == Coverage::all;
  }
  if (coverage == Coverage::none) return {};
  if (plain) {
    panel.score_plainly(keys);
  } else {
    panel.score_fully(keys, coverage);
  }
  return keys;
}

/// One panel's probabilities over `tile_keys`; false if it sees none of them.
bool probabilities_of_panel(const PanelBlock& panel, KeyRange tile_keys) noexcept {
  Workspace& work = panel.work;
  const KeyRange keys = masked_scores(panel, tile_keys);
  if (keys.empty()) {
    fill_zero(panel.scores(tile_keys.from), tile_keys.count());
    std::fill_n(work.correction + panel.first_row, panel_width, 1.0F);
    return false;
  }
  float maximum[panel_width];
  std::fill_n(maximum, panel_width, -std::numeric_limits<float>::infinity());
  join_maximum(panel.scores(keys.from), keys.count(), maximum);
  exponentiate(panel.scores(keys.from), keys.count(), maximum, work.state->maximum + panel.first_row,
               work.state->sum + panel.first_row, work.correction + panel.first_row);
  fill_zero(panel.scores(tile_keys.from), keys.from - tile_keys.from);
  if (keys.to < tile_keys.to) fill_zero(panel.scores(keys.to), tile_keys.to - keys.to);
  return true;
}

}  // namespace

void pack_queries(const AttentionCall& call, const TileRows& rows, Workspace& work) noexcept {
  const ConstView& q = call.inputs.queries;
  for (Index first = 0; first < rows.count; first += panel_width) {
    pack_rows_as_lanes(q.row(rows.batch, rows.head, rows.first_query + first), q.row_stride,
                       std::min(panel_width, rows.count - first), call.shape.head_dim, call.scores.scale,
                       work.query_panels + first * call.shape.head_dim);
  }
}

void scores_of_block(const AttentionCall& call, const KeySource& source, const TileRows& rows, KeyRange keys,
                     WeightsKind stage, Workspace& work) noexcept {
  // Columns without a token score 0.
  if (call.inputs.cache) std::fill_n(work.scores, block_keys * tile_queries, 0.0F);
  convert_keys(call, source, keys, work);
  for (Index first = 0; first < rows.count; first += panel_width) {
    const PanelBlock panel{call, source, rows, work, first, std::min(panel_width, rows.count - first)};
    panel.multiply(keys);
    if (stage == WeightsKind::scores) continue;
    panel.cap(keys);
    if (stage == WeightsKind::capped) continue;
    panel.add_biases(keys);
    static_cast<void>(panel.look_for_holes(keys));
    hide_masked(panel.scores(keys.from), keys.count(), work.visible, block_keys);
  }
}

KeyRange masked_scores_of_panel(const AttentionCall& call, const KeySource& source, const TileRows& rows, KeyRange keys,
                                Index first_row, Workspace& work) noexcept {
  return masked_scores({call, source, rows, work, first_row, std::min(panel_width, rows.count - first_row)}, keys);
}

bool probabilities_of_block(const AttentionCall& call, const KeySource& source, const TileRows& rows, KeyRange keys,
                            Workspace& work) noexcept {
  convert_keys(call, source, keys, work);
  bool seen = false;
  for (Index first = 0; first < rows.count; first += panel_width) {
    const PanelBlock panel{call, source, rows, work, first, std::min(panel_width, rows.count - first)};
    seen = probabilities_of_panel(panel, keys) || seen;
  }
  return seen;
}

}  // namespace lookback
