#include "kernels/value_tile.hpp"

namespace lookback::kernels {
namespace {

using simd::Batch;

template <int Rows>
struct Sums {
  Batch value[Rows][2];

  [[gnu::always_inline]] void add(const float* probabilities, const float* values) noexcept {
    const Batch v0 = simd::load(values);
    const Batch v1 = simd::load(values + simd::lanes);
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r) {
      const Batch weight = simd::load_splat(probabilities + r);
      value[r][0] = simd::madd(weight, v0, value[r][0]);
      value[r][1] = simd::madd(weight, v1, value[r][1]);
    }
  }

  /// Keys [0, count), at least one; why it has so many ways out is said at multiply_part in row_tile.cpp.
  [[gnu::always_inline]] void add_keys(const float* probabilities, const float* values, Index count) noexcept {
#pragma clang loop unroll(disable)
    for (;;) {
      add(probabilities, values);
      if (--count == 0) return;
      add(probabilities + tile_queries, values + panel_width);
      if (--count == 0) return;
      add(probabilities + 2 * tile_queries, values + 2 * panel_width);
      if (--count == 0) return;
      add(probabilities + 3 * tile_queries, values + 3 * panel_width);
      if (--count == 0) return;
      probabilities += 4 * tile_queries;
      simd::pin(probabilities);
      values += 4 * panel_width;
      simd::pin(values);
    }
  }
};

template <int Rows>
[[gnu::noinline]] void accumulate_group(const float* probabilities, const float* values, Index key_count,
                                        const float* correction, float* out, Index out_stride) noexcept {
  Sums<Rows> sums;
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r) {
    sums.value[r][0] = simd::splat(0.0F);
    sums.value[r][1] = simd::splat(0.0F);
  }
  if (key_count > 0) sums.add_keys(probabilities, values, key_count);
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r) {
    const Batch factor = simd::load_splat(correction + r);
    float* target = out + r * out_stride;
    simd::store(target, simd::madd(simd::load(target), factor, sums.value[r][0]));
    simd::store(target + simd::lanes, simd::madd(simd::load(target + simd::lanes), factor, sums.value[r][1]));
  }
}

}  // namespace

void accumulate_values(const float* probabilities, Index row_count, const float* value_panel, Index key_count,
                       const float* correction, float* out, Index out_stride) noexcept {
  if constexpr (simd::madd_is_one_instruction) {
    if (row_count == wide_rows) {
      return accumulate_group<wide_rows>(probabilities, value_panel, key_count, correction, out, out_stride);
    }
    if (row_count > register_rows) {
      accumulate_group<register_rows>(probabilities, value_panel, key_count, correction, out, out_stride);
      probabilities += register_rows;
      correction += register_rows;
      out += register_rows * out_stride;
      row_count -= register_rows;
    }
  }
  switch (row_count) {
    case 4: return accumulate_group<4>(probabilities, value_panel, key_count, correction, out, out_stride);
    case 3: return accumulate_group<3>(probabilities, value_panel, key_count, correction, out, out_stride);
    case 2: return accumulate_group<2>(probabilities, value_panel, key_count, correction, out, out_stride);
    case 1: return accumulate_group<1>(probabilities, value_panel, key_count, correction, out, out_stride);
    default: return;
  }
}

void accumulate_visible_values(const float* probabilities, const std::uint8_t* visible, const float* value_panel,
                               Index key_count, float correction, float* out) noexcept {
  Batch sum0 = simd::splat(0.0F);
  Batch sum1 = simd::splat(0.0F);
  for (Index key = 0; key < key_count; ++key) {
    if (visible[key] == 0) continue;
    const Batch weight = simd::load_splat(probabilities + key * tile_queries);
    sum0 = simd::madd(weight, simd::load(value_panel + key * panel_width), sum0);
    sum1 = simd::madd(weight, simd::load(value_panel + key * panel_width + simd::lanes), sum1);
  }
  const Batch factor = simd::splat(correction);
  simd::store(out, simd::madd(simd::load(out), factor, sum0));
  simd::store(out + simd::lanes, simd::madd(simd::load(out + simd::lanes), factor, sum1));
}

}  // namespace lookback::kernels
