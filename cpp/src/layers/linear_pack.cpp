#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/half.hpp"
#include "kernels/int8_tile.hpp"
#include "kernels/pack.hpp"
#include "kernels/weight_panel.hpp"
#include "layers/linear_panels.hpp"

namespace lookback {
namespace {

using namespace kernels;

constexpr Index largest_group = 256;
constexpr Index group_step = 16;

Index element_bytes(WeightType type) noexcept { return type == WeightType::f32 ? 4 : type == WeightType::int8 ? 1 : 2; }

/// Inputs that go through the scratch span at once: a group where there are groups.
Index span_of(LinearFormat format) noexcept { return format.type == WeightType::int8 ? format.group : largest_group; }

[[gnu::noinline]] void widen(const WeightRows& rows, Index row, Index column, Index count, float* target) noexcept {
  const auto* values = static_cast<const std::uint8_t*>(rows.values);
  const std::uint8_t* source = values + ((row - rows.first) * rows.stride + column) * element_bytes(rows.type);
  switch (rows.type) {
    case WeightType::f16: return widen_f16(reinterpret_cast<const std::uint16_t*>(source), count, target);
    case WeightType::bf16: return widen_bf16(reinterpret_cast<const std::uint16_t*>(source), count, target);
    default: std::copy_n(reinterpret_cast<const float*>(source), count, target);
  }
}

/// Part of one panel: outputs [output, output + …) of which the lanes [from, to) are there, and inputs.
struct Part {
  Index output, from, to;
  Index input, length;
};

/// span [length][panel_width] ← the part; lanes that are not there are 0.
void gather(const WeightRows& rows, const Part& part, float* span) noexcept {
  if (rows.transposed) {
    std::fill_n(span, part.length * panel_width, 0.0F);
    for (Index d = 0; d < part.length; ++d) {
      widen(rows, part.input + d, part.output + part.from, part.to - part.from, span + d * panel_width + part.from);
    }
    return;
  }
  float lanes[panel_width * largest_group];
  std::fill_n(lanes, panel_width * part.length, 0.0F);
  for (Index lane = part.from; lane < part.to; ++lane) {
    widen(rows, part.output + lane, part.input, part.length, lanes + lane * part.length);
  }
  pack_rows_as_lanes(lanes, part.length, panel_width, part.length, 1.0F, span);
}

/// The last panel's lanes beyond the outputs are written with the last output, as zeros.
void store(const float* span, const Part& part, Index outputs, WeightType type, std::uint8_t* target) noexcept {
  const Index to = part.output + part.to == outputs ? panel_width : part.to;
  if (type == WeightType::int8) {
    return store_lanes_int8(span, part.length, part.from, to, reinterpret_cast<std::int8_t*>(target));
  }
  if (type == WeightType::f32) {
    return store_lanes(span, part.length, part.from, to, reinterpret_cast<float*>(target));
  }
  std::uint16_t halves[panel_width * largest_group];
  const auto narrow = type == WeightType::f16 ? narrow_to_f16 : narrow_to_bf16;
  narrow(span, part.length * panel_width, halves);
  store_lanes(halves, part.length, part.from, to, reinterpret_cast<std::uint16_t*>(target));
}

void read(const std::uint8_t* source, WeightType type, Index lane, Index length, float* row) noexcept {
  if (type == WeightType::int8) {
    return read_lane_int8(reinterpret_cast<const std::int8_t*>(source), lane, length, row);
  }
  if (type == WeightType::f32) return read_lane(reinterpret_cast<const float*>(source), lane, length, row);
  std::uint16_t halves[largest_group];
  read_lane(reinterpret_cast<const std::uint16_t*>(source), lane, length, halves);
  const auto widen_halves = type == WeightType::f16 ? widen_f16 : widen_bf16;
  widen_halves(halves, length, row);
}

Status validate(const WeightRows& rows, Index inputs, Index outputs, LinearFormat format) noexcept {
  if (inputs < 1 || outputs < 1 || rows.count < 0) return Status::invalid_shape;
  if (const Status status = validate_linear(format); status != Status::ok) return status;
  if (rows.type < WeightType::f32 || rows.type > WeightType::bf16) return Status::invalid_argument;
  const Index row_count = rows.transposed ? inputs : outputs;
  if (rows.first < 0 || rows.first > row_count || rows.count > row_count - rows.first) return Status::invalid_range;
  if (rows.stride != 0 && rows.stride < (rows.transposed ? outputs : inputs)) return Status::invalid_shape;
  if (!rows.transposed || format.type != WeightType::int8) return Status::ok;
  const Index end = rows.first + rows.count;
  const bool whole = rows.first % format.group == 0 && (end % format.group == 0 || end == inputs);
  return whole ? Status::ok : Status::invalid_range;
}

}  // namespace

Status validate_linear(LinearFormat format) noexcept {
  if (format.type < WeightType::f32 || format.type > WeightType::int8) return Status::invalid_argument;
  const bool grouped = format.group >= group_step && format.group <= largest_group && format.group % group_step == 0;
  return grouped || format.type != WeightType::int8 ? Status::ok : Status::invalid_argument;
}

Index panel_bytes(Index inputs, LinearFormat format) noexcept {
  if (format.type == WeightType::int8) return int8_panel_bytes(inputs, format.group);
  return inputs * panel_width * element_bytes(format.type);
}

Index panel_offset(Index inputs, LinearFormat format, Index output, Index first) noexcept {
  // The bytes before `first` are those of a panel that ends there.
  const Index before = first == 0 ? 0 : panel_bytes(first, format);
  return output / panel_width * panel_bytes(inputs, format) + before;
}

double packed_linear_bytes(Index inputs, Index outputs, LinearFormat format) noexcept {
  if (validate_linear(format) != Status::ok) return 0.0;
  const auto panels = static_cast<double>(outputs / panel_width + (outputs % panel_width > 0 ? 1 : 0));
  double row = static_cast<double>(inputs) * static_cast<double>(element_bytes(format.type));
  if (format.type == WeightType::int8) {
    row = static_cast<double>(padded_pairs(inputs)) +
          static_cast<double>(group_count(inputs, format.group)) * sizeof(float);
  }
  return panels * static_cast<double>(panel_width) * row;
}

Status pack_linear(const WeightRows& rows, Index inputs, Index outputs, LinearFormat format, void* packed) noexcept {
  if (const Status status = validate(rows, inputs, outputs, format); status != Status::ok) return status;
  if (rows.count == 0) return Status::ok;
  if (rows.values == nullptr || packed == nullptr) return Status::null_pointer;
  WeightRows source = rows;
  if (source.stride == 0) source.stride = source.transposed ? outputs : inputs;

  const Index end = source.first + source.count;
  const auto [first_input, end_input] = source.transposed ? std::pair(source.first, end) : std::pair(Index{0}, inputs);
  const auto [first_output, end_output] =
      source.transposed ? std::pair(Index{0}, outputs) : std::pair(source.first, end);
  float span[panel_width * largest_group];
  for (Index output = first_output / panel_width * panel_width; output < end_output; output += panel_width) {
    const Index from = std::max(first_output - output, Index{0});
    const Index to = std::min(end_output - output, panel_width);
    for (Index input = first_input; input < end_input; input += span_of(format)) {
      const Part part{output, from, to, input, std::min(span_of(format), end_input - input)};
      gather(source, part, span);
      store(span, part, outputs, format.type,
            static_cast<std::uint8_t*>(packed) + panel_offset(inputs, format, output, input));
    }
  }
  return Status::ok;
}

Status unpack_linear(const PackedLinear& layer, Index first, Index count, float* rows) noexcept {
  const auto& [weight, bias, inputs, outputs, format] = layer;
  if (inputs < 1 || outputs < 1) return Status::invalid_shape;
  if (const Status status = validate_linear(format); status != Status::ok) return status;
  if (first < 0 || count < 0 || first > outputs || count > outputs - first) return Status::invalid_range;
  if (count == 0) return Status::ok;
  if (weight == nullptr || rows == nullptr) return Status::null_pointer;
  const auto* panels = static_cast<const std::uint8_t*>(weight);
  for (Index output = first; output < first + count; ++output, rows += inputs) {
    for (Index input = 0; input < inputs; input += span_of(format)) {
      const std::uint8_t* source = panels + panel_offset(inputs, format, output, input);
      read(source, format.type, output % panel_width, std::min(span_of(format), inputs - input), rows + input);
    }
  }
  return Status::ok;
}

}  // namespace lookback
