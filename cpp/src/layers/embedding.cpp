#include "lookback/embedding.hpp"

#include <algorithm>

#include "kernels/norm.hpp"
#include "kernels/weight_panel.hpp"
#include "lookback/parallel.hpp"

namespace lookback {
namespace {

/// Columns of a gradient that one thread adds up.
constexpr Index column_block = 32;

Status validate(const EmbeddingCall& call) noexcept {
  if (call.table.inputs < 1 || call.table.outputs < 1 || call.rows < 0) return Status::invalid_shape;
  if (const Status status = validate_linear(call.table.format); status != Status::ok) return status;
  if (call.rows == 0) return Status::ok;
  const bool learned = call.position_table != nullptr;
  if (call.tokens == nullptr || (learned && call.positions == nullptr)) return Status::null_pointer;
  for (Index row = 0; row < call.rows; ++row) {
    if (call.tokens[row] < 0 || call.tokens[row] >= call.table.outputs) return Status::token_out_of_range;
    if (learned && (call.positions[row] < 0 || call.positions[row] >= call.position_count)) {
      return Status::context_exceeded;
    }
  }
  return Status::ok;
}

double cost_of(const EmbeddingCall& call) noexcept {
  return 4.0 * static_cast<double>(call.rows) * static_cast<double>(call.table.inputs);
}

}  // namespace

Status embedding_forward(const EmbeddingCall& call) noexcept {
  if (const Status status = validate(call); status != Status::ok) return status;
  if (call.rows == 0) return Status::ok;
  if (call.table.weight == nullptr || call.output == nullptr) return Status::null_pointer;
  const Index width = call.table.inputs;
  parallel_for(0, call.rows, cost_of(call), [&](Index row, Index) noexcept {
    float* output = call.output + row * width;
    static_cast<void>(unpack_linear(call.table, call.tokens[row], 1, output));  // was checked
    if (call.scale != 1.0F) {
      for (Index i = 0; i < width; ++i) output[i] *= call.scale;
    }
    if (call.position_table != nullptr) {
      kernels::add_row(call.position_table + call.positions[row] * width, width, output);
    }
  });
  return Status::ok;
}

Status embedding_backward(const EmbeddingBackwardCall& call) noexcept {
  const EmbeddingCall& forward = call.forward;
  if (const Status status = validate(forward); status != Status::ok) return status;
  if (forward.table.format.type != WeightType::f32) return Status::invalid_argument;
  if (forward.rows == 0) return Status::ok;
  if (call.grad_output == nullptr || call.grad_table == nullptr) return Status::null_pointer;
  if (call.grad_positions != nullptr && forward.positions == nullptr) return Status::null_pointer;
  const Index width = forward.table.inputs;
  // Threads share the columns, so that each element has one thread and one order.
  parallel_for(0, (width + column_block - 1) / column_block, cost_of(forward), [&](Index block, Index) noexcept {
    const Index first = block * column_block;
    const Index count = std::min(column_block, width - first);
    for (Index row = 0; row < forward.rows; ++row) {
      const float* gradient = call.grad_output + row * width + first;
      const Index token = forward.tokens[row];
      const Index panel = token / kernels::panel_width * kernels::panel_width * width;
      kernels::add_to_lane(gradient, token % kernels::panel_width, count, forward.scale,
                           call.grad_table + panel + first * kernels::panel_width);
      if (call.grad_positions != nullptr) {
        kernels::add_row(gradient, count, call.grad_positions + forward.positions[row] * width + first);
      }
    }
  });
  return Status::ok;
}

}  // namespace lookback
