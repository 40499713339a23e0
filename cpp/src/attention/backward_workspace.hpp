#pragma once

// Scratch memory of attention_backward, planned before the call.

#include "attention/visibility.hpp"
#include "attention/workspace.hpp"

namespace lookback {

/// What one thread needs.
struct BackwardWorkspace {
  Workspace scores;                      ///< of it: query_panels, scores (weights later), capped, visible
  float* gradients = nullptr;            ///< [block_keys][tile_queries]: dO·Vᵀ, then the gradients of scores
  float* grad_output_panels = nullptr;   ///< [tile_panels][Dv][panel_width]: a tile's rows as lanes
  float* query_columns = nullptr;        ///< [D / panel_width][tile_queries][panel_width]
  float* grad_output_columns = nullptr;  ///< [Dv / panel_width][tile_queries][panel_width]
  float* key_columns = nullptr;          ///< [D / panel_width][part_keys][panel_width]
  bool* block_is_finite = nullptr;       ///< of a part's blocks: whether its keys are
  float* grad_queries = nullptr;         ///< [tile_queries][key_width]
  float* grad_keys = nullptr;            ///< [part_keys][key_width], not yet times scale
  float* grad_values = nullptr;          ///< [part_keys][value_width]
  double* bias_row = nullptr;            ///< [Lk]
};

/// What a call needs from its beginning to its end.
struct BackwardRun {
  AttentionBackwardCall call;
  Index tile_count = 0;  ///< of one head
  Index part_keys = 0;   ///< keys of one part, a multiple of block_keys: fixed by Lk
  Index part_count = 0;  ///< at least 1
  Index item_count = 0;  ///< (batch, kv head, part)
  Index key_width = 0;   ///< D and Dv in whole panels
  Index value_width = 0;
  bool bias_is_full = false;     ///< its gradient needs no sum: bias_gradients is the result itself
  MutableView bias_gradients;    ///< [B, H, Lq, Lk]; no data = not asked
  float* query_parts = nullptr;  ///< [B, H, Lq, part_count, D]: each part's share of dQ, only where there are several
  BackwardWorkspace* workspaces = nullptr;  ///< one per thread

  [[nodiscard]] static double bytes(const AttentionBackwardCall& call) noexcept;
  /// Lays everything out in `memory`, bytes(call) bytes.
  static BackwardRun& lay_out(const AttentionBackwardCall& call, void* memory) noexcept;

  [[nodiscard]] KeyRange part(Index number) const noexcept;
  [[nodiscard]] float* query_part(Index batch, Index head, Index query, Index number) const noexcept;
};

}  // namespace lookback
