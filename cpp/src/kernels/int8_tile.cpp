#include "kernels/int8_tile.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lookback::kernels {
namespace {

using simd::Batch;
using simd::BatchInt;

/// Sums of one group of d for a group of rows; `Later` groups are added to what stands in `out`, the first one begins with `initial`.
template <int Rows, bool Later>
[[gnu::noinline]] void multiply_group(const std::int16_t* rows, Index row_stride, const float* row_scales,
                                      Index scale_stride, const std::int8_t* panel, Index pairs, const float* initial,
                                      float* out, Index out_stride) noexcept {
  BatchInt sum[Rows][2];
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r) {
    sum[r][0] = BatchInt(0);
    sum[r][1] = BatchInt(0);
  }
  const std::int8_t* weights = panel + panel_width * sizeof(float);
  for (Index pair = 0; pair < pairs; ++pair) {
    const auto b0 = simd::load_int8_pairs(weights);
    const auto b1 = simd::load_int8_pairs(weights + panel_width);
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r) {
      const auto a = simd::load_splat_pair(rows + r * row_stride + 2 * pair);
      sum[r][0] = simd::add_pair_products(a, b0, sum[r][0]);
      sum[r][1] = simd::add_pair_products(a, b1, sum[r][1]);
    }
    weights += 2 * panel_width;
  }
  const auto* scales = reinterpret_cast<const float*>(panel);
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r) {
    const Batch row_scale = simd::load_splat(row_scales + r * scale_stride);
    float* target = out + r * out_stride;
#pragma clang loop unroll(full)
    for (int half = 0; half < 2; ++half) {
      const Index at = half * simd::lanes;
      const Batch before = Later ? simd::load(target + at) : simd::load(initial + at);
      simd::store(target + at, simd::madd(simd::to_float(sum[r][half]), simd::load(scales + at) * row_scale, before));
    }
  }
}

template <int Rows>
void multiply_row_group(const std::int16_t* rows, const float* row_scales, const std::int8_t* panel, Index depth,
                        Index group, const float* initial, float* out, Index out_stride) noexcept {
  const Index row_stride = padded_pairs(depth);
  const Index scale_stride = group_count(depth, group);
  for (Index first = 0; first < depth; first += group) {
    const Index length = std::min(group, depth - first);
    const auto multiply = first == 0 ? multiply_group<Rows, false> : multiply_group<Rows, true>;
    multiply(rows + first, row_stride, row_scales, scale_stride, panel, padded_pairs(length) / 2, initial, out,
             out_stride);
    panel += int8_group_bytes(length);
    ++row_scales;
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
    for (; i + simd::lanes <= count; i += simd::lanes) {
      simd::store_int16(target + i, simd::load(values + i) * simd::splat(scale.inverse));
    }
    for (; i < padded_pairs(count); ++i) {
      const float value = i < count && scale.inverse > 0.0F ? values[i] * scale.inverse : 0.0F;
      target[i] = static_cast<std::int16_t>(std::lrint(value));
    }
  }
}

void multiply_int8_rows(const std::int16_t* rows, const float* row_scales, Index row_count, const std::int8_t* panel,
                        Index depth, Index group, const float* initial, float* out, Index out_stride) noexcept {
  const Index row_stride = padded_pairs(depth);
  const Index scale_stride = group_count(depth, group);
  Index r = 0;
  for (; r + register_rows <= row_count; r += register_rows) {
    multiply_row_group<register_rows>(rows + r * row_stride, row_scales + r * scale_stride, panel, depth, group,
                                      initial, out + r * out_stride, out_stride);
  }
  const std::int16_t* tail = rows + r * row_stride;
  const float* tail_scales = row_scales + r * scale_stride;
  float* tail_out = out + r * out_stride;
  switch (row_count - r) {
    case 3: return multiply_row_group<3>(tail, tail_scales, panel, depth, group, initial, tail_out, out_stride);
    case 2: return multiply_row_group<2>(tail, tail_scales, panel, depth, group, initial, tail_out, out_stride);
    case 1: return multiply_row_group<1>(tail, tail_scales, panel, depth, group, initial, tail_out, out_stride);
    default: return;
  }
}

}  // namespace lookback::kernels
