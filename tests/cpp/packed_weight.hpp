#pragma once

// A weight that was packed, in memory of exactly its size, and a call with exactly the workspace it asks for.

#include "lookback/linear.hpp"
#include "support.hpp"

namespace lookback::test {

inline constexpr LinearFormat f32{WeightType::f32};
inline constexpr LinearFormat f16{WeightType::f16};
inline constexpr LinearFormat bf16{WeightType::bf16};

inline std::vector<LinearFormat> all_formats() {
  return {f32, f16, bf16, {WeightType::int8, 16}, {WeightType::int8, 64}, {WeightType::int8, 256}};
}

inline std::string name_of(LinearFormat format) {
  const char* names[] = {"f32", "f16", "bf16", "int8"};
  return names[static_cast<int>(format.type)] + std::string(" / ") + std::to_string(format.group);
}

class PackedWeight {
public:
  /// Nothing is packed yet: every byte is 0xff.
  PackedWeight(Index inputs, Index outputs, LinearFormat format)
      : memory_(packed_linear_bytes(inputs, outputs, format)), inputs_(inputs), outputs_(outputs), format_(format) {}

  PackedWeight(const std::vector<float>& weight, Index inputs, Index outputs, LinearFormat format)
      : PackedWeight(inputs, outputs, format) {
    Unaligned source(weight);
    EXPECT_EQ(pack({source.data(), WeightType::f32, false, 0, outputs}), Status::ok);
  }

  Status pack(const WeightRows& rows) { return pack_linear(rows, inputs_, outputs_, format_, memory_.data()); }

  [[nodiscard]] PackedLinear layer(const float* bias = nullptr) const {
    return {memory_.data(), bias, inputs_, outputs_, format_};
  }

  /// What is stored, [outputs, inputs].
  [[nodiscard]] std::vector<float> stored() const {
    Unaligned rows(inputs_ * outputs_, untouched);
    EXPECT_EQ(unpack_linear(layer(), 0, outputs_, rows.data()), Status::ok);
    return rows.values();
  }

  /// The panels, for those of gradients.
  [[nodiscard]] float* panels() const { return static_cast<float*>(memory_.data()); }

  [[nodiscard]] std::vector<std::uint8_t> bytes() const {
    const auto* first = static_cast<const std::uint8_t*>(memory_.data());
    return {first, first + memory_.bytes()};
  }

private:
  Scratch memory_;
  Index inputs_, outputs_;
  LinearFormat format_;
};

inline std::vector<float> forward(const PackedLinear& layer, const std::vector<float>& input) {
  const Index rows = static_cast<Index>(input.size()) / layer.inputs;
  Unaligned source(input);
  Unaligned output(rows * layer.outputs, untouched);
  const Scratch workspace(linear_workspace_bytes(layer, rows));
  EXPECT_EQ(linear_forward(layer, source.data(), rows, output.data(), workspace.data(), workspace.bytes()), Status::ok);
  return output.values();
}

}  // namespace lookback::test
