#include "kernels/row_tile.hpp"

namespace lookback::kernels {
namespace {

using simd::Batch;

/// Sums over d are made of parts of this length: rounding errors of terms of one sign grow with the length of a part plus the
/// number of parts, not with d.
constexpr Index part_length = 32;

template <int Rows>
struct Sums {
  Batch value[Rows][2];

  /// One d: `row` and `panel` stand `offset` before it.
  [[gnu::always_inline]] void multiply(const float* const* row, const float* panel, int offset) noexcept {
    const Batch b0 = simd::load(panel + offset * panel_width);
    const Batch b1 = simd::load(panel + offset * panel_width + simd::lanes);
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r) {
      const Batch a = simd::load_splat(row[r] + offset);
      value[r][0] = simd::madd(a, b0, value[r][0]);
      value[r][1] = simd::madd(a, b1, value[r][1]);
    }
  }

  /// d in [0, count), at least one. Four by four, with a way out after each: a plain unrolled loop is one basic block, in which
  /// LLVM's wasm backend gathers each sum's multiply-adds and spills all of their operands.
  [[gnu::always_inline]] void multiply_all(const float* rows, Index row_stride, const float* panel,
                                           Index count) noexcept {
    const float* row[Rows];
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r) row[r] = rows + r * row_stride;
#pragma clang loop unroll(disable)
    for (;;) {
      multiply(row, panel, 0);
      if (--count == 0) return;
      multiply(row, panel, 1);
      if (--count == 0) return;
      multiply(row, panel, 2);
      if (--count == 0) return;
      multiply(row, panel, 3);
      if (--count == 0) return;
#pragma clang loop unroll(full)
      for (int r = 0; r < Rows; ++r) {
        row[r] += 4;
        simd::pin(row[r]);
      }
      panel += 4 * panel_width;
      simd::pin(panel);
    }
  }
};

/// One part of a group of rows; `Later` parts are added to what stands in `out`, the first one begins with `initial`. Nothing but
/// the loop's own values lives in here, or V8 spills them.
template <int Rows, bool Later>
[[gnu::noinline]] void multiply_part(const float* rows, Index row_stride, const float* panel, Index depth,
                                     const float* initial, float* out, Index out_stride) noexcept {
  Sums<Rows> sums;
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r) {
    sums.value[r][0] = Later ? simd::splat(0.0F) : simd::load(initial);
    sums.value[r][1] = Later ? simd::splat(0.0F) : simd::load(initial + simd::lanes);
  }
  sums.multiply_all(rows, row_stride, panel, depth);
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r) {
    float* target = out + r * out_stride;
    simd::store(target, Later ? simd::load(target) + sums.value[r][0] : sums.value[r][0]);
    simd::store(target + simd::lanes, Later ? simd::load(target + simd::lanes) + sums.value[r][1] : sums.value[r][1]);
  }
}

template <int Rows>
void multiply_row_group(const float* rows, Index row_stride, const float* panel, Index depth, const float* initial,
                        float* out, Index out_stride) noexcept {
  const Index first = depth < part_length ? depth : part_length;
  if (initial != nullptr) {
    multiply_part<Rows, false>(rows, row_stride, panel, first, initial, out, out_stride);
  } else {
    multiply_part<Rows, true>(rows, row_stride, panel, first, nullptr, out, out_stride);
  }
  for (Index done = part_length; done < depth; done += part_length) {
    const Index part = depth - done < part_length ? depth - done : part_length;
    multiply_part<Rows, true>(rows + done, row_stride, panel + done * panel_width, part, nullptr, out, out_stride);
  }
}

}  // namespace

void multiply_rows(const float* rows, Index row_stride, Index row_count, const float* panel, Index depth,
                   const float* initial, float* out, Index out_stride) noexcept {
  Index r = 0;
  if constexpr (simd::madd_is_one_instruction) {
    const Index wide = rows_at_once() == wide_rows ? row_count / wide_rows * wide_rows : 0;
    for (; r < wide; r += wide_rows) {
      multiply_row_group<wide_rows>(rows + r * row_stride, row_stride, panel, depth, initial, out + r * out_stride,
                                    out_stride);
    }
  }
  for (; r + register_rows <= row_count; r += register_rows) {
    multiply_row_group<register_rows>(rows + r * row_stride, row_stride, panel, depth, initial, out + r * out_stride,
                                      out_stride);
  }
  const float* tail = rows + r * row_stride;
  float* tail_out = out + r * out_stride;
  switch (row_count - r) {
    case 3: return multiply_row_group<3>(tail, row_stride, panel, depth, initial, tail_out, out_stride);
    case 2: return multiply_row_group<2>(tail, row_stride, panel, depth, initial, tail_out, out_stride);
    case 1: return multiply_row_group<1>(tail, row_stride, panel, depth, initial, tail_out, out_stride);
    default: return;
  }
}

[[gnu::noinline]] void add_nonzero_products(const float* rows, Index row_stride, Index row_count, const float* panel,
                                            Index depth, float* out, Index out_stride) noexcept {
  for (Index row = 0; row < row_count; ++row) {
    float* target = out + row * out_stride;
    for (Index first = 0; first < depth; first += part_length) {
      Batch sum[2] = {simd::splat(0.0F), simd::splat(0.0F)};
      for (Index d = first; d < depth && d < first + part_length; ++d) {
        const float* factor = rows + row * row_stride + d;
        if (*factor == 0.0F) continue;
        const Batch a = simd::load_splat(factor);
        sum[0] = simd::madd(a, simd::load(panel + d * panel_width), sum[0]);
        sum[1] = simd::madd(a, simd::load(panel + d * panel_width + simd::lanes), sum[1]);
      }
      simd::store(target, simd::load(target) + sum[0]);
      simd::store(target + simd::lanes, simd::load(target + simd::lanes) + sum[1]);
    }
  }
}

}  // namespace lookback::kernels
