#pragma once

#include "lookback/status.hpp"
#include "lookback/views.hpp"

namespace lookback {

/// A linear layer's parameters, output = input · weightᵀ + bias. The weight was brought into panels by pack_linear; panels hold
/// [inputs][panel] for a few outputs side by side, so that a row of inputs meets them in registers.
struct PackedLinear {
  const float* weight = nullptr;  ///< packed_linear_bytes(inputs, outputs) bytes
  const float* bias = nullptr;    ///< [outputs], nullptr = none
  Index inputs = 0;
  Index outputs = 0;
};

/// Size of a packed weight. A double, so that a size beyond the address space is a number and not an overflow.
[[nodiscard]] double packed_linear_bytes(Index inputs, Index outputs) noexcept;

/// weight [outputs, inputs], row-major (as in torch.nn.Linear) → panels.
Status pack_linear(const float* weight, Index inputs, Index outputs, float* packed) noexcept;

/// The exact inverse of pack_linear.
Status unpack_linear(const float* packed, Index inputs, Index outputs, float* weight) noexcept;

/// output [rows, outputs] = input [rows, inputs] · weightᵀ + bias, contiguous. Each element is a sum over the inputs in rising order,
/// beginning with the bias, in parts of 32 that are added to each other; the bits of a row do not depend on how many rows there are.
/// `output` must not overlap `input`.
Status linear_forward(const PackedLinear& layer, const float* input, Index rows, float* output) noexcept;

}  // namespace lookback
