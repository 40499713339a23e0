#include "kernels/row_tile.hpp"

namespace lookback::kernels {
namespace {

using simd::Batch;

alignas(64) constexpr float zeros[panel_width] = {};

/// Sums over d are made of parts of this length: rounding errors of terms of one sign grow with the length of a part plus the
/// number of parts, not with d.
constexpr Index part_length = 32;

template <int Rows>
struct Sums {
  Batch value[Rows][2];

  void load_all(const float* row) noexcept {
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r) {
      value[r][0] = simd::load(row);
      value[r][1] = simd::load(row + simd::lanes);
    }
  }

  void add_stored(const float* out, Index out_stride) noexcept {
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r) {
      value[r][0] += simd::load(out + r * out_stride);
      value[r][1] += simd::load(out + r * out_stride + simd::lanes);
    }
  }

  void store(float* out, Index out_stride) const noexcept {
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r) {
      simd::store(out + r * out_stride, value[r][0]);
      simd::store(out + r * out_stride + simd::lanes, value[r][1]);
    }
  }

  void join_maximum(float* maximum) const noexcept {
    Batch m0 = simd::load(maximum);
    Batch m1 = simd::load(maximum + simd::lanes);
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r) {
      m0 = simd::max_keeping(m0, value[r][0]);
      m1 = simd::max_keeping(m1, value[r][1]);
    }
    simd::store(maximum, m0);
    simd::store(maximum + simd::lanes, m1);
  }

  /// One d.
  void multiply(const float* const* row, const float* panel) noexcept {
    const Batch b0 = simd::load(panel);
    const Batch b1 = simd::load(panel + simd::lanes);
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r) {
      const Batch a = simd::load_splat(row[r]);
      value[r][0] = simd::madd(a, b0, value[r][0]);
      value[r][1] = simd::madd(a, b1, value[r][1]);
    }
  }
};

template <int Rows, bool TrackMaximum>
[[gnu::noinline]] void multiply_row_group(const float* rows, Index row_stride, const float* panel, Index depth,
                                          const float* initial, float* out, Index out_stride,
                                          float* maximum) noexcept {
  const float* row[Rows];
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r) row[r] = rows + r * row_stride;
  Sums<Rows> sums;
  sums.load_all(initial);
  for (Index done = 0;;) {
    const Index part = depth - done < part_length ? depth - done : part_length;
    // Not unrolled: LLVM's wasm backend then sinks each sum's multiply-adds together, and all their operands are spilled.
#pragma clang loop unroll(disable)
    for (Index d = 0; d < part; ++d) {
      sums.multiply(row, panel);
#pragma clang loop unroll(full)
      for (int r = 0; r < Rows; ++r) ++row[r];
      panel += panel_width;
    }
    if (done > 0) sums.add_stored(out, out_stride);
    done += part;
    if (done == depth) break;
    sums.store(out, out_stride);
    sums.load_all(zeros);
  }
  sums.store(out, out_stride);
  if constexpr (TrackMaximum) sums.join_maximum(maximum);
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
  multiply_all_rows<true>(rows, row_stride, row_count, panel, depth, zeros, out, out_stride, maximum);
}

}  // namespace lookback::kernels
