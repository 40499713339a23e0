#include <algorithm>
#include <cmath>

#include "kernels/pack.hpp"
#include "kernels/value_tile.hpp"
#include "layers/linear_panels.hpp"
#include "lookback/parallel.hpp"

namespace lookback {
namespace {

using namespace kernels;

/// Rows whose inputs are packed into tiles before panels of outputs meet them.
constexpr Index block_rows = 128;
constexpr Index panel_block = block_rows * panel_width;
constexpr Index tile_block = block_rows * tile_queries;

Index count_of(Index size, Index step) noexcept { return (size + step - 1) / step; }

double product(Index a, Index b) noexcept { return static_cast<double>(a) * static_cast<double>(b); }

/// The weight in panels of its inputs, [outputs][panel_width]: a linear map from outputs to inputs.
PackedLinear transpose(const PackedLinear& layer, float* panels) noexcept {
  const auto* weight = static_cast<const float*>(layer.weight);
  const Index inputs = layer.inputs;
  const Index outputs = layer.outputs;
  parallel_for(0, count_of(inputs, panel_width), product(inputs, outputs), [&](Index panel, Index) noexcept {
    const Index input = panel * panel_width;
    for (Index output = 0; output < outputs; output += panel_width) {
      pack_rows_as_lanes(weight + output * inputs + input * panel_width, panel_width,
                         std::min(panel_width, inputs - input), std::min(panel_width, outputs - output), 1.0F,
                         panels + (panel * outputs + output) * panel_width);
    }
  });
  return {panels, nullptr, outputs, inputs, layer.format};
}

/// What a block of rows adds to the gradients of one panel of outputs.
void add_panel(const LinearBackwardCall& call, Index first, Index rows, Index output, const float* tiles,
               float* packed) noexcept {
  const Index inputs = call.layer.inputs;
  const Index columns = std::min(panel_width, call.layer.outputs - output);
  static_cast<void>(pack_columns(call.grad_output + first * call.layer.outputs + output, call.layer.outputs, rows,
                                 columns, packed, panel_block));
  if (call.grad_bias != nullptr) {
    float sums[panel_width] = {};
    std::copy_n(call.grad_bias + output, columns, sums);
    add_panel_rows(packed, rows, sums);
    std::copy_n(sums, columns, call.grad_bias + output);
  }
  if (call.grad_weight == nullptr) return;
  float kept[register_rows > wide_rows ? register_rows : wide_rows];
  std::fill(std::begin(kept), std::end(kept), 1.0F);
  for (Index input = 0; input < inputs; input += tile_queries) {
    const float* tile = tiles + input / tile_queries * tile_block;
    const Index width = std::min(tile_queries, inputs - input);
    for (Index column = 0; column < width; column += rows_at_once()) {
      accumulate_values(tile + column, std::min(rows_at_once(), width - column), packed, rows, kept,
                        call.grad_weight + (output * inputs + (input + column) * panel_width), panel_width);
    }
  }
}

void add_block(const LinearBackwardCall& call, Index first, Index rows, float* workspace) noexcept {
  const Index inputs = call.layer.inputs;
  float* tiles = workspace;
  float* panels = tiles;
  if (call.grad_weight != nullptr) {
    const Index tile_count = count_of(inputs, tile_queries);
    panels += tile_count * tile_block;
    parallel_for(0, tile_count, product(rows, inputs), [&](Index tile, Index) noexcept {
      const Index input = tile * tile_queries;
      pack_tile(call.input + first * inputs + input, inputs, rows, std::min(tile_queries, inputs - input),
                tiles + tile * tile_block);
    });
  }
  parallel_for(0, count_of(call.layer.outputs, panel_width),
               product(rows, inputs) * static_cast<double>(call.layer.outputs),
               [&](Index panel, Index thread) noexcept {
                 add_panel(call, first, rows, panel * panel_width, tiles, panels + thread * panel_block);
               });
}

Status validate(const LinearBackwardCall& call) noexcept {
  if (call.layer.inputs < 1 || call.layer.outputs < 1 || call.rows < 0) return Status::invalid_shape;
  return call.layer.format.type == WeightType::f32 ? Status::ok : Status::invalid_argument;
}

}  // namespace

double linear_backward_workspace_bytes(const LinearBackwardCall& call) noexcept {
  if (validate(call) != Status::ok || call.rows == 0) return 0.0;
  const double transposed =
      call.grad_input != nullptr ? packed_linear_bytes(call.layer.outputs, call.layer.inputs, call.layer.format) : 0.0;
  double block = 0.0;
  if (call.grad_weight != nullptr || call.grad_bias != nullptr) block += product(thread_count(), panel_block);
  if (call.grad_weight != nullptr) block += product(count_of(call.layer.inputs, tile_queries), tile_block);
  return std::max(transposed, block * sizeof(float));
}

Status linear_backward(const LinearBackwardCall& call, void* workspace, std::size_t workspace_bytes) noexcept {
  if (const Status status = validate(call); status != Status::ok) return status;
  if (call.rows == 0) return Status::ok;
  if (call.grad_output == nullptr || (call.grad_input != nullptr && call.layer.weight == nullptr) ||
      (call.grad_weight != nullptr && call.input == nullptr)) {
    return Status::null_pointer;
  }
  if (const double needed = linear_backward_workspace_bytes(call);
      needed > 0.0 && (workspace == nullptr || static_cast<double>(workspace_bytes) < needed)) {
    return Status::workspace_too_small;
  }
  auto* scratch = static_cast<float*>(workspace);
  if (call.grad_input != nullptr) {
    const PackedLinear transposed = transpose(call.layer, scratch);
    if (call.add_to_grad_input) {
      linear_add(transposed, call.grad_output, call.rows, call.grad_input);
    } else if (const Status status =
                   linear_forward(transposed, call.grad_output, call.rows, call.grad_input, nullptr, 0);
               status != Status::ok) {
      return status;
    }
  }
  if (call.grad_weight == nullptr && call.grad_bias == nullptr) return Status::ok;
  for (Index first = 0; first < call.rows; first += block_rows) {
    add_block(call, first, std::min(block_rows, call.rows - first), scratch);
  }
  return Status::ok;
}

}  // namespace lookback
