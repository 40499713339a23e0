#include "kernels/row_tile.hpp"

namespace lookback::kernels {
namespace {

using simd::Batch;

template <int Rows, bool TrackMaximum>
[[gnu::noinline]] void multiply_row_group(const float* rows, Index row_stride, const float* panel, Index depth,
                                          const float* initial, float* out, Index out_stride,
                                          float* maximum) noexcept {
  const float* row[Rows];
  Batch sum[Rows][2];
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r) {
    row[r] = rows + r * row_stride;
    sum[r][0] = simd::load(initial);
    sum[r][1] = simd::load(initial + simd::lanes);
  }
  const auto step = [&](Index d) {
    const Batch b0 = simd::load(panel);
    const Batch b1 = simd::load(panel + simd::lanes);
    panel += panel_width;
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r) {
      const Batch a = simd::load_splat(row[r] + d);
      sum[r][0] = simd::madd(a, b0, sum[r][0]);
      sum[r][1] = simd::madd(a, b1, sum[r][1]);
    }
  };
  Index d = 0;
  for (; d + 4 <= depth; d += 4) {
    step(d);
    step(d + 1);
    step(d + 2);
    step(d + 3);
  }
  for (; d < depth; ++d) step(d);
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r) {
    simd::store(out + r * out_stride, sum[r][0]);
    simd::store(out + r * out_stride + simd::lanes, sum[r][1]);
  }
  if constexpr (TrackMaximum) {
    Batch m0 = simd::load(maximum);
    Batch m1 = simd::load(maximum + simd::lanes);
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r) {
      m0 = simd::max_keeping(m0, sum[r][0]);
      m1 = simd::max_keeping(m1, sum[r][1]);
    }
    simd::store(maximum, m0);
    simd::store(maximum + simd::lanes, m1);
  }
}

template <bool TrackMaximum>
void multiply_all_rows(const float* rows, Index row_stride, Index row_count, const float* panel, Index depth,
                       const float* initial, float* out, Index out_stride, float* maximum) noexcept {
  Index r = 0;
  for (; r + register_rows <= row_count; r += register_rows) {
    multiply_row_group<register_rows, TrackMaximum>(rows + r * row_stride, row_stride, panel, depth, initial,
                                                    out + r * out_stride, out_stride, maximum);
  }
  const float* tail = rows + r * row_stride;
  float* tail_out = out + r * out_stride;
  switch (row_count - r) {
    case 3:
      return multiply_row_group<3, TrackMaximum>(tail, row_stride, panel, depth, initial, tail_out, out_stride, maximum);
    case 2:
      return multiply_row_group<2, TrackMaximum>(tail, row_stride, panel, depth, initial, tail_out, out_stride, maximum);
    case 1:
      return multiply_row_group<1, TrackMaximum>(tail, row_stride, panel, depth, initial, tail_out, out_stride, maximum);
    default: return;
  }
}

}  // namespace

void multiply_rows(const float* rows, Index row_stride, Index row_count, const float* panel, Index depth,
                   const float* initial, float* out, Index out_stride) noexcept {
  multiply_all_rows<false>(rows, row_stride, row_count, panel, depth, initial, out, out_stride, nullptr);
}

void multiply_rows_with_maximum(const float* rows, Index row_stride, Index row_count, const float* panel, Index depth,
                                float* out, Index out_stride, float* maximum) noexcept {
  alignas(64) static constexpr float zeros[panel_width] = {};
  multiply_all_rows<true>(rows, row_stride, row_count, panel, depth, zeros, out, out_stride, maximum);
}

}  // namespace lookback::kernels
