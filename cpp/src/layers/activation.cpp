#include "lookback/activation.hpp"

#include <algorithm>

#include "kernels/activation.hpp"
#include "lookback/parallel.hpp"

namespace lookback {
namespace {

/// Elements of an item of work, which stay in the first level of the cache; and what one costs, in multiply-adds.
constexpr Index block = 2048;
constexpr double cost_of_element = 16.0;

/// f of rows, and row · f' of rows.
struct Kernels {
  void (*forward)(const float*, Index, float*) noexcept;
  void (*backward)(const float*, Index, float*) noexcept;
};

constexpr Kernels kernels_of[] = {
    {kernels::gelu_tanh_row, kernels::gelu_tanh_backward_row},
    {kernels::gelu_erf_row, kernels::gelu_erf_backward_row},
    {kernels::silu_row, kernels::silu_backward_row},
};

Status validate(Activation activation, Index count) noexcept {
  if (activation < Activation::gelu_tanh || activation > Activation::silu) return Status::invalid_argument;
  return count < 0 ? Status::invalid_shape : Status::ok;
}

/// body(first, length) for all blocks of `count` elements.
template <typename Body>
void for_each_block(Index count, const Body& body) noexcept {
  const double cost = cost_of_element * static_cast<double>(count);
  parallel_for(0, (count + block - 1) / block, cost,
               [&](Index item, Index) noexcept { body(item * block, std::min(block, count - item * block)); });
}

void copy_unless_same(const float* source, Index count, float* target) noexcept {
  if (source != target) std::copy_n(source, count, target);
}

}  // namespace

Status activation_forward(Activation activation, const float* input, Index count, float* output) noexcept {
  if (const Status status = validate(activation, count); status != Status::ok) return status;
  if (count == 0) return Status::ok;
  if (input == nullptr || output == nullptr) return Status::null_pointer;
  const auto activate = kernels_of[static_cast<int>(activation)].forward;
  for_each_block(count, [&](Index first, Index length) noexcept { activate(input + first, length, output + first); });
  return Status::ok;
}

Status gated_activation_forward(Activation activation, const float* gate, const float* up, Index count,
                                float* output) noexcept {
  if (const Status status = validate(activation, count); status != Status::ok) return status;
  if (count == 0) return Status::ok;
  if (gate == nullptr || up == nullptr || output == nullptr) return Status::null_pointer;
  const auto activate = kernels_of[static_cast<int>(activation)].forward;
  for_each_block(count, [&](Index first, Index length) noexcept {
    activate(gate + first, length, output + first);
    kernels::multiply_row(up + first, length, output + first);
  });
  return Status::ok;
}

Status activation_backward(Activation activation, const float* input, const float* grad_output, Index count,
                           float* grad_input) noexcept {
  if (const Status status = validate(activation, count); status != Status::ok) return status;
  if (count == 0) return Status::ok;
  if (input == nullptr || grad_output == nullptr || grad_input == nullptr) return Status::null_pointer;
  const auto multiply_by_slope = kernels_of[static_cast<int>(activation)].backward;
  for_each_block(count, [&](Index first, Index length) noexcept {
    copy_unless_same(grad_output + first, length, grad_input + first);
    multiply_by_slope(input + first, length, grad_input + first);
  });
  return Status::ok;
}

Status gated_activation_backward(Activation activation, const float* gate, const float* up, const float* grad_output,
                                 Index count, float* grad_gate, float* grad_up) noexcept {
  if (const Status status = validate(activation, count); status != Status::ok) return status;
  if (count == 0) return Status::ok;
  if (gate == nullptr || up == nullptr || grad_output == nullptr || grad_gate == nullptr || grad_up == nullptr) {
    return Status::null_pointer;
  }
  const auto [activate, multiply_by_slope] = kernels_of[static_cast<int>(activation)];
  for_each_block(count, [&](Index first, Index length) noexcept {
    activate(gate + first, length, grad_up + first);
    kernels::multiply_row(grad_output + first, length, grad_up + first);
    copy_unless_same(grad_output + first, length, grad_gate + first);
    kernels::multiply_row(up + first, length, grad_gate + first);
    multiply_by_slope(gate + first, length, grad_gate + first);
  });
  return Status::ok;
}

}  // namespace lookback
