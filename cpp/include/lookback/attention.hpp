#pragma once

#include <cstddef>
#include <cstdint>

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
  bool causal = false;                           ///< j ≤ i + offset
  const std::int32_t* query_offsets = nullptr;   ///< [B]; nullptr = all 0
  std::int32_t window_left = unlimited;          ///< i + offset − left ≤ j
  std::int32_t window_right = unlimited;         ///< j ≤ i + offset + right
  const std::int32_t* key_lengths = nullptr;     ///< [B]; only keys below it exist; nullptr = Lk
  const std::uint8_t* key_mask = nullptr;        ///< [B, Lk], 1 = a real token
  MaskView mask;                                 ///< 1 = may attend
};

/// What is added to or done with the scores before softmax.
struct ScoreOptions {
  float scale = 1.0F;                      ///< multiplies Q·Kᵀ; any finite number
  float softcap = 0.0F;                    ///< score → softcap · tanh(score / softcap); 0 = none
  BiasView bias;                           ///< added after softcap; −∞ in it masks
  const float* alibi_slopes = nullptr;     ///< [H]; adds −slope·|i + offset − j| (Press et al. 2021, arXiv:2108.12409)
  const float* sinks = nullptr;            ///< [H]; exp(sink) joins the denominator and has no value
};

struct AttentionInputs {
  ConstView queries;  ///< [B, H, Lq, D]
  ConstView keys;     ///< [B, Hkv, Lk, D]
  ConstView values;   ///< [B, Hkv, Lk, Dv]
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

struct AttentionOutputs {
  MutableView output;             ///< [B, H, Lq, Dv]; must not overlap an input
  WeightsRequest weights;
  float* log_sum_exp = nullptr;   ///< [B, H, Lq], natural logarithm; −∞ for a row that sees nothing
};

struct AttentionCall {
  AttentionShape shape;
  AttentionInputs inputs;
  Visibility visibility;
  ScoreOptions scores;
  AttentionOutputs outputs;
};

/// Scratch bytes that attention_forward needs: O(tile · (D + Dv)) plus the packed values of one head, [Lk, Dv].
/// A double, so that a size beyond the address space is a number and not an overflow.
[[nodiscard]] double attention_workspace_bytes(const AttentionCall& call) noexcept;

/// output = softmax(capped(scale · Q Kᵀ) + bias, −∞ where not visible) · V, row by row without storing the scores
/// (Dao et al. 2022, arXiv:2205.14135, with the running maximum of Milakov and Gimelshein 2018, arXiv:1805.02867).
///
/// A row that sees no key gives 0 (log_sum_exp −∞). What masked keys, values or biases hold has no influence, NaN and
/// ±∞ included. |error| ≤ max|visible V| · (2e-6 + 2⁻²³ · max |scale|·Σ|q·k|). The bits of a row depend on Lq, Lk, D, Dv and
/// the options only. `workspace` is at least attention_workspace_bytes(call) bytes, aligned to 64.
Status attention_forward(const AttentionCall& call, void* workspace, std::size_t workspace_bytes) noexcept;

/// Whether the call is one that attention_forward accepts; looks at shapes, options and pointers, not at values.
Status validate_attention(const AttentionCall& call) noexcept;

}  // namespace lookback
