#include "lookback/linear.hpp"

#include <algorithm>

#include "kernels/pack.hpp"
#include "kernels/row_tile.hpp"

namespace lookback {
namespace {

using namespace kernels;

/// The last panel has fewer outputs than it is wide: a detour through a small buffer.
void multiply_last_panel(const float* input, Index inputs, Index rows, const float* panel, const float* initial,
                         Index outputs, Index output_stride, float* output) noexcept {
  for (Index row = 0; row < rows; row += register_rows) {
    float block[register_rows * panel_width];
    const Index row_count = std::min(register_rows, rows - row);
    multiply_rows(input + row * inputs, inputs, row_count, panel, inputs, initial, block, panel_width);
    for (Index r = 0; r < row_count; ++r) {
      std::copy_n(block + r * panel_width, outputs, output + (row + r) * output_stride);
    }
  }
}

}  // namespace

double packed_linear_bytes(Index inputs, Index outputs) noexcept {
  const double columns = static_cast<double>(outputs) + static_cast<double>(panel_width - 1);
  const double panels = static_cast<double>(static_cast<Index>(columns) / panel_width);
  return panels * static_cast<double>(panel_width) * static_cast<double>(inputs) * sizeof(float);
}

Status pack_linear(const float* weight, Index inputs, Index outputs, float* packed) noexcept {
  if (inputs < 1 || outputs < 1) return Status::invalid_shape;
  if (weight == nullptr || packed == nullptr) return Status::null_pointer;
  for (Index first = 0; first < outputs; first += panel_width) {
    pack_rows_as_lanes(weight + first * inputs, inputs, std::min(panel_width, outputs - first), inputs, 1.0F,
                       packed + first * inputs);
  }
  return Status::ok;
}

Status unpack_linear(const float* packed, Index inputs, Index outputs, float* weight) noexcept {
  if (inputs < 1 || outputs < 1) return Status::invalid_shape;
  if (weight == nullptr || packed == nullptr) return Status::null_pointer;
  for (Index first = 0; first < outputs; first += panel_width) {
    unpack_lanes_to_rows(packed + first * inputs, std::min(panel_width, outputs - first), inputs,
                         weight + first * inputs, inputs);
  }
  return Status::ok;
}

Status linear_forward(const PackedLinear& layer, const float* input, Index rows, float* output) noexcept {
  if (layer.inputs < 1 || layer.outputs < 1 || rows < 0) return Status::invalid_shape;
  if (rows == 0) return Status::ok;
  if (layer.weight == nullptr || input == nullptr || output == nullptr) return Status::null_pointer;
  for (Index first = 0; first < layer.outputs; first += panel_width) {
    const float* panel = layer.weight + first * layer.inputs;
    const Index columns = std::min(panel_width, layer.outputs - first);
    float initial[panel_width] = {};
    if (layer.bias != nullptr) std::copy_n(layer.bias + first, columns, initial);
    if (columns == panel_width) {
      multiply_rows(input, layer.inputs, rows, panel, layer.inputs, initial, output + first, layer.outputs);
    } else {
      multiply_last_panel(input, layer.inputs, rows, panel, initial, columns, layer.outputs, output + first);
    }
  }
  return Status::ok;
}

}  // namespace lookback
