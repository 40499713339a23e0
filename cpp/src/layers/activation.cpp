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

Status gated_activation_forward(Activation activation, const float* gate, const float* up, Index count,
                                float* output) noexcept {
  if (count > 0 && up == nullptr) return Status::null_pointer;
  const Status status = activation_forward(activation, gate, count, output);
  if (status == Status::ok) kernels::multiply_row(up, count, output);
  return status;
}

}  // namespace lookback
