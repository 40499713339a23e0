#include "kernels/dot_rows.hpp"

#include <algorithm>

#include "kernels/int8_tile.hpp"

namespace lookback::kernels {
namespace {

using simd::Batch;
using simd::BatchInt;

/// Rows whose sums of lanes wait to be added up: few, since what is stored between reads holds up those that follow.
constexpr Index waiting_rows = 16;
/// Rows of int8 values whose weights share a scale, at most.
constexpr Index chunk_rows = 256;
/// Columns that a row gives at once.
constexpr Index step = 2 * simd::lanes;
/// Steps that share the calculation of addresses.
constexpr int unrolled = 4;
/// Rows of int8 that are read side by side.
constexpr Index int8_rows = 4;
/// Sums of one row that do not wait for each other.
constexpr int chains = 4;
/// Columns of int8 rows whose sums are made at once.
constexpr Index strip_width = 64;
/// Batches of d that a row's chains take before they join the total: as in row_tile.cpp, errors do not grow with the depth.
constexpr Index part_batches = 32 * chains;

/// One part of d, whole batches: the sums of each row's lanes are written, or added, to lane_sums. Neighbours share each load of the query:
/// `row_count` is a multiple of their number. They follow each other in their order, which prefetchers follow.
template <int Neighbours>
[[gnu::noinline]] void dot_part(const float* rows, Index row_stride, Index row_count, const float* query, Index whole,
                                bool add, float* lane_sums) noexcept {
  constexpr Index stride = chains * simd::lanes;
  const Index strides = whole / stride * stride;
#pragma clang loop unroll(disable)
  for (Index done = 0; done < row_count; done += Neighbours) {
    Batch sum[Neighbours][chains];
#pragma clang loop unroll(full)
    for (int i = 0; i < Neighbours * chains; ++i) sum[i / chains][i % chains] = simd::splat(0.0F);
    Index d = 0;
#pragma clang loop unroll(disable)
    for (; d < strides; d += stride) {
      const float* factors = query + d;
      simd::pin(factors);
      const float* at[Neighbours];
#pragma clang loop unroll(full)
      for (int r = 0; r < Neighbours; ++r) {
        at[r] = rows + r * row_stride + d;
        simd::pin(at[r]);
      }
#pragma clang loop unroll(full)
      for (int n = 0; n < chains; ++n) {
        const Batch factor = simd::load(factors + n * simd::lanes);
#pragma clang loop unroll(full)
        for (int r = 0; r < Neighbours; ++r) {
          sum[r][n] = simd::madd(simd::load(at[r] + n * simd::lanes), factor, sum[r][n]);
        }
      }
    }
#pragma clang loop unroll(disable)
    for (; d < whole; d += simd::lanes) {
#pragma clang loop unroll(full)
      for (int r = 0; r < Neighbours; ++r) {
        sum[r][0] = simd::madd(simd::load(rows + r * row_stride + d), simd::load(query + d), sum[r][0]);
      }
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < Neighbours; ++r) {
      float* target = lane_sums + (done + r) * simd::lanes;
      const Batch total = (sum[r][0] + sum[r][1]) + (sum[r][2] + sum[r][3]);
      simd::store(target, add ? simd::load(target) + total : total);
    }
    rows += Neighbours * row_stride;
  }
}

/// lane_sums[row] over the whole batches of d.
void dot_whole(const float* rows, Index row_stride, Index row_count, const float* query, Index whole,
               float* lane_sums) noexcept {
  const Index paired = row_count / 2 * 2;
  Index d = 0;
  do {
    const Index count = std::min(part_batches * simd::lanes, whole - d);
    dot_part<2>(rows + d, row_stride, paired, query + d, count, d > 0, lane_sums);
    if (paired < row_count) {
      dot_part<1>(rows + paired * row_stride + d, row_stride, 1, query + d, count, d > 0,
                  lane_sums + paired * simd::lanes);
    }
    d += count;
  } while (d < whole);
}

/// The same for RowCount int8 rows and an int16 query, group by group of int8_query_group.
template <int RowCount>
[[gnu::noinline]] void dot_int8_group(const std::int8_t* rows, Index row_stride, const std::int16_t* query,
                                      const float* query_scales, Index whole, float* lane_sums) noexcept {
  const std::int8_t* row[RowCount];
  Batch total[RowCount];
#pragma clang loop unroll(full)
  for (int r = 0; r < RowCount; ++r) {
    row[r] = rows + r * row_stride;
    total[r] = simd::splat(0.0F);
  }
  for (Index d = 0; d < whole;) {
    BatchInt sum[RowCount];
#pragma clang loop unroll(full)
    for (int r = 0; r < RowCount; ++r) sum[r] = BatchInt(0);
    const Batch scale = simd::load_splat(query_scales + d / int8_query_group);
    const Index end = std::min(whole, d + int8_query_group);
#pragma clang loop unroll(disable)
    for (; d + unrolled * step <= end; d += unrolled * step) {
      simd::BatchPairs q[unrolled];
#pragma clang loop unroll(full)
      for (int n = 0; n < unrolled; ++n) q[n] = simd::load_pairs(query + d + n * step);
#pragma clang loop unroll(full)
      for (int r = 0; r < RowCount; ++r) {
        const std::int8_t* at = row[r] + d;
        simd::pin(at);
#pragma clang loop unroll(full)
        for (int n = 0; n < unrolled; ++n) {
          sum[r] = simd::add_pair_products(simd::load_int8_pairs(at + n * step), q[n], sum[r]);
        }
      }
    }
#pragma clang loop unroll(disable)
    for (; d < end; d += step) {
      const auto q = simd::load_pairs(query + d);
#pragma clang loop unroll(full)
      for (int r = 0; r < RowCount; ++r) sum[r] = simd::add_pair_products(simd::load_int8_pairs(row[r] + d), q, sum[r]);
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < RowCount; ++r) total[r] = simd::madd(simd::to_float(sum[r]), scale, total[r]);
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < RowCount; ++r) simd::store(lane_sums + r * simd::lanes, total[r]);
}

/// out[row] = the lanes of lane_sums[row], added pairwise as sum_of_lanes does.
[[gnu::noinline]] void add_lanes(const float* lane_sums, Index row_count, float* out) noexcept {
  Index row = 0;
  for (; row + simd::lanes <= row_count; row += simd::lanes) {
    Batch square[simd::lanes];
#pragma clang loop unroll(full)
    for (Index i = 0; i < simd::lanes; ++i) square[i] = simd::load(lane_sums + (row + i) * simd::lanes);
    simd::transpose(square);
#pragma clang loop unroll(full)
    for (Index half = simd::lanes / 2; half > 0; half /= 2) {
#pragma clang loop unroll(full)
      for (Index i = 0; i < half; ++i) square[i] += square[i + half];
    }
    simd::store(out + row, square[0]);
  }
  for (; row < row_count; ++row) out[row] = simd::sum_of_lanes(simd::load(lane_sums + row * simd::lanes));
}

/// sums[c] += Σ weights[row] · rows[row][c] in the order of rows, Neighbours of them at once: `row_count` is a multiple of it. Whole steps of columns.
template <int Neighbours>
[[gnu::noinline]] void accumulate_whole(const float* rows, Index row_stride, Index row_count, const float* weights,
                                        Index whole, float* sums) noexcept {
  const float* row[Neighbours];
#pragma clang loop unroll(full)
  for (int r = 0; r < Neighbours; ++r) row[r] = rows + r * row_stride;
#pragma clang loop unroll(disable)
  for (Index done = 0; done < row_count; done += Neighbours) {
    Batch weight[Neighbours];
#pragma clang loop unroll(full)
    for (int r = 0; r < Neighbours; ++r) weight[r] = simd::load_splat(weights + done + r);
#pragma clang loop unroll(disable)
    for (Index column = 0; column < whole; column += step) {
      Batch sum0 = simd::load(sums + column);
      Batch sum1 = simd::load(sums + column + simd::lanes);
#pragma clang loop unroll(full)
      for (int r = 0; r < Neighbours; ++r) {
        sum0 = simd::madd(weight[r], simd::load(row[r] + column), sum0);
        sum1 = simd::madd(weight[r], simd::load(row[r] + column + simd::lanes), sum1);
      }
      simd::store(sums + column, sum0);
      simd::store(sums + column + simd::lanes, sum1);
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < Neighbours; ++r) row[r] += Neighbours * row_stride;
  }
}

/// sums[c] += Σ code · byte over neighbouring rows, two by two; whole steps of columns.
template <int Pairs>
[[gnu::noinline]] void accumulate_int8_group(const std::int8_t* rows, Index row_stride, const std::int16_t* codes,
                                             Index whole, std::int32_t* sums) noexcept {
  simd::BatchPairs weight[Pairs];
#pragma clang loop unroll(full)
  for (int p = 0; p < Pairs; ++p) weight[p] = simd::load_splat_pair(codes + 2 * p);
#pragma clang loop unroll(disable)
  for (Index column = 0; column < whole; column += step) {
    BatchInt sum0 = BatchInt::load_unaligned(sums);
    BatchInt sum1 = BatchInt::load_unaligned(sums + simd::lanes);
    const std::int8_t* row = rows;
#pragma clang loop unroll(full)
    for (int p = 0; p < Pairs; ++p) {
      const std::int8_t* next = row + row_stride;
      simd::BatchPairs values0;
      simd::BatchPairs values1;
      simd::load_int8_interleaved(row, next, values0, values1);
      sum0 = simd::add_pair_products(values0, weight[p], sum0);
      sum1 = simd::add_pair_products(values1, weight[p], sum1);
      row = next + row_stride;
    }
    sum0.store_unaligned(sums);
    sum1.store_unaligned(sums + simd::lanes);
    rows += step;
    sums += step;
  }
}

/// Up to chunk_rows rows with their codes, an even number of which the last may be 0; at most strip_width columns.
[[gnu::noinline]] void accumulate_int8_strip(const std::int8_t* rows, Index row_stride, Index row_count,
                                             const std::int16_t* codes, float scale, Index column_count,
                                             float* sums) noexcept {
  alignas(64) std::int32_t totals[strip_width] = {};
  const Index whole = column_count / step * step;
  Index row = 0;
  for (; row + 8 <= row_count; row += 8) {
    accumulate_int8_group<4>(rows + row * row_stride, row_stride, codes + row, whole, totals);
  }
  for (; row < row_count; row += 2) {
    // The partner of a last row alone has the code 0: any row serves.
    const Index stride = row + 1 < row_count ? row_stride : 0;
    accumulate_int8_group<1>(rows + row * row_stride, stride, codes + row, whole, totals);
  }
  for (Index column = whole; column < column_count; ++column) {
    for (row = 0; row < row_count; ++row) totals[column] += rows[row * row_stride + column] * codes[row];
  }
  for (Index column = 0; column < column_count; ++column) sums[column] += static_cast<float>(totals[column]) * scale;
}

}  // namespace

void dot_rows(const float* rows, Index row_stride, Index row_count, const float* query, Index depth,
              float* out) noexcept {
  alignas(64) float lane_sums[waiting_rows * simd::lanes];
  const Index whole = depth / simd::lanes * simd::lanes;
  for (Index done = 0; done < row_count; done += waiting_rows) {
    const Index count = std::min(waiting_rows, row_count - done);
    dot_whole(rows + done * row_stride, row_stride, count, query, whole, lane_sums);
    add_lanes(lane_sums, count, out + done);
  }
  if (whole == depth) return;
  for (Index row = 0; row < row_count; ++row) {
    for (Index d = whole; d < depth; ++d) out[row] += rows[row * row_stride + d] * query[d];
  }
}

void dot_rows_int8(const std::int8_t* rows, const float* scales, Index row_stride, Index row_count,
                   const std::int16_t* query, const float* query_scales, Index depth, float* out) noexcept {
  alignas(64) float lane_sums[waiting_rows * simd::lanes];
  const Index whole = depth / step * step;
  for (Index done = 0; done < row_count; done += waiting_rows) {
    const std::int8_t* first = rows + done * row_stride;
    const Index count = std::min(waiting_rows, row_count - done);
    const auto dot = [&]<Index RowCount>(Index row) {
      dot_int8_group<RowCount>(first + row * row_stride, row_stride, query, query_scales, whole,
                               lane_sums + row * simd::lanes);
    };
    Index row = 0;
    for (; row + int8_rows <= count; row += int8_rows) dot.template operator()<int8_rows>(row);
    for (; row < count; ++row) dot.template operator()<1>(row);
    add_lanes(lane_sums, count, out + done);
  }
  if (whole < depth) {
    for (Index row = 0; row < row_count; ++row) {
      for (Index d = whole; d < depth; ++d) {
        const float product = static_cast<float>(rows[row * row_stride + d] * query[d]);
        out[row] += product * query_scales[d / int8_query_group];
      }
    }
  }
  for (Index row = 0; row < row_count; ++row) out[row] *= scales[row];
}

void correct_and_add(float* out, Index count, float correction, const float* sums) noexcept {
  for (Index column = 0; column < count; ++column) out[column] = out[column] * correction + sums[column];
}

void accumulate_rows(const float* rows, Index row_stride, Index row_count, const float* weights,
                     const std::uint8_t* visible, Index column_count, float* sums) noexcept {
  const Index whole = column_count / step * step;
  const auto seen = [&](Index row) { return visible == nullptr || visible[row] != 0; };
  for (Index from = 0; from < row_count;) {
    Index to = from;
    while (to < row_count && seen(to)) ++to;
    const Index paired = from + (to - from) / 2 * 2;
    accumulate_whole<2>(rows + from * row_stride, row_stride, paired - from, weights + from, whole, sums);
    accumulate_whole<1>(rows + paired * row_stride, row_stride, to - paired, weights + paired, whole, sums);
    for (Index row = from; row < to; ++row) {
      for (Index column = whole; column < column_count; ++column) {
        sums[column] += weights[row] * rows[row * row_stride + column];
      }
    }
    from = to;
    while (from < row_count && !seen(from)) ++from;
  }
}

void accumulate_rows_int8(const std::int8_t* rows, const float* scales, Index row_stride, Index row_count,
                          const float* weights, const std::uint8_t* visible, Index column_count, float* sums) noexcept {
  for (Index done = 0; done < row_count; done += chunk_rows) {
    const Index count = std::min(chunk_rows, row_count - done);
    float products[chunk_rows];
    for (Index row = 0; row < count; ++row) products[row] = weights[done + row] * scales[done + row];
    if (visible != nullptr) {
      for (Index row = 0; row < count; ++row) products[row] = visible[done + row] != 0 ? products[row] : 0.0F;
    }
    std::int16_t codes[chunk_rows];
    float scale = 0.0F;
    quantize_inputs(products, count, chunk_rows, codes, &scale);
    for (Index column = 0; column < column_count; column += strip_width) {
      accumulate_int8_strip(rows + done * row_stride + column, row_stride, count, codes, scale,
                            std::min(strip_width, column_count - column), sums + column);
    }
  }
}

}  // namespace lookback::kernels
