#include "kernels/pack.hpp"

namespace lookback::kernels {

using simd::Batch;

[[gnu::noinline]] void pack_rows_as_lanes(const float* rows, Index row_stride, Index row_count, Index depth,
                                          float factor, float* panel) noexcept {
  const Batch scale = simd::splat(factor);
  for (Index first_lane = 0; first_lane < panel_width; first_lane += simd::lanes) {
    Index d = 0;
    if (first_lane + simd::lanes <= row_count) {
      for (; d + simd::lanes <= depth; d += simd::lanes) {
        Batch square[simd::lanes];
#pragma clang loop unroll(full)
        for (Index lane = 0; lane < simd::lanes; ++lane) {
          square[lane] = simd::load(rows + (first_lane + lane) * row_stride + d) * scale;
        }
        simd::transpose(square);
#pragma clang loop unroll(full)
        for (Index i = 0; i < simd::lanes; ++i) simd::store(panel + (d + i) * panel_width + first_lane, square[i]);
      }
    }
    for (; d < depth; ++d) {
      for (Index lane = first_lane; lane < first_lane + simd::lanes; ++lane) {
        panel[d * panel_width + lane] = lane < row_count ? rows[lane * row_stride + d] * factor : 0.0F;
      }
    }
  }
}

[[gnu::noinline]] void unpack_lanes_to_rows(const float* panel, Index row_count, Index depth, float* rows,
                                            Index row_stride) noexcept {
  for (Index lane = 0; lane < row_count; ++lane) {
    for (Index d = 0; d < depth; ++d) rows[lane * row_stride + d] = panel[d * panel_width + lane];
  }
}

[[gnu::noinline]] bool pack_columns(const float* rows, Index row_stride, Index row_count, Index column_count,
                                    float* panels, Index panel_stride) noexcept {
  // x · 0 is 0 for finite x and NaN otherwise, and NaN survives every sum.
  const Batch zero = simd::splat(0.0F);
  Batch witness = zero;
  float tail_witness = 0.0F;
  for (Index row = 0; row < row_count; ++row) {
    const float* source = rows + row * row_stride;
    for (Index first = 0; first < column_count; first += panel_width) {
      float* target = panels + first / panel_width * panel_stride + row * panel_width;
      if (first + panel_width <= column_count) {
        const Batch v0 = simd::load(source + first);
        const Batch v1 = simd::load(source + first + simd::lanes);
        simd::store(target, v0);
        simd::store(target + simd::lanes, v1);
        witness = simd::madd(v0, zero, witness);
        witness = simd::madd(v1, zero, witness);
        continue;
      }
      for (Index column = 0; column < panel_width; ++column) {
        const float value = first + column < column_count ? source[first + column] : 0.0F;
        target[column] = value;
        tail_witness += value * 0.0F;
      }
    }
  }
  return !simd::any_nan(witness) && tail_witness == 0.0F;
}

[[gnu::noinline]] void pack_tile(const float* rows, Index row_stride, Index row_count, Index column_count,
                                 float* tile) noexcept {
  const Index whole = column_count / simd::lanes * simd::lanes;
  for (Index row = 0; row < row_count; ++row, rows += row_stride, tile += tile_queries) {
    Index c = 0;
    for (; c < whole; c += simd::lanes) simd::store(tile + c, simd::load(rows + c));
    for (; c < column_count; ++c) tile[c] = rows[c];
    for (; c < tile_queries; ++c) tile[c] = 0.0F;
  }
}

[[gnu::noinline]] void add_panel_rows(const float* panel, Index row_count, float* sums) noexcept {
  Batch first = simd::splat(0.0F);
  Batch second = first;
  for (Index row = 0; row < row_count; ++row, panel += panel_width) {
    first += simd::load(panel);
    second += simd::load(panel + simd::lanes);
  }
  simd::store(sums, simd::load(sums) + first);
  simd::store(sums + simd::lanes, simd::load(sums + simd::lanes) + second);
}

[[gnu::noinline]] void unpack_query_lanes(const float* block, Index row_count, Index key_count, float* rows,
                                          Index row_stride) noexcept {
  const Index whole_rows = row_count / simd::lanes * simd::lanes;
  const Index whole_keys = key_count / simd::lanes * simd::lanes;
  for (Index row = 0; row < whole_rows; row += simd::lanes) {
    for (Index key = 0; key < whole_keys; key += simd::lanes) {
      Batch square[simd::lanes];
#pragma clang loop unroll(full)
      for (Index i = 0; i < simd::lanes; ++i) square[i] = simd::load(block + (key + i) * tile_queries + row);
      simd::transpose(square);
#pragma clang loop unroll(full)
      for (Index i = 0; i < simd::lanes; ++i) simd::store(rows + (row + i) * row_stride + key, square[i]);
    }
  }
  for (Index row = 0; row < row_count; ++row) {
    for (Index key = row < whole_rows ? whole_keys : 0; key < key_count; ++key) {
      rows[row * row_stride + key] = block[key * tile_queries + row];
    }
  }
}

[[gnu::noinline]] void copy_panel(const float* block, Index key_count, float* target) noexcept {
  for (Index at = 0; at < key_count * tile_queries; at += tile_queries) {
    simd::store(target + at, simd::load(block + at));
    simd::store(target + at + simd::lanes, simd::load(block + at + simd::lanes));
  }
}

[[gnu::noinline]] void scale_nonzero(float* row, Index count, float factor) noexcept {
  const Batch scale = simd::splat(factor);
  const Batch zero = simd::splat(0.0F);
  Index i = 0;
  for (; i + simd::lanes <= count; i += simd::lanes) {
    const Batch value = simd::load(row + i);
    simd::store(row + i, simd::select(value == zero, zero, value * scale));
  }
  for (; i < count; ++i) row[i] = row[i] == 0.0F ? 0.0F : row[i] * factor;
}

[[gnu::noinline]] void store_scaled_row(const float* row, Index count, float factor, float* out) noexcept {
  const Batch scale = simd::splat(factor);
  const Batch zero = simd::splat(0.0F);
  Index i = 0;
  for (; i + simd::lanes <= count; i += simd::lanes) simd::store(out + i, simd::load(row + i) * scale + zero);
  for (; i < count; ++i) out[i] = row[i] * factor + 0.0F;
}

}  // namespace lookback::kernels
