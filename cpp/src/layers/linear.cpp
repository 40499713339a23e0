#include "lookback/linear.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/half.hpp"
#include "kernels/int8_tile.hpp"
#include "kernels/one_row.hpp"
#include "kernels/row_tile.hpp"
#include "kernels/weight_panel.hpp"
#include "layers/linear_panels.hpp"
#include "lookback/parallel.hpp"

namespace lookback {
namespace {

using namespace kernels;

/// Rows that meet all panels before the next ones do: their inputs stay in the second level of the cache while a panel, which stays in
/// the first, passes over them.
constexpr Index block_rows = 128;
/// So many rows are done when their weights were read.
constexpr Index few_rows = 3;
/// Weights of a layer with more bytes come from beyond the second level of the cache: few rows read them in their order, a panel after the
/// other. Whether a smaller layer is in the cache depends on what else its model reads, which is not known here.
constexpr double near_bytes = 1 << 20;
constexpr Index alignment = 64;  // bytes
/// Multiply-adds of an item of work: a few microseconds.
constexpr double item_cost = 200000;

/// Floats of a panel, so that each thread's begins on a line of the cache.
constexpr Index panel_floats(Index inputs) noexcept {
  return round_up(inputs * panel_width, alignment / Index{sizeof(float)});
}

/// The parts of the workspace; f32 has none.
struct Workspace {
  float* panel = nullptr;            ///< f16, bf16: a panel as float32, one per thread
  std::int16_t* integers = nullptr;  ///< int8: a block of rows …
  float* scales = nullptr;           ///< … and its scales

  Workspace(const PackedLinear& layer, Index rows, void* memory) noexcept {
    if (layer.format.type == WeightType::f32) return;
    panel = static_cast<float*>(memory);
    integers = static_cast<std::int16_t*>(memory);
    const Index bytes = rows * padded_pairs(layer.inputs) * static_cast<Index>(sizeof(std::int16_t));
    if (layer.format.type == WeightType::int8) scales = panel + round_up(bytes, alignment) / Index{sizeof(float)};
  }
};

/// Some rows through one panel.
class Panel {
public:
  Panel(const PackedLinear& layer, const Workspace& workspace, const float* input, Index thread, bool add) noexcept
      : layer_(layer),
        workspace_(workspace),
        widened_(workspace.panel + (layer.format.type == WeightType::f32 ? 0 : thread * panel_floats(layer.inputs))),
        input_(input),
        add_(add) {}

  /// Outputs [output, output + panel_width).
  void select(Index output) noexcept {
    const auto* weight = static_cast<const std::uint8_t*>(layer_.weight);
    panel_ = weight + panel_offset(layer_.inputs, layer_.format, output, 0);
    const auto* halves = reinterpret_cast<const std::uint16_t*>(panel_);
    const Index count = layer_.inputs * panel_width;
    if (layer_.format.type == WeightType::f16) widen_f16(halves, count, widened_);
    if (layer_.format.type == WeightType::bf16) widen_bf16(halves, count, widened_);
    if (layer_.format.type == WeightType::f32) read_ahead(reinterpret_cast<const float*>(panel_), layer_.inputs);
    columns_ = std::min(panel_width, layer_.outputs - output);
    std::fill_n(initial_, panel_width, 0.0F);
    if (layer_.bias != nullptr) std::copy_n(layer_.bias + output, columns_, initial_);
  }

  void multiply(Index row_count, float* output) const noexcept {
    if (columns_ == panel_width) return multiply(0, row_count, output, layer_.outputs);
    // The last panel has fewer outputs than it is wide: a detour through a small buffer.
    float block[register_rows * panel_width] = {};
    for (Index row = 0; row < row_count; row += register_rows) {
      const Index count = std::min(register_rows, row_count - row);
      for (Index r = 0; add_ && r < count; ++r) {
        std::copy_n(output + (row + r) * layer_.outputs, columns_, block + r * panel_width);
      }
      multiply(row, count, block, panel_width);
      for (Index r = 0; r < count; ++r) {
        std::copy_n(block + r * panel_width, columns_, output + (row + r) * layer_.outputs);
      }
    }
  }

private:
  void multiply(Index row, Index row_count, float* output, Index output_stride) const noexcept {
    const Index inputs = layer_.inputs;
    const auto [type, group] = layer_.format;
    if (type == WeightType::int8) {
      return multiply_int8_rows(
          workspace_.integers + row * padded_pairs(inputs), workspace_.scales + row * group_count(inputs, group),
          row_count, reinterpret_cast<const std::int8_t*>(panel_), inputs, group, initial_, output, output_stride);
    }
    const float* panel = type == WeightType::f32 ? reinterpret_cast<const float*>(panel_) : widened_;
    multiply_rows(input_ + row * inputs, inputs, row_count, panel, inputs, add_ ? nullptr : initial_, output,
                  output_stride);
  }

  const PackedLinear& layer_;
  const Workspace& workspace_;
  float* widened_;
  const float* input_;
  bool add_;  ///< to what stands in the output; f32 only
  const std::uint8_t* panel_ = nullptr;
  Index columns_ = 0;
  float initial_[panel_width];
};

/// Outputs that a few rows meet at once.
Index few_rows_width(const PackedLinear& layer) noexcept {
  return packed_linear_bytes(layer.inputs, layer.outputs, layer.format) <= near_bytes ? side_by_side_width
                                                                                      : panel_width;
}

/// Outputs [from, to) of a few rows, f16 apart: the next row finds the panels in the cache.
void multiply_few_rows(const PackedLinear& layer, const Workspace& workspace, const float* input, Index rows,
                       Index from, Index to, float* output) noexcept {
  const auto [type, group] = layer.format;
  const Index inputs = layer.inputs;
  const Index width = few_rows_width(layer);
  for (Index column = from; column < to; column += width) {
    const auto* panels = static_cast<const std::uint8_t*>(layer.weight) + panel_offset(inputs, layer.format, column, 0);
    const Index columns = std::min(width, to - column);
    const Index count = round_up(columns, panel_width) / panel_width;
    float initial[side_by_side_width] = {};
    if (layer.bias != nullptr) std::copy_n(layer.bias + column, columns, initial);
    for (Index r = 0; r < rows; ++r) {
      const float* row = input + r * inputs;
      float out[side_by_side_width];
      if (type == WeightType::int8) {
        multiply_row_int8(workspace.integers + r * padded_pairs(inputs),
                          workspace.scales + r * group_count(inputs, group),
                          reinterpret_cast<const std::int8_t*>(panels), count, inputs, group, initial, out);
      } else if (type == WeightType::f32) {
        multiply_row_f32(row, inputs, reinterpret_cast<const float*>(panels), count, initial, out);
      } else {
        multiply_row_bf16(row, inputs, reinterpret_cast<const std::uint16_t*>(panels), count, initial, out);
      }
      std::copy_n(out, columns, output + r * layer.outputs + column);
    }
  }
}

Status validate(const PackedLinear& layer, Index rows) noexcept {
  if (layer.inputs < 1 || layer.outputs < 1 || rows < 0) return Status::invalid_shape;
  return validate_linear(layer.format);
}

/// A block of rows through all panels; `add` to what stands in the output (f32 only).
void multiply_block(const PackedLinear& layer, const Workspace& parts, const float* input, Index rows, float* output,
                    bool add) noexcept {
  const Index inputs = layer.inputs;
  const Index group = layer.format.group;
  const double cost = static_cast<double>(rows) * static_cast<double>(inputs);
  if (layer.format.type == WeightType::int8) {
    parallel_for(0, rows, cost, [&](Index row, Index) noexcept {
      quantize_inputs(input + row * inputs, inputs, group, parts.integers + row * padded_pairs(inputs),
                      parts.scales + row * group_count(inputs, group));
    });
  }
  // Widening f16 takes longer than reading it, so that its panels are widened before they are used.
  const bool are_few = rows <= few_rows && layer.format.type != WeightType::f16 && !add;
  // An item is as many outputs as are worth taking, whole panels of them.
  const Index worth = std::min(static_cast<Index>(item_cost / cost), layer.outputs);
  const Index width = round_up(std::max<Index>(worth, 1), are_few ? few_rows_width(layer) : panel_width);
  parallel_for(0, (layer.outputs + width - 1) / width, cost * static_cast<double>(layer.outputs),
               [&](Index item, Index thread) noexcept {
                 const Index from = item * width;
                 const Index to = std::min(layer.outputs, from + width);
                 if (are_few) return multiply_few_rows(layer, parts, input, rows, from, to, output);
                 Panel panel(layer, parts, input, thread, add);
                 for (Index column = from; column < to; column += panel_width) {
                   panel.select(column);
                   panel.multiply(rows, output + column);
                 }
               });
}

void multiply_blocks(const PackedLinear& layer, const float* input, Index rows, float* output, void* workspace,
                     bool add) noexcept {
  for (Index first = 0; first < rows; first += block_rows) {
    const Index count = std::min(block_rows, rows - first);
    const Workspace parts(layer, count, workspace);
    multiply_block(layer, parts, input + first * layer.inputs, count, output + first * layer.outputs, add);
  }
}

}  // namespace

void linear_add(const PackedLinear& layer, const float* input, Index rows, float* output) noexcept {
  multiply_blocks(layer, input, rows, output, nullptr, true);
}

double linear_workspace_bytes(const PackedLinear& layer, Index rows) noexcept {
  if (layer.format.type == WeightType::f32 || validate(layer, rows) != Status::ok || rows == 0) return 0.0;
  const auto inputs = static_cast<double>(layer.inputs);
  if (layer.format.type != WeightType::int8) {
    const double panel = std::ceil(inputs * static_cast<double>(panel_width) * sizeof(float) / alignment) * alignment;
    return panel * static_cast<double>(thread_count());
  }
  const auto block = static_cast<double>(std::min(rows, block_rows));
  const auto groups = static_cast<double>(group_count(layer.inputs, layer.format.group));
  const double bytes = block * ((inputs + 1) * sizeof(std::int16_t) + groups * sizeof(float)) + alignment;
  return std::ceil(bytes / alignment) * alignment;
}

Status linear_forward(const PackedLinear& layer, const float* input, Index rows, float* output, void* workspace,
                      std::size_t workspace_bytes) noexcept {
  if (const Status status = validate(layer, rows); status != Status::ok) return status;
  if (rows == 0) return Status::ok;
  if (layer.weight == nullptr || input == nullptr || output == nullptr) return Status::null_pointer;
  const double needed = linear_workspace_bytes(layer, rows);
  if (needed > 0.0 && (workspace == nullptr || static_cast<double>(workspace_bytes) < needed)) {
    return Status::workspace_too_small;
  }
  multiply_blocks(layer, input, rows, output, workspace, false);
  return Status::ok;
}

}  // namespace lookback
