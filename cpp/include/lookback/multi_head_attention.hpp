#pragma once

#include <cstddef>

#include "lookback/attention.hpp"
#include "lookback/linear.hpp"
#include "lookback/rotary.hpp"

namespace lookback {

/// Multi-head attention with its four projections (Vaswani et al. 2017, arXiv:1706.03762, §3.2.2):
/// concat(head_1 … head_H) · W_Oᵀ with head_h = attention(x·W_Qᵀ, m·W_Kᵀ, m·W_Vᵀ). All operands are contiguous.
struct MultiHeadAttentionCall {
  /// Shape, visibility, score options, cache and what is to be returned; its operands and its output view are not used. With a
  /// cache the memory is the new tokens, [B, new_length, …].
  AttentionCall attention;
  const float* input = nullptr;             ///< [B, Lq, query.inputs]
  const float* memory_keys = nullptr;       ///< [B, Lk, key.inputs]; the input itself for self-attention
  const float* memory_values = nullptr;     ///< [B, Lk, value.inputs]
  const float* projected_keys = nullptr;    ///< [B, Lk, Hkv·D]: already projected, then the memory is not read …
  const float* projected_values = nullptr;  ///< [B, Lk, Hkv·Dv]: … and neither are key and value
  float* output = nullptr;                  ///< [B, Lq, output_projection.outputs]
  PackedLinear query;                       ///< inputs → H·D
  PackedLinear key;                         ///< inputs → Hkv·D
  PackedLinear value;                       ///< inputs → Hkv·Dv
  PackedLinear output_projection;           ///< H·Dv → outputs
  /// Turns queries and keys after their projection, where dims > 0; for self-attention, so that both have the positions.
  RotaryOptions rotary;
  const std::int32_t* positions = nullptr;  ///< [B, Lq]
};

/// Scratch bytes: the projections [B, L, …], the rotary tables [B, Lq, dims] and the workspace of the attention. Like that one it is
/// to be aligned to 64.
[[nodiscard]] double multi_head_attention_workspace_bytes(const MultiHeadAttentionCall& call) noexcept;

Status multi_head_attention_forward(const MultiHeadAttentionCall& call, void* workspace,
                                    std::size_t workspace_bytes) noexcept;

/// multi_head_attention_forward in slices, as attention_begin and the two after it: blocks of rows of the projections, the items of the
/// attention, blocks of rows of the output. Here the slices must come in their order.
Status multi_head_attention_begin(const MultiHeadAttentionCall& call, void* workspace, std::size_t workspace_bytes,
                                  Index& items) noexcept;
void multi_head_attention_run(void* workspace, Index from, Index to) noexcept;
Status multi_head_attention_end(void* workspace, bool finished) noexcept;

/// Where the gradients of one projection go.
struct ProjectionGradients {
  float* weight = nullptr;  ///< [outputs, inputs], plain rows
  float* bias = nullptr;    ///< [outputs]; nullptr = not asked
};

/// Gradients through multi_head_attention_forward, whose intermediate results are computed again. They are written, not added.
struct MultiHeadAttentionBackwardCall {
  MultiHeadAttentionCall forward;       ///< without a cache or a projected memory; its results are not looked at
  const float* grad_output = nullptr;   ///< [B, Lq, output_projection.outputs]
  float* grad_input = nullptr;          ///< [B, Lq, query.inputs]
  float* grad_memory_keys = nullptr;    ///< [B, Lk, key.inputs]; self-attention: grad_input, which gets the sum
  float* grad_memory_values = nullptr;  ///< [B, Lk, value.inputs]; it may be one of the two above, which gets the sum
  ProjectionGradients query, key, value, output_projection;
};

/// Scratch bytes: the projections and their gradients, a weight in panels, the workspaces of the attention and its gradients.
[[nodiscard]] double multi_head_attention_backward_workspace_bytes(const MultiHeadAttentionBackwardCall& call) noexcept;

Status multi_head_attention_backward(const MultiHeadAttentionBackwardCall& call, void* workspace,
                                     std::size_t workspace_bytes) noexcept;

}  // namespace lookback
