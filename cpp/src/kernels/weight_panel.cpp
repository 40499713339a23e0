#include "kernels/weight_panel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/int8_tile.hpp"

namespace lookback::kernels {
namespace {

template <typename T>
[[gnu::always_inline]] inline void store(const T* span, Index length, Index from, Index to, T* panel) noexcept {
  if (from == 0 && to == panel_width) return static_cast<void>(std::copy_n(span, length * panel_width, panel));
#pragma clang loop unroll(disable) vectorize(disable)
  for (Index d = 0; d < length * panel_width; d += panel_width) {
#pragma clang loop unroll(disable) vectorize(disable)
    for (Index lane = from; lane < to; ++lane) panel[d + lane] = span[d + lane];
  }
}

template <typename T>
[[gnu::always_inline]] inline void read(const T* panel, Index lane, Index length, T* row) noexcept {
#pragma clang loop unroll(disable) vectorize(disable)
  for (Index d = 0; d < length; ++d) row[d] = panel[d * panel_width + lane];
}

Index pair_at(Index d, Index lane) noexcept { return (d / 2 * panel_width + lane) * 2 + d % 2; }

constexpr Index scale_bytes = panel_width * static_cast<Index>(sizeof(float));

}  // namespace

[[gnu::noinline]] void read_ahead(const float* panel, Index length) noexcept {
  constexpr Index line = 64 / Index{sizeof(float)};
  constexpr Index step = 4 * line;
  float sum[4] = {};
#pragma clang loop unroll(disable) vectorize(disable)
  for (Index i = 0; i + step <= length * panel_width; i += step) {
#pragma clang loop unroll(full)
    for (int n = 0; n < 4; ++n) sum[n] += panel[i + n * line];
  }
  const float* used = sum;
  asm volatile("" : : "r"(used) : "memory");  // or the loop would be left out
}

[[gnu::noinline]] void store_lanes(const float* span, Index length, Index from, Index to, float* panel) noexcept {
  store(span, length, from, to, panel);
}

[[gnu::noinline]] void store_lanes(const std::uint16_t* span, Index length, Index from, Index to,
                                   std::uint16_t* panel) noexcept {
  store(span, length, from, to, panel);
}

[[gnu::noinline]] void store_lanes_int8(const float* span, Index length, Index from, Index to,
                                        std::int8_t* group) noexcept {
  auto* scales = reinterpret_cast<float*>(group);
  std::int8_t* pairs = group + scale_bytes;
  for (Index lane = from; lane < to; ++lane) {
    float largest = 0.0F;
    float witness = 0.0F;  // NaN as soon as a value is not finite
#pragma clang loop unroll(disable) vectorize(disable)
    for (Index d = 0; d < length; ++d) {
      largest = std::max(largest, std::fabs(span[d * panel_width + lane]));
      witness += span[d * panel_width + lane] * 0.0F;
    }
    const float scale = largest / 127.0F;
    const bool usable = witness == 0.0F && scale >= std::numeric_limits<float>::min();
    scales[lane] = witness != 0.0F ? std::numeric_limits<float>::quiet_NaN() : usable ? scale : 0.0F;
#pragma clang loop unroll(disable) vectorize(disable)
    for (Index d = 0; d < padded_pairs(length); ++d) {
      const float value = usable && d < length ? span[d * panel_width + lane] / scale : 0.0F;
      pairs[pair_at(d, lane)] = static_cast<std::int8_t>(std::lrint(std::clamp(value, -127.0F, 127.0F)));
    }
  }
}

[[gnu::noinline]] void add_to_lane(const float* row, Index lane, Index length, float factor, float* panel) noexcept {
#pragma clang loop unroll(disable) vectorize(disable)
  for (Index d = 0; d < length; ++d) panel[d * panel_width + lane] += row[d] * factor;
}

[[gnu::noinline]] void read_lane(const float* panel, Index lane, Index length, float* row) noexcept {
  read(panel, lane, length, row);
}

[[gnu::noinline]] void read_lane(const std::uint16_t* panel, Index lane, Index length, std::uint16_t* row) noexcept {
  read(panel, lane, length, row);
}

[[gnu::noinline]] void read_lane_int8(const std::int8_t* group, Index lane, Index length, float* row) noexcept {
  const float scale = reinterpret_cast<const float*>(group)[lane];
  const std::int8_t* pairs = group + scale_bytes;
#pragma clang loop unroll(disable) vectorize(disable)
  for (Index d = 0; d < length; ++d) row[d] = static_cast<float>(pairs[pair_at(d, lane)]) * scale;
}

}  // namespace lookback::kernels
