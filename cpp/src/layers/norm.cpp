#include "lookback/norm.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/norm.hpp"
#include "lookback/parallel.hpp"

namespace lookback {
namespace {

/// Multiply-adds that an element costs.
constexpr double cost_of_element = 4.0;
/// Rows [heads, width] whose share of a weight's gradient is summed before it joins the others'.
constexpr Index part_rows = 32;

Status validate(const NormCall& call) noexcept {
  if (call.width < 1 || call.batch < 1 || call.heads < 1 || call.length < 0) return Status::invalid_shape;
  return !std::isfinite(call.epsilon) || call.epsilon < 0.0F ? Status::invalid_argument : Status::ok;
}

double cost_of(const NormCall& call) noexcept {
  return cost_of_element * static_cast<double>(call.batch * call.length) * static_cast<double>(call.heads * call.width);
}

kernels::NormStatistics statistics_of(const NormCall& call, const float* row) noexcept {
  return call.kind == NormKind::rms_norm ? kernels::rms_norm_statistics(row, call.width, call.epsilon)
                                         : kernels::layer_norm_statistics(row, call.width, call.epsilon);
}

/// A row of sums begins on a batch of its own.
Index padded_width(Index width) noexcept { return kernels::round_up(width, kernels::panel_width); }

Index part_count(const NormCall& call) noexcept { return (call.batch * call.length + part_rows - 1) / part_rows; }

/// The gradients of rows [first, end) of [batch · length].
void backward_rows(const NormBackwardCall& call, Index first, Index end, float* grad_weight,
                   float* grad_bias) noexcept {
  const NormCall& forward = call.forward;
  for (Index at = first; at < end; ++at) {
    const Index batch = at / forward.length;
    const Index row = at % forward.length;
    for (Index head = 0; head < forward.heads; ++head) {
      const float* input = forward.input.row(batch, head, row);
      kernels::normalise_row_backward(
          input, call.grad_output.row(batch, head, row), forward.width, statistics_of(forward, input),
          forward.kind == NormKind::layer_norm, forward.weight,
          {call.grad_input.row(batch, head, row), call.add_to_grad_input, grad_weight, grad_bias});
    }
  }
}

}  // namespace

Status norm_forward(const NormCall& call) noexcept {
  if (const Status status = validate(call); status != Status::ok) return status;
  if (call.length == 0) return Status::ok;
  if (call.input.data == nullptr || call.output.data == nullptr) return Status::null_pointer;
  parallel_for(0, call.batch * call.length, cost_of(call), [&call](Index item, Index) noexcept {
    const Index batch = item / call.length;
    const Index row = item % call.length;
    for (Index head = 0; head < call.heads; ++head) {
      const float* input = call.input.row(batch, head, row);
      kernels::normalise_row(input, call.width, statistics_of(call, input), call.weight, call.bias,
                             call.output.row(batch, head, row));
    }
  });
  return Status::ok;
}

double norm_backward_workspace_bytes(const NormBackwardCall& call) noexcept {
  if (validate(call.forward) != Status::ok || (call.grad_weight == nullptr && call.grad_bias == nullptr)) return 0.0;
  return static_cast<double>(part_count(call.forward)) * 2.0 * static_cast<double>(padded_width(call.forward.width)) *
         sizeof(float);
}

Status norm_backward(const NormBackwardCall& call, void* workspace, std::size_t workspace_bytes) noexcept {
  const NormCall& forward = call.forward;
  if (const Status status = validate(forward); status != Status::ok) return status;
  if (forward.length == 0) return Status::ok;
  if (forward.input.data == nullptr || call.grad_output.data == nullptr || call.grad_input.data == nullptr) {
    return Status::null_pointer;
  }
  const double needed = norm_backward_workspace_bytes(call);
  if (needed > 0.0 && (workspace == nullptr || static_cast<double>(workspace_bytes) < needed)) {
    return Status::workspace_too_small;
  }
  const Index stride = padded_width(forward.width);
  auto* sums = static_cast<float*>(workspace);
  parallel_for(0, part_count(forward), 2.0 * cost_of(forward), [&](Index part, Index) noexcept {
    const Index first = part * part_rows;
    float* weight = call.grad_weight != nullptr ? sums + 2 * part * stride : nullptr;
    float* bias = call.grad_bias != nullptr ? sums + (2 * part + 1) * stride : nullptr;
    for (float* sum : {weight, bias}) {
      if (sum != nullptr) std::fill_n(sum, stride, 0.0F);
    }
    backward_rows(call, first, std::min(forward.batch * forward.length, first + part_rows), weight, bias);
  });
  for (Index part = 0; part < part_count(forward); ++part) {
    if (call.grad_weight != nullptr) kernels::add_row(sums + 2 * part * stride, forward.width, call.grad_weight);
    if (call.grad_bias != nullptr) kernels::add_row(sums + (2 * part + 1) * stride, forward.width, call.grad_bias);
  }
  return Status::ok;
}

}  // namespace lookback
