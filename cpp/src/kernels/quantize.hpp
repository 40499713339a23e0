#pragma once

// Symmetric int8 rows: x ≈ q · scale with scale = max|x| / 127, |error| ≤ scale / 2. A row that holds NaN or ±∞ has scale NaN and
// comes back as NaN. A row of zeros has scale 0.

#include <cstdint>

#include "kernels/tile.hpp"

namespace lookback::kernels {

/// Returns the scale.
float quantize_row(const float* row, Index count, std::int8_t* quantized) noexcept;

void dequantize_row(const std::int8_t* quantized, Index count, float scale, float* row) noexcept;

}  // namespace lookback::kernels
