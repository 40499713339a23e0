#include "kernels/int8_tile.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/one_row.hpp"

namespace lookback::kernels {
namespace {

using simd::Batch;
using simd::BatchInt;

/// Rows of A in registers: 4 × 2 sums, 2 of B, 1 of A.
constexpr int int8_rows = 4;

/// Rows of A against panels side by side, one group of d at a time.
template <int Rows, int Panels>
struct Sums {
  BatchInt value[Rows][Panels][2];

  [[gnu::always_inline]] void clear() noexcept {
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r) {
#pragma clang loop unroll(full)
      for (int p = 0; p < Panels; ++p) value[r][p][0] = value[r][p][1] = BatchInt(0);
    }
  }

  /// One pair: `row` and `panel` stand `pair` pairs before it.
  [[gnu::always_inline]] void multiply(const std::int16_t* const* row, const std::int8_t* const* panel,
                                       int pair) noexcept {
#pragma clang loop unroll(full)
    for (int p = 0; p < Panels; ++p) {
      const auto b0 = simd::load_int8_pairs(panel[p] + 2 * pair * panel_width);
      const auto b1 = simd::load_int8_pairs(panel[p] + (2 * pair + 1) * panel_width);
#pragma clang loop unroll(full)
      for (int r = 0; r < Rows; ++r) {
        const auto a = simd::load_splat_pair(row[r] + 2 * pair);
        value[r][p][0] = simd::add_pair_products(a, b0, value[r][p][0]);
        value[r][p][1] = simd::add_pair_products(a, b1, value[r][p][1]);
      }
    }
  }

  /// At least one pair, from where `row` and `panel` stand, which move along. A way out after each pair, as in row_tile.cpp.
  [[gnu::always_inline]] void multiply_all(const std::int16_t** row, const std::int8_t** panel, Index pairs) noexcept {
#pragma clang loop unroll(disable)
    for (;;) {
      multiply(row, panel, 0);
      if (--pairs == 0) return advance(row, panel, 1);
      multiply(row, panel, 1);
      advance(row, panel, 2);
      if (--pairs == 0) return;
    }
  }

private:
  [[gnu::always_inline]] static void advance(const std::int16_t** row, const std::int8_t** panel, int pairs) noexcept {
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r) {
      row[r] += 2 * pairs;
      simd::pin(row[r]);
    }
#pragma clang loop unroll(full)
    for (int p = 0; p < Panels; ++p) {
      panel[p] += 2 * pairs * panel_width;
      simd::pin(panel[p]);
    }
  }
};

/// What add_panels works on; those that are not there are stood in for by others, whose results go nowhere.
template <int Rows, int Panels>
struct Operands {
  const std::int16_t* row[Rows];
  const float* row_scales[Rows];
  const std::int8_t* panel[Panels];
  float* out[Rows];  ///< [Panels][panel_width] each
};

/// out[r][p][…] += the products of whole panels, group by group.
template <int Rows, int Panels>
[[gnu::noinline]] void add_panels(const Operands<Rows, Panels>& operands, Index depth, Index group) noexcept {
  auto [row, row_scales, panel, out] = operands;
#pragma clang loop unroll(disable)
  for (Index index = 0; depth > 0; depth -= group, ++index) {
    const std::int8_t* scales[Panels];
#pragma clang loop unroll(full)
    for (int p = 0; p < Panels; ++p) {
      scales[p] = panel[p];
      panel[p] += panel_width * sizeof(float);
    }
    Sums<Rows, Panels> sums;
    sums.clear();
    sums.multiply_all(row, panel, padded_pairs(std::min(group, depth)) / 2);
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r) {
      const Batch row_scale = simd::load_splat(row_scales[r] + index);
#pragma clang loop unroll(full)
      for (int p = 0; p < Panels; ++p) {
#pragma clang loop unroll(full)
        for (Index half = 0; half < 2; ++half) {
          float* target = out[r] + p * panel_width + half * simd::lanes;
          const Batch scale = simd::load(reinterpret_cast<const float*>(scales[p]) + half * simd::lanes) * row_scale;
          simd::store(target, simd::madd(simd::to_float(sums.value[r][p][half]), scale, simd::load(target)));
        }
      }
    }
  }
}

/// Scale of a group, and what brings its numbers to ±32767.
struct Scale {
  float value = 0.0F;
  float inverse = 0.0F;
};

[[gnu::always_inline]] inline Scale scale_of(const float* values, Index count) noexcept {
  const Batch zero = simd::splat(0.0F);
  Batch largest_lanes = zero;
  Batch witness_lanes = zero;  // x · 0 is NaN where x is not finite, and NaN survives every sum
  Index i = 0;
#pragma clang loop unroll(disable)
  for (; i + simd::lanes <= count; i += simd::lanes) {
    const Batch value = simd::load(values + i);
    largest_lanes = simd::max_keeping(largest_lanes, simd::absolute(value));
    witness_lanes = simd::madd(value, zero, witness_lanes);
  }
  alignas(64) float lane[simd::lanes];
  simd::store(lane, largest_lanes);
  float largest = 0.0F;
  for (const float of_lane : lane) largest = std::max(largest, of_lane);
  float witness = simd::sum_of_lanes(witness_lanes);
#pragma clang loop unroll(disable) vectorize(disable)
  for (; i < count; ++i) {
    largest = std::max(largest, std::fabs(values[i]));
    witness += values[i] * 0.0F;
  }
  if (witness != 0.0F) return {std::numeric_limits<float>::quiet_NaN(), 0.0F};
  if (largest < 0x1p-100F) return {};
  return {largest / 32767.0F, 32767.0F / largest};
}

}  // namespace

[[gnu::noinline]] void quantize_inputs(const float* row, Index depth, Index group, std::int16_t* quantized,
                                       float* scales) noexcept {
  for (Index first = 0; first < depth; first += group) {
    const Index count = std::min(group, depth - first);
    const float* values = row + first;
    std::int16_t* target = quantized + first;
    const Scale scale = scale_of(values, count);
    *scales++ = scale.value;
    Index i = 0;
#pragma clang loop unroll(disable)
    for (; i + simd::lanes <= count; i += simd::lanes) {
      simd::store_int16(target + i, simd::load(values + i) * simd::splat(scale.inverse));
    }
#pragma clang loop unroll(disable) vectorize(disable)
    for (; i < padded_pairs(count); ++i) {
      const float value = i < count && scale.inverse > 0.0F ? values[i] * scale.inverse : 0.0F;
      target[i] = static_cast<std::int16_t>(std::lrint(value));
    }
  }
}

void multiply_int8_rows(const std::int16_t* rows, const float* row_scales, Index row_count, const std::int8_t* panel,
                        Index depth, Index group, const float* initial, float* out, Index out_stride) noexcept {
  for (Index first = 0; first < row_count; first += int8_rows) {
    float nowhere[panel_width] = {};
    Operands<int8_rows, 1> operands;
#pragma clang loop unroll(disable)
    for (Index r = 0; r < int8_rows; ++r) {
      const Index row = std::min(first + r, row_count - 1);
      operands.row[r] = rows + row * padded_pairs(depth);
      operands.row_scales[r] = row_scales + row * group_count(depth, group);
      operands.out[r] = row == first + r ? out + row * out_stride : nowhere;
      std::copy_n(initial, panel_width, operands.out[r]);
    }
    operands.panel[0] = panel;
    add_panels(operands, depth, group);
  }
}

namespace {

template <int Panels>
void multiply_panels(const std::int16_t* row, const float* row_scales, const std::int8_t* panels, Index panel_count,
                     Index depth, Index group, const float* initial, float* out) noexcept {
  Operands<1, Panels> operands{{row}, {row_scales}, {}, {out}};
#pragma clang loop unroll(disable)
  for (Index p = 0; p < Panels; ++p) {
    operands.panel[p] = panels + (p < panel_count ? p : Index{0}) * int8_panel_bytes(depth, group);
  }
  std::copy_n(initial, Panels * panel_width, out);
  add_panels(operands, depth, group);
}

}  // namespace

void multiply_row_int8(const std::int16_t* row, const float* row_scales, const std::int8_t* panels, Index panel_count,
                       Index depth, Index group, const float* initial, float* out) noexcept {
  const auto multiply = panel_count == 1 ? multiply_panels<1> : multiply_panels<side_by_side>;
  multiply(row, row_scales, panels, panel_count, depth, group, initial, out);
}

}  // namespace lookback::kernels
