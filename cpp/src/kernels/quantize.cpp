#include "kernels/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lookback::kernels {

[[gnu::noinline]] float quantize_row(const float* row, Index count, std::int8_t* quantized) noexcept {
  float largest = 0.0F;
  float witness = 0.0F;  // NaN as soon as a value is not finite
  for (Index i = 0; i < count; ++i) {
    largest = std::max(largest, std::fabs(row[i]));
    witness += row[i] * 0.0F;
  }
  const bool finite = witness == 0.0F;
  const float scale = finite ? largest / 127.0F : std::numeric_limits<float>::quiet_NaN();
  // A scale that vanishes (the row is 0 or nearly so) gives zeros; one that is NaN is kept by any quantity but must not be cast.
  // In float64, because the inverse of a tiny scale is beyond float32.
  const double inverse = finite && scale > 0.0F ? 1.0 / static_cast<double>(scale) : 0.0;
  for (Index i = 0; i < count; ++i) {
    const double value = finite ? std::clamp(static_cast<double>(row[i]) * inverse, -127.0, 127.0) : 1.0;
    quantized[i] = static_cast<std::int8_t>(std::lrint(value));
  }
  return scale;
}

[[gnu::noinline]] void dequantize_row(const std::int8_t* quantized, Index count, float scale, float* row) noexcept {
  for (Index i = 0; i < count; ++i) row[i] = static_cast<float>(quantized[i]) * scale;
}

}  // namespace lookback::kernels
