#include "layers/weight_rows.hpp"

#include "kernels/tile.hpp"

namespace lookback {

using kernels::panel_width;

void write_weight_block(float* packed, Index inputs, const WeightBlock& block, const float* values) noexcept {
  for (Index row = 0; row < block.output_count; ++row) {
    const Index output = block.first_output + row;
    float* lane = packed + output / panel_width * panel_width * inputs + output % panel_width;
    for (Index i = 0; i < block.input_count; ++i) {
      lane[(block.first_input + i) * panel_width] = values[row * block.input_count + i];
    }
  }
}

void read_weight_row(const PackedLinear& layer, Index output, float factor, float* target) noexcept {
  const float* lane = layer.weight + output / panel_width * panel_width * layer.inputs + output % panel_width;
  for (Index i = 0; i < layer.inputs; ++i) target[i] = lane[i * panel_width] * factor;
}

}  // namespace lookback
