#include "kernels/weight_panel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/half.hpp"
#include "kernels/int8_tile.hpp"

namespace lookback::kernels {
namespace {

template <typename T, typename Narrow>
[[gnu::always_inline]] inline void store_lanes(const float* span, Index length, Index from, Index to, T* panel,
                                               Narrow narrow) noexcept {
  for (Index d = 0; d < length; ++d) {
    for (Index lane = from; lane < to; ++lane) panel[d * panel_width + lane] = narrow(span[d * panel_width + lane]);
  }
}

/// Lanes are read from batches of consecutive numbers: gathered first, then widened at once.
template <typename Widen>
[[gnu::always_inline]] inline void read_lane(const std::uint16_t* panel, Index lane, Index length, float* row,
                                             Widen widen) noexcept {
  constexpr Index step = 64;
  std::uint16_t gathered[step];
  for (Index first = 0; first < length; first += step) {
    const Index count = std::min(step, length - first);
    for (Index d = 0; d < count; ++d) gathered[d] = panel[(first + d) * panel_width + lane];
    widen(gathered, count, row + first);
  }
}

Index pair_at(Index d, Index lane) noexcept { return (d / 2 * panel_width + lane) * 2 + d % 2; }

constexpr Index scale_bytes = panel_width * static_cast<Index>(sizeof(float));

}  // namespace

[[gnu::noinline]] void store_lanes_f32(const float* span, Index length, Index from, Index to, float* panel) noexcept {
  if (from == 0 && to == panel_width)
    std::copy_n(span, length * panel_width, panel);
  else
    store_lanes(span, length, from, to, panel, [](float value) { return value; });
}

[[gnu::noinline]] void store_lanes_f16(const float* span, Index length, Index from, Index to,
                                       std::uint16_t* panel) noexcept {
  store_lanes(span, length, from, to, panel, narrow_to_f16);
}

[[gnu::noinline]] void store_lanes_bf16(const float* span, Index length, Index from, Index to,
                                        std::uint16_t* panel) noexcept {
  store_lanes(span, length, from, to, panel, narrow_to_bf16);
}

[[gnu::noinline]] void store_lanes_int8(const float* span, Index length, Index from, Index to,
                                        std::int8_t* group) noexcept {
  auto* scales = reinterpret_cast<float*>(group);
  std::int8_t* pairs = group + scale_bytes;
  for (Index lane = from; lane < to; ++lane) {
    float largest = 0.0F;
    float witness = 0.0F;  // NaN as soon as a value is not finite
    for (Index d = 0; d < length; ++d) {
      largest = std::max(largest, std::fabs(span[d * panel_width + lane]));
      witness += span[d * panel_width + lane] * 0.0F;
    }
    const float scale = largest / 127.0F;
    const bool usable = witness == 0.0F && scale >= std::numeric_limits<float>::min();
    scales[lane] = witness != 0.0F ? std::numeric_limits<float>::quiet_NaN() : usable ? scale : 0.0F;
    for (Index d = 0; d < padded_pairs(length); ++d) {
      const float value = usable && d < length ? span[d * panel_width + lane] / scale : 0.0F;
      pairs[pair_at(d, lane)] = static_cast<std::int8_t>(std::lrint(std::clamp(value, -127.0F, 127.0F)));
    }
  }
}

[[gnu::noinline]] void read_lane_f32(const float* panel, Index lane, Index length, float* row) noexcept {
  for (Index d = 0; d < length; ++d) row[d] = panel[d * panel_width + lane];
}

[[gnu::noinline]] void read_lane_f16(const std::uint16_t* panel, Index lane, Index length, float* row) noexcept {
  read_lane(panel, lane, length, row, widen_f16);
}

[[gnu::noinline]] void read_lane_bf16(const std::uint16_t* panel, Index lane, Index length, float* row) noexcept {
  read_lane(panel, lane, length, row, widen_bf16);
}

[[gnu::noinline]] void read_lane_int8(const std::int8_t* group, Index lane, Index length, float* row) noexcept {
  const float scale = reinterpret_cast<const float*>(group)[lane];
  const std::int8_t* pairs = group + scale_bytes;
  for (Index d = 0; d < length; ++d) row[d] = static_cast<float>(pairs[pair_at(d, lane)]) * scale;
}

}  // namespace lookback::kernels
