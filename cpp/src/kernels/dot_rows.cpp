#include "kernels/dot_rows.hpp"

namespace lookback::kernels {
namespace {

using simd::Batch;

/// Columns whose sums stay in registers.
constexpr Index strip_batches = 8;
constexpr Index strip_width = strip_batches * simd::lanes;

/// Rows of float32 or int8, whatever the source.
struct FloatRows {
  const float* data;
  Index stride;
  [[nodiscard]] Batch load(Index row, Index column) const noexcept { return simd::load(data + row * stride + column); }
  [[nodiscard]] float at(Index row, Index column) const noexcept { return data[row * stride + column]; }
  [[nodiscard]] float scale(Index) const noexcept { return 1.0F; }
};

struct Int8Rows {
  const std::int8_t* data;
  const float* scales;
  Index stride;
  [[nodiscard]] Batch load(Index row, Index column) const noexcept {
    return simd::load_int8(data + row * stride + column);
  }
  [[nodiscard]] float at(Index row, Index column) const noexcept {
    return static_cast<float>(data[row * stride + column]);
  }
  [[nodiscard]] float scale(Index row) const noexcept { return scales[row]; }
};

/// Batches of d that one sum takes before it joins the total: as in row_tile.cpp, errors do not grow with the depth.
constexpr Index part_batches = 32;

template <int RowCount, typename Rows>
[[gnu::noinline]] void dot_group(const Rows& rows, Index first, const float* query, Index depth, float* out) noexcept {
  Batch total[RowCount];
#pragma clang loop unroll(full)
  for (int r = 0; r < RowCount; ++r) total[r] = simd::splat(0.0F);
  const Index whole = depth / simd::lanes * simd::lanes;
  for (Index d = 0; d < whole;) {
    Batch sum[RowCount];
#pragma clang loop unroll(full)
    for (int r = 0; r < RowCount; ++r) sum[r] = simd::splat(0.0F);
    const Index end = whole - d < part_batches * simd::lanes ? whole : d + part_batches * simd::lanes;
#pragma clang loop unroll(disable)
    for (; d < end; d += simd::lanes) {
      const Batch q = simd::load(query + d);
#pragma clang loop unroll(full)
      for (int r = 0; r < RowCount; ++r) sum[r] = simd::madd(rows.load(first + r, d), q, sum[r]);
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < RowCount; ++r) total[r] += sum[r];
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < RowCount; ++r) {
    float score = simd::sum_of_lanes(total[r]);
    for (Index d = whole; d < depth; ++d) score += rows.at(first + r, d) * query[d];
    out[first + r] = score * rows.scale(first + r);
  }
}

template <typename Rows>
void dot_all(const Rows& rows, Index row_count, const float* query, Index depth, float* out) noexcept {
  Index row = 0;
  for (; row + 4 <= row_count; row += 4) dot_group<4>(rows, row, query, depth, out);
  for (; row < row_count; ++row) dot_group<1>(rows, row, query, depth, out);
}

template <typename Rows>
[[gnu::noinline]] void accumulate_strip(const Rows& rows, Index row_count, const float* weights,
                                        const std::uint8_t* visible, Index first_column, float* sums) noexcept {
  Batch sum[strip_batches];
#pragma clang loop unroll(full)
  for (Index batch = 0; batch < strip_batches; ++batch)
    sum[batch] = simd::load(sums + first_column + batch * simd::lanes);
#pragma clang loop unroll(disable)
  for (Index row = 0; row < row_count; ++row) {
    if (visible != nullptr && visible[row] == 0) continue;
    const Batch weight = simd::splat(weights[row] * rows.scale(row));
#pragma clang loop unroll(full)
    for (Index batch = 0; batch < strip_batches; ++batch) {
      sum[batch] = simd::madd(weight, rows.load(row, first_column + batch * simd::lanes), sum[batch]);
    }
  }
#pragma clang loop unroll(full)
  for (Index batch = 0; batch < strip_batches; ++batch)
    simd::store(sums + first_column + batch * simd::lanes, sum[batch]);
}

/// Columns that fill no strip: batch by batch, then one by one.
template <typename Rows>
[[gnu::noinline]] void accumulate_rest(const Rows& rows, Index row_count, const float* weights,
                                       const std::uint8_t* visible, Index first_column, Index column_count,
                                       float* sums) noexcept {
  for (Index row = 0; row < row_count; ++row) {
    if (visible != nullptr && visible[row] == 0) continue;
    const float weight = weights[row] * rows.scale(row);
    Index column = first_column;
    for (; column + simd::lanes <= column_count; column += simd::lanes) {
      simd::store(sums + column, simd::madd(simd::splat(weight), rows.load(row, column), simd::load(sums + column)));
    }
    for (; column < column_count; ++column) sums[column] += weight * rows.at(row, column);
  }
}

template <typename Rows>
void accumulate_all(const Rows& rows, Index row_count, const float* weights, const std::uint8_t* visible,
                    Index column_count, float* sums) noexcept {
  Index column = 0;
  for (; column + strip_width <= column_count; column += strip_width) {
    accumulate_strip(rows, row_count, weights, visible, column, sums);
  }
  if (column < column_count) accumulate_rest(rows, row_count, weights, visible, column, column_count, sums);
}

}  // namespace

void dot_rows(const float* rows, Index row_stride, Index row_count, const float* query, Index depth,
              float* out) noexcept {
  dot_all(FloatRows{rows, row_stride}, row_count, query, depth, out);
}

void dot_rows_int8(const std::int8_t* rows, const float* scales, Index row_stride, Index row_count, const float* query,
                   Index depth, float* out) noexcept {
  dot_all(Int8Rows{rows, scales, row_stride}, row_count, query, depth, out);
}

void correct_and_add(float* out, Index count, float correction, const float* sums) noexcept {
  for (Index column = 0; column < count; ++column) out[column] = out[column] * correction + sums[column];
}

void accumulate_rows(const float* rows, Index row_stride, Index row_count, const float* weights,
                     const std::uint8_t* visible, Index column_count, float* sums) noexcept {
  accumulate_all(FloatRows{rows, row_stride}, row_count, weights, visible, column_count, sums);
}

void accumulate_rows_int8(const std::int8_t* rows, const float* scales, Index row_stride, Index row_count,
                          const float* weights, const std::uint8_t* visible, Index column_count, float* sums) noexcept {
  accumulate_all(Int8Rows{rows, scales, row_stride}, row_count, weights, visible, column_count, sums);
}

}  // namespace lookback::kernels
