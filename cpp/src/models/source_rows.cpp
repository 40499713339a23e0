#include "models/source_rows.hpp"

#include <bit>
#include <cstring>

namespace lookback {
namespace {

float from_bfloat16(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// The exponent is rebased by a multiplication, which is right for subnormal numbers as well; ∞ and NaN keep all exponent bits.
float from_float16(std::uint16_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t magnitude = (bits & 0x7fffU) << 13;
  if ((bits & 0x7c00U) == 0x7c00U) return std::bit_cast<float>(sign | magnitude | 0x7f800000U);
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F));
}

}  // namespace

bool is_source_type(SourceType type) noexcept { return type >= SourceType::float32 && type <= SourceType::bfloat16; }

void convert_elements(const void* source, SourceType type, Index first, Index count, float* values) noexcept {
  const auto* bytes = static_cast<const char*>(source);
  if (type == SourceType::float32) {
    std::memcpy(values, bytes + first * 4, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  for (Index i = 0; i < count; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, bytes + (first + i) * 2, sizeof bits);
    values[i] = type == SourceType::float16 ? from_float16(bits) : from_bfloat16(bits);
  }
}

}  // namespace lookback
