#include "lookback/activation.hpp"

#include "kernels/activation.hpp"

namespace lookback {
namespace {

using RowFunction = void (*)(const float*, Index, float*) noexcept;

RowFunction row_function(Activation activation) noexcept {
  switch (activation) {
    case Activation::gelu_tanh: return kernels::gelu_tanh_row;
    case Activation::gelu_erf: return kernels::gelu_erf_row;
    case Activation::silu: return kernels::silu_row;
  }
  return nullptr;
}

}  // namespace

Status activation_forward(Activation activation, const float* input, Index count, float* output) noexcept {
  const RowFunction activate = row_function(activation);
  if (activate == nullptr) return Status::invalid_argument;
  if (count < 0) return Status::invalid_shape;
  if (count == 0) return Status::ok;
  if (input == nullptr || output == nullptr) return Status::null_pointer;
  activate(input, count, output);
  return Status::ok;
}

Status gated_activation_forward(Activation activation, const float* gate_and_up, Index rows, Index width,
                                float* output) noexcept {
  const RowFunction activate = row_function(activation);
  if (activate == nullptr) return Status::invalid_argument;
  if (rows < 0 || width < 1) return Status::invalid_shape;
  if (rows == 0) return Status::ok;
  if (gate_and_up == nullptr || output == nullptr) return Status::null_pointer;
  for (Index row = 0; row < rows; ++row) {
    const float* gate = gate_and_up + row * 2 * width;
    activate(gate, width, output + row * width);
    kernels::multiply_row(gate + width, width, output + row * width);
  }
  return Status::ok;
}

}  // namespace lookback
