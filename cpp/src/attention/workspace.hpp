#pragma once

// Scratch memory, planned before a call: nothing is allocated in the middle of it.

#include <cstddef>
#include <cstdint>

#include "kernels/softmax.hpp"
#include "lookback/attention.hpp"

namespace lookback {

/// What one thread needs.
struct Workspace {
  float* query_panels = nullptr;  ///< [tile_panels][D][panel_width]: a tile's queries, scaled; decoding: [slot][D]
  std::int16_t* query_codes = nullptr;  ///< decoding from an int8 cache: [slot][padded_pairs(D)], and their scales
  float* query_scales = nullptr;        ///< [slot][groups]
  float* scores = nullptr;              ///< [block_keys][tile_queries]: scores, then probabilities
  float* capped = nullptr;              ///< the same after softcap alone; for gradients
  float* accumulators = nullptr;        ///< [tile_queries][accumulator_stride]: output before normalisation
  float* value_panels = nullptr;        ///< [Dv / panel_width][Lk][panel_width]: one head's values, packed
  float* block_maxima = nullptr;        ///< [blocks][tile_queries]: the maximum in force at each block (for weights)
  std::uint8_t* block_is_finite = nullptr;  ///< [blocks]: whether the block's values are
  std::uint8_t* visible = nullptr;          ///< [panel_width][block_keys]
  kernels::RowState* state = nullptr;
  float* totals = nullptr;  ///< [tile_queries][accumulator_stride]: see totals.hpp; only where there are several groups
  kernels::RowState* total_state = nullptr;
  float* correction = nullptr;      ///< [tile_queries]
  float* converted_rows = nullptr;  ///< [block_keys][max(D, Dv)]: rows of an int8 cache as float32
  float* weight_rows = nullptr;     ///< [tile_queries][Lk]: a tile's weights, for summaries
  float* map_rests = nullptr;       ///< MapRests, which all threads share
  Index packed_head = -1;           ///< batch · Hkv + kv head whose values are in value_panels
  Index value_panel_count = 0;
  Index value_panel_stride = 0;
  Index accumulator_stride = 0;
};

/// What a call with a cache needs before the first tile.
struct CacheWorkspace {
  std::int32_t* offsets = nullptr;   ///< [B]: column of each row's first new token
  std::int32_t* starts = nullptr;    ///< [B]: column of its oldest token
  std::int32_t* ends = nullptr;      ///< [B]: column after its last token
  std::uint8_t* key_mask = nullptr;  ///< [B, Lk]
  float* new_keys =
      nullptr;  ///< [B, Hkv, new_length, D]: new tokens as the cache will store them, where it rolls in int8
  float* new_values = nullptr;  ///< [B, Hkv, new_length, Dv]
};

/// Decoding: sums over a part of the keys, of each query row on its own. They wait here to be joined in one order.
struct PartSums {
  float* accumulators = nullptr;  ///< [B, H, Lq, parts, accumulator_stride]
  float* maxima = nullptr;        ///< [B, H, Lq, parts]
  float* sums = nullptr;          ///< [B, H, Lq, parts]
};

/// What a call needs from its beginning to its end, at the start of its workspace; all else follows it.
struct AttentionRun {
  AttentionCall call;    ///< in terms of columns (cache_call.hpp)
  Index tile_count = 0;  ///< of one head
  Index part_count = 0;  ///< of one head's keys, when decoding
  Index head_items = 0;  ///< tiles or parts of one kv head that are items of work
  Index item_count = 0;  ///< (batch, kv head, tile or part)
  PartSums parts;
  bool complete = false;            ///< all outputs are written
  Workspace* workspaces = nullptr;  ///< one per thread
  CacheWorkspace cache;
  KvCache::Tokens new_tokens;  ///< with a cache: the caller's
  /// [B, H, tile_count, map_columns]: what a tile adds to the cell of a map that began in an earlier tile. It waits here, so that cells
  /// are summed in one order, whichever tile comes first.
  float* map_rests = nullptr;

  [[nodiscard]] static double bytes(const AttentionCall& call) noexcept;
  [[nodiscard]] static Index items(const AttentionCall& call) noexcept;
  /// Lays everything out in `memory`, bytes(call) bytes.
  static AttentionRun& lay_out(const AttentionCall& call, void* memory) noexcept;
};

/// Whether anything but output and logSumExp is asked for.
[[nodiscard]] inline bool is_looking(const AttentionCall& call) noexcept {
  return call.outputs.weights.data != nullptr || call.outputs.summary.wanted();
}

/// Blocks whose sums join the totals together: of up to 8192 keys there is one group, which is the sum itself.
inline constexpr Index group_blocks = 32;

[[nodiscard]] constexpr Index block_count(Index key_length) noexcept {
  return (key_length + kernels::block_keys - 1) / kernels::block_keys;
}

}  // namespace lookback
