#pragma once

#include <cstdint>

#include "lookback/linear.hpp"

namespace lookback {

/// output[r] = scale · table[tokens[r]] (+ position_table[positions[r]]), [rows, table.inputs].
struct EmbeddingCall {
  PackedLinear table;  ///< [vocabulary = outputs, width = inputs]: a tied head is the very same
  float scale = 1.0F;
  const float* position_table = nullptr;  ///< [position_count, width] of learned positions, nullptr = none
  Index position_count = 0;
  const std::int32_t* tokens = nullptr;     ///< [rows]
  const std::int32_t* positions = nullptr;  ///< [rows]; with a position table
  Index rows = 0;
  float* output = nullptr;
};

/// token_out_of_range, context_exceeded: nothing has been written.
Status embedding_forward(const EmbeddingCall& call) noexcept;

/// Gradients through embedding_forward, for tables of float32 (else invalid_argument).
struct EmbeddingBackwardCall {
  EmbeddingCall forward;               ///< as in the forward call; its output and the tables' values are not looked at
  const float* grad_output = nullptr;  ///< [rows, width]
  float* grad_table = nullptr;         ///< panels like the table's, + scale · grad_output at tokens[r]: added to
  float* grad_positions = nullptr;     ///< [position_count, width]: added to; nullptr = not asked
};

/// Rows of the same token are added in order.
Status embedding_backward(const EmbeddingBackwardCall& call) noexcept;

}  // namespace lookback
