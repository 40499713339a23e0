#pragma once

#include <cstddef>

#include "lookback/status.hpp"
#include "lookback/views.hpp"

namespace lookback {

/// What the numbers of a weight are stored as. Inputs, biases and outputs are float32 always.
enum class WeightType : int {
  f32 = 0,
  /// IEEE half; packing rounds to the nearest, beyond ±65504 to ±∞. Widening takes time: one row is slower than with f32.
  f16 = 1,
  bf16 = 2,  ///< the upper half of a float32; packing rounds to the nearest
  /// One scale for each output and each `group` inputs that follow each other: ŵ = q · scale, scale = max|w| / 127, |w − ŵ| ≤ scale / 2
  /// (a scale below 2⁻¹²⁶ counts as 0). A group that holds NaN or ±∞ is NaN. Inputs meet it as integers of 16 bits: see linear_forward().
  int8 = 3,
};

/// How a weight is stored.
struct LinearFormat {
  WeightType type = WeightType::f32;
  Index group = 64;  ///< int8 only: a multiple of 16, 16 … 256
};

/// A linear layer's parameters, output = input · weightᵀ + bias. The weight was brought into panels by pack_linear: panels hold a few
/// outputs side by side, so that a row of inputs meets them in registers, and are read from their first byte to their last.
struct PackedLinear {
  const void* weight = nullptr;  ///< packed_linear_bytes(inputs, outputs, format) bytes, aligned to 4
  const float* bias = nullptr;   ///< [outputs], nullptr = none
  Index inputs = 0;
  Index outputs = 0;
  LinearFormat format;
};

/// Some rows of a weight that is to be packed.
struct WeightRows {
  const void* values = nullptr;       ///< the first of the rows
  WeightType type = WeightType::f32;  ///< f32, f16 or bf16
  /// Rows of [outputs, inputs] (as in torch.nn.Linear), or of [inputs, outputs] (as in GPT-2's Conv1D).
  bool transposed = false;
  Index first = 0;  ///< what row of the weight the first one is
  Index count = 0;
  Index stride = 0;  ///< elements from one row to the next, 0 = they touch
};

/// invalid_argument for a type or group that does not exist.
Status validate_linear(LinearFormat format) noexcept;

/// Size of a packed weight. A double, so that a size beyond the address space is a number and not an overflow.
[[nodiscard]] double packed_linear_bytes(Index inputs, Index outputs, LinearFormat format = {}) noexcept;

/// Rows → panels. Once all rows of a weight were packed, in any order and in calls of any size, `packed` is complete; no second copy is
/// needed. Transposed rows become int8 a group at a time: `first` must then be a multiple of the group, and `count` too unless the rows
/// are the last ones (else invalid_range).
Status pack_linear(const WeightRows& rows, Index inputs, Index outputs, LinearFormat format, void* packed) noexcept;

/// Rows [first, first + count) of the weight [outputs, inputs] as float32, from panels that are complete: the exact inverse of
/// pack_linear for f32, and for weights that came as f16 or bf16 and are stored as such.
Status unpack_linear(const PackedLinear& layer, Index first, Index count, float* rows) noexcept;

/// Scratch bytes of linear_forward: 0 for f32, panels of float32 for f16 and bf16, a block of rows as integers for int8. Never grows
/// with the outputs; with the rows up to a bound.
[[nodiscard]] double linear_workspace_bytes(const PackedLinear& layer, Index rows) noexcept;

/// output [rows, outputs] = input [rows, inputs] · weightᵀ + bias, contiguous; `output` must not overlap `input`. `workspace` is aligned
/// to 64. The bits of a row do not depend on how many rows there are.
/// f32, f16, bf16: each element is a sum over the inputs in rising order, beginning with the bias, in parts of 32 that are added to
/// each other.
/// int8: each group of a row's inputs is rounded to 16 bits, x̂ = p · max|x| / 32767, and multiplied with the weights as integers, exactly;
/// the groups' products are then added in rising order, beginning with the bias. The rounding of x adds at most
/// max|x| / 65534 · Σ|ŵ| of each group: for groups of 64 a quarter, at most, of what rounding w may add. An input that is NaN or ±∞ makes
/// its row NaN.
Status linear_forward(const PackedLinear& layer, const float* input, Index rows, float* output, void* workspace,
                      std::size_t workspace_bytes) noexcept;

/// Gradients through linear_forward, for weights of float32 (else invalid_argument).
struct LinearBackwardCall {
  PackedLinear layer;                  ///< as in the forward call; its bias is not looked at
  const float* input = nullptr;        ///< [rows, inputs]; needed for grad_weight only
  const float* grad_output = nullptr;  ///< [rows, outputs]
  Index rows = 0;
  float* grad_input = nullptr;     ///< [rows, inputs] = grad_output · weight; nullptr = not asked
  bool add_to_grad_input = false;  ///< instead of writing it
  float* grad_weight = nullptr;  ///< + grad_outputᵀ · input, in panels like the weight's: added to; nullptr = not asked
  float* grad_bias = nullptr;    ///< [outputs], + Σ rows of grad_output: added to; nullptr = not asked
};

/// Scratch bytes: the weight in panels of inputs, or a block of rows, whichever is more.
[[nodiscard]] double linear_backward_workspace_bytes(const LinearBackwardCall& call) noexcept;

/// Nothing overlaps; `workspace` is aligned to 64. Each element of grad_input is a sum over the outputs as in linear_forward; each of the
/// weight's and bias's is a sum over blocks of 128 rows, in order. Lanes of grad_weight beyond the outputs stay what they are.
Status linear_backward(const LinearBackwardCall& call, void* workspace, std::size_t workspace_bytes) noexcept;

}  // namespace lookback
