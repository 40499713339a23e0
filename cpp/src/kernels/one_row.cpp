#include "kernels/one_row.hpp"

#include <algorithm>

namespace lookback::kernels {
namespace {

using simd::Batch;

/// As in row_tile.cpp, so that a row has the same bits alone.
constexpr Index part_length = 32;

struct F32 {
  using Element = float;
  [[nodiscard, gnu::always_inline]] Batch load(const float* source) const noexcept { return simd::load(source); }
};
struct Bf16 {
  using Element = std::uint16_t;
  [[nodiscard, gnu::always_inline]] Batch load(const std::uint16_t* source) const noexcept {
    return simd::load_bf16(source);
  }
};

template <typename Type, int Panels>
struct Sums {
  using Element = typename Type::Element;
  Batch value[Panels][2];
  Type type;

  /// One d: `row` and `panel` stand `offset` before it.
  [[gnu::always_inline]] void multiply(const float* row, const Element* const* panel, int offset) noexcept {
    const Batch a = simd::load_splat(row + offset);
#pragma clang loop unroll(full)
    for (int p = 0; p < Panels; ++p) {
      const Element* b = panel[p] + offset * panel_width;
      value[p][0] = simd::madd(a, type.load(b), value[p][0]);
      value[p][1] = simd::madd(a, type.load(b + simd::lanes), value[p][1]);
    }
  }
};

/// out = base + (start + the products of d in [0, count)), at least one. A way out after each d, as in row_tile.cpp.
template <typename Type, int Panels>
[[gnu::noinline]] void multiply_part(const float* row, Index count, const typename Type::Element* const* panels,
                                     const float* start, const float* base, float* out) noexcept {
  const typename Type::Element* panel[Panels];
  Sums<Type, Panels> sums;
#pragma clang loop unroll(full)
  for (int p = 0; p < Panels; ++p) {
    panel[p] = panels[p];
    sums.value[p][0] = simd::load(start + p * panel_width);
    sums.value[p][1] = simd::load(start + p * panel_width + simd::lanes);
  }
#pragma clang loop unroll(disable)
  for (;;) {
    sums.multiply(row, panel, 0);
    if (--count == 0) break;
    sums.multiply(row, panel, 1);
    if (--count == 0) break;
    row += 2;
#pragma clang loop unroll(full)
    for (int p = 0; p < Panels; ++p) {
      panel[p] += 2 * panel_width;
      simd::pin(panel[p]);
    }
  }
#pragma clang loop unroll(full)
  for (int p = 0; p < Panels; ++p) {
    const Index at = p * panel_width;
    simd::store(out + at, simd::load(base + at) + sums.value[p][0]);
    simd::store(out + at + simd::lanes, simd::load(base + at + simd::lanes) + sums.value[p][1]);
  }
}

/// The first part begins with `initial` and is added to −0, which changes no bit; the others begin with 0 and are added to what is there.
template <typename Type, int Panels>
void multiply_panels(const float* row, Index depth, const typename Type::Element* panels, Index panel_count,
                     const float* initial, float* out) noexcept {
  constexpr Index width = Panels * panel_width;
  static constexpr float zeros[width] = {};
  float minus_zeros[width];
  std::fill_n(minus_zeros, width, -0.0F);
  const float* start = initial;
  const float* base = minus_zeros;
  for (Index done = 0; done < depth; done += part_length) {
    const typename Type::Element* panel[Panels];
#pragma clang loop unroll(disable)
    for (Index p = 0; p < Panels; ++p) {  // the first one stands in for those that are not there
      panel[p] = panels + (p < panel_count ? p * depth : Index{0}) * panel_width + done * panel_width;
    }
    const Index count = std::min(part_length, depth - done);
    multiply_part<Type, Panels>(row + done, count, panel, start, base, out);
    start = zeros;
    base = out;
  }
}

template <typename Type>
void multiply_row(const float* row, Index depth, const typename Type::Element* panels, Index panel_count,
                  const float* initial, float* out) noexcept {
  const auto multiply = panel_count == 1 ? multiply_panels<Type, 1> : multiply_panels<Type, side_by_side>;
  multiply(row, depth, panels, panel_count, initial, out);
}

}  // namespace

void multiply_row_f32(const float* row, Index depth, const float* panels, Index panel_count, const float* initial,
                      float* out) noexcept {
  multiply_row<F32>(row, depth, panels, panel_count, initial, out);
}

void multiply_row_bf16(const float* row, Index depth, const std::uint16_t* panels, Index panel_count,
                       const float* initial, float* out) noexcept {
  multiply_row<Bf16>(row, depth, panels, panel_count, initial, out);
}

}  // namespace lookback::kernels
