#include "lookback/embedding.hpp"

#include "kernels/norm.hpp"

namespace lookback {

Status embedding_forward(const EmbeddingCall& call) noexcept {
  const Index width = call.table.inputs;
  if (width < 1 || call.table.outputs < 1 || call.rows < 0) return Status::invalid_shape;
  if (const Status status = validate_linear(call.table.format); status != Status::ok) return status;
  if (call.rows == 0) return Status::ok;
  const bool learned = call.position_table != nullptr;
  if (call.table.weight == nullptr || call.tokens == nullptr || call.output == nullptr ||
      (learned && call.positions == nullptr)) {
    return Status::null_pointer;
  }
  for (Index row = 0; row < call.rows; ++row) {
    if (call.tokens[row] < 0 || call.tokens[row] >= call.table.outputs) return Status::token_out_of_range;
    if (learned && (call.positions[row] < 0 || call.positions[row] >= call.position_count)) {
      return Status::context_exceeded;
    }
  }
  for (Index row = 0; row < call.rows; ++row) {
    float* output = call.output + row * width;
    const Status status = unpack_linear(call.table, call.tokens[row], 1, output);
    if (status != Status::ok) return status;
    if (call.scale != 1.0F) {
      for (Index i = 0; i < width; ++i) output[i] *= call.scale;
    }
    if (learned) kernels::add_row(call.position_table + call.positions[row] * width, width, output);
  }
  return Status::ok;
}

}  // namespace lookback
