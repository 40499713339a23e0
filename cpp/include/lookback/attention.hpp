#pragma once

#include <cstddef>
#include <cstdint>

#include "lookback/kv_cache.hpp"
#include "lookback/status.hpp"
#include "lookback/views.hpp"

namespace lookback {

/// Extents of one attention: B batch, H heads, Hkv key/value heads, Lq queries, Lk keys, D head_dim, Dv value_dim.
/// Query head h reads key/value head ⌊h·Hkv/H⌋ (grouped queries: Ainslie et al. 2023, arXiv:2305.13245).
struct AttentionShape {
  Index batch = 1;
  Index heads = 1;
  Index kv_heads = 1;
  Index query_length = 0;
  Index key_length = 0;
  Index head_dim = 1;
  Index value_dim = 1;
};

inline constexpr std::int32_t unlimited = INT32_MAX;

/// Which keys a query may attend to. Everything here is an intersection: a key is visible iff every member allows it.
/// Positions are absolute: query row i of batch row b stands at i + query_offsets[b].
struct Visibility {
  bool causal = false;                          ///< j ≤ i + offset
  const std::int32_t* query_offsets = nullptr;  ///< [B]; nullptr = all 0
  std::int32_t window_left = unlimited;         ///< i + offset − left ≤ j
  std::int32_t window_right = unlimited;        ///< j ≤ i + offset + right
  const std::int32_t* key_starts = nullptr;     ///< [B]; only keys from it on exist; nullptr = 0
  const std::int32_t* key_lengths = nullptr;    ///< [B]; only keys below it exist; nullptr = Lk
  const std::uint8_t* key_mask = nullptr;       ///< [B, Lk], 1 = a real token
  MaskView mask;                                ///< 1 = may attend
};

/// Dropout of attention weights, for training: with probability p a weight becomes 0, and the others are multiplied by 1 / (1 − p)
/// (Srivastava et al. 2014). Which ones depends on the seed, batch row, head, i + offset and j alone, never on tiles or threads.
struct Dropout {
  float p = 0.0F;  ///< in [0, 1); 0 = none
  std::uint64_t seed = 0;
};

/// What is added to or done with the scores before softmax.
struct ScoreOptions {
  float scale = 1.0F;                   ///< multiplies Q·Kᵀ; any finite number
  float softcap = 0.0F;                 ///< score → softcap · tanh(score / softcap); 0 = none
  BiasView bias;                        ///< added after softcap; −∞ in it masks
  const float* alibi_slopes = nullptr;  ///< [H]; adds −slope·|i + offset − j| (Press et al. 2021, arXiv:2108.12409)
  const float* sinks = nullptr;         ///< [H]; exp(sink) joins the denominator and has no value
  Dropout dropout;  ///< after softmax; weights, summaries and log_sum_exp are those before it; not with a cache
};

struct AttentionInputs {
  ConstView queries;  ///< [B, H, Lq, D]
  ConstView keys;     ///< [B, Hkv, Lk, D]
  ConstView values;   ///< [B, Hkv, Lk, Dv]
  /// Where earlier keys and values are. `keys` and `values` are then the new tokens [B, Hkv, new_length, …], which are appended to
  /// it; Lk = cache.columns() + new_length, column 0 is position cache.first_position(); query i of row b stands at its length
  /// before the call plus i. visibility's query_offsets and key_starts are not used, key_lengths and key_mask ([B, new_length])
  /// speak of the new tokens.
  KvCache cache;
  Index new_length = 0;
};

/// The stage of the calculation that a weights request returns, numbered as ONNX's qk_matmul_output_mode.
enum class WeightsKind : int { scores = 0, capped = 1, masked = 2, softmax = 3 };

/// Asks for the attention weights of chosen heads and query rows. Never changes a bit of the output.
struct WeightsRequest {
  float* data = nullptr;  ///< [B, head_count, query_to − query_from, Lk], contiguous; nullptr = not asked
  WeightsKind kind = WeightsKind::softmax;
  const std::int32_t* heads = nullptr;  ///< [head_count]; nullptr = all heads in order
  Index head_count = 0;
  Index query_from = 0;
  Index query_to = 0;
};

/// Asks for figures of every row's weights, gathered while the rows pass by: no [Lq, Lk] is ever stored. A null pointer = not asked.
struct SummaryRequest {
  Index top_k = 0;                      ///< places per row
  std::int32_t* top_indices = nullptr;  ///< [B, H, Lq, top_k] keys by falling weight, then rising number; −1 = no more
  float* top_weights = nullptr;         ///< [B, H, Lq, top_k]; 0 where the index is −1
  float* entropy = nullptr;             ///< [B, H, Lq], −Σ w·ln w in nats
  float* distance = nullptr;            ///< [B, H, Lq], Σ w·(i + offset − j)
  float* map = nullptr;                 ///< [B, H, map_rows, map_columns]
  Index map_rows = 0;     ///< ≤ Lq; cell r holds rows ⌊r·Lq/R⌋ … ⌊(r+1)·Lq/R⌋ − 1 and is the mean over them
  Index map_columns = 0;  ///< ≤ Lk; … of the weight that they give to the keys of its column

  [[nodiscard]] bool wanted() const noexcept {
    return top_indices != nullptr || entropy != nullptr || distance != nullptr || map != nullptr;
  }
};

struct AttentionOutputs {
  MutableView output;  ///< [B, H, Lq, Dv]; must not overlap an input
  WeightsRequest weights;
  SummaryRequest summary;
  float* log_sum_exp = nullptr;  ///< [B, H, Lq], natural logarithm; −∞ for a row that sees nothing
};

struct AttentionCall {
  AttentionShape shape;
  AttentionInputs inputs;
  Visibility visibility;
  ScoreOptions scores;
  AttentionOutputs outputs;
};

/// Scratch bytes that attention_forward needs. Of each thread (parallel.hpp): O(tile · (D + Dv)) plus, but for a few queries, the packed
/// values of one head, [Lk, Dv]; with a summary a tile's rows, [tile, Lk]. Of all: with a map a row of it per tile; for a few
/// queries the sums of each part of 1024 keys, [B, H, Lq, Lk / 1024, Dv]; with a cache a table
/// of its columns, [B, Lk], and for one that rolls in int8 the new tokens.
/// A double, so that a size beyond the address space is a number and not an overflow.
[[nodiscard]] double attention_workspace_bytes(const AttentionCall& call) noexcept;

/// output = softmax(capped(scale · Q Kᵀ) + bias, −∞ where not visible) · V, row by row without storing the scores
/// (Dao et al. 2022, arXiv:2205.14135, with the running maximum of Milakov and Gimelshein 2018, arXiv:1805.02867).
///
/// A row that sees no key gives 0 (log_sum_exp −∞). What masked keys, values or biases hold has no influence, NaN and
/// ±∞ included. |error| ≤ max|visible V| · (2e-6 + 2⁻²³ · max |scale|·Σ|q·k|). The bits of a row depend on Lq, Lk, D, Dv and
/// the options only. `workspace` is at least attention_workspace_bytes(call) bytes, aligned to 64.
Status attention_forward(const AttentionCall& call, void* workspace, std::size_t workspace_bytes) noexcept;

/// attention_forward in slices, for callers that look at something else between them. Its state is in the workspace, which with the
/// operands must stay as it is until the end.
///
/// Accepts or refuses the call as attention_forward does; `items` is how many items of work it has, each a tile of queries of the heads
/// that share keys. A cache that does not roll holds the new tokens from now on.
Status attention_begin(const AttentionCall& call, void* workspace, std::size_t workspace_bytes, Index& items) noexcept;
/// The items [from, to), by all threads. Any division into slices, in any order, gives the same bits.
void attention_run(void* workspace, Index from, Index to) noexcept;
/// After all items: from now on the outputs are what they will be. For who needs them before attention_end, which does the same.
void attention_complete(void* workspace) noexcept;
/// After all items. If `finished` is false some were left out: then the outputs are worthless and the cache gets its old lengths back.
void attention_end(void* workspace, bool finished) noexcept;

/// The gradients of a loss with respect to what attention_forward read, given the one with respect to its output.
struct AttentionBackwardCall {
  AttentionCall forward;               ///< as it was computed; no cache; its outputs are not looked at
  ConstView output;                    ///< [B, H, Lq, Dv], the forward call's
  const float* log_sum_exp = nullptr;  ///< [B, H, Lq], the forward call's
  ConstView grad_output;               ///< [B, H, Lq, Dv]
  MutableView grad_queries;            ///< [B, H, Lq, D]; the gradients are written, not added to what was there
  MutableView grad_keys;               ///< [B, Hkv, Lk, D]: the sum over the heads that share it
  MutableView grad_values;             ///< [B, Hkv, Lk, Dv]
  float* grad_bias =
      nullptr;  ///< as large as the bias and with its strides: summed where it is broadcast; nullptr = not asked
  float* grad_sinks = nullptr;  ///< [H]; nullptr = not asked
};

/// Scratch bytes that attention_backward needs. Of each thread O(part · (D + Dv) + tile · (D + Dv)), where a part is 512 keys or an eighth of
/// them; of all, with more than 512 keys, up to 8 times the gradient of the queries; with the gradient of a bias that is broadcast
/// [B, H, Lq, Lk].
[[nodiscard]] double attention_backward_workspace_bytes(const AttentionBackwardCall& call) noexcept;

/// Computes weights again from log_sum_exp, tile by tile (Dao et al. 2022, arXiv:2205.14135, algorithm 4):
///
///     P = e^(masked scores − log_sum_exp)     dV = Pᵀ·dO     dP = dO·Vᵀ     dM = P ∘ (dP − rowsum(dO ∘ O))
///     dS = dM · (1 − (capped / softcap)²)     dQ = scale · dS·K     dK = scale · dSᵀ·Q
///     dBias = dM     dSink = −Σ e^(sink − log_sum_exp) · rowsum(dO ∘ O)
///
/// with P and dP ∘ the mask of dropout / (1 − p) in dV and dP. What masked keys, values or biases hold has no influence, NaN and ±∞
/// included; what nothing sees and rows that see nothing have gradient 0. The order of every sum depends on Lq, Lk, D, Dv and the options
/// only. `workspace` is at least attention_backward_workspace_bytes(call) bytes, aligned to 64.
Status attention_backward(const AttentionBackwardCall& call, void* workspace, std::size_t workspace_bytes) noexcept;

/// attention_backward in slices, as attention_begin and so on: its items are the parts of the keys of each kv head. Nothing is to be done
/// after slices of which some were left out: then the gradients are worthless.
Status attention_backward_begin(const AttentionBackwardCall& call, void* workspace, std::size_t workspace_bytes,
                                Index& items) noexcept;
void attention_backward_run(void* workspace, Index from, Index to) noexcept;
void attention_backward_end(void* workspace) noexcept;

/// Whether the call is one that attention_backward accepts.
Status validate_attention_backward(const AttentionBackwardCall& call) noexcept;

/// Whether the call is one that attention_forward accepts; looks at shapes, options and pointers, not at values.
Status validate_attention(const AttentionCall& call) noexcept;

}  // namespace lookback
