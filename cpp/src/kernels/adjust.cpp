#include "kernels/adjust.hpp"

#include <limits>

namespace lookback::kernels {

using simd::Batch;
using simd::BatchInt;

namespace {
constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
}

[[gnu::noinline]] void cap_scores(float* scores, Index key_count, float cap) noexcept {
  const Batch limit = simd::splat(cap);
  for (Index key = 0; key < key_count; ++key) {
    for (Index lane = 0; lane < panel_width; lane += simd::lanes) {
      float* score = scores + key * tile_queries + lane;
      simd::store(score, simd::tanh(simd::load(score) / limit) * limit);
    }
  }
}

[[gnu::noinline]] void add_bias(float* scores, Index key_count, const float* bias, Index query_stride, Index key_stride,
                                Index lane_count) noexcept {
  for (Index first_lane = 0; first_lane < lane_count; first_lane += simd::lanes) {
    const float* source = bias + first_lane * query_stride;
    float* target = scores + first_lane;
    Index key = 0;
    if (key_stride == 1 && first_lane + simd::lanes <= lane_count) {
      for (; key + simd::lanes <= key_count; key += simd::lanes) {
        Batch square[simd::lanes];
#pragma clang loop unroll(full)
        for (Index lane = 0; lane < simd::lanes; ++lane) square[lane] = simd::load(source + lane * query_stride + key);
        simd::transpose(square);
#pragma clang loop unroll(full)
        for (Index i = 0; i < simd::lanes; ++i) {
          float* score = target + (key + i) * tile_queries;
          simd::store(score, simd::load(score) + square[i]);
        }
      }
    }
    for (; key < key_count; ++key) {
      const Index lanes_here = lane_count - first_lane < simd::lanes ? lane_count - first_lane : simd::lanes;
      for (Index lane = 0; lane < lanes_here; ++lane) {
        target[key * tile_queries + lane] += source[lane * query_stride + key * key_stride];
      }
    }
  }
}

[[gnu::noinline]] void add_distance_penalty(float* scores, Index key_count, Index first_key,
                                            const std::int32_t* positions, float slope) noexcept {
  const Batch factor = simd::splat(-slope);
  for (Index lane = 0; lane < panel_width; lane += simd::lanes) {
    alignas(64) float position[simd::lanes];
    for (Index i = 0; i < simd::lanes; ++i) {
      position[i] = static_cast<float>(static_cast<std::int64_t>(positions[lane + i]) - first_key);
    }
    const Batch distance_of_first = simd::load(position);
    for (Index key = 0; key < key_count; ++key) {
      float* score = scores + key * tile_queries + lane;
      const Batch distance = simd::absolute(distance_of_first - simd::splat(static_cast<float>(key)));
      simd::store(score, simd::madd(distance, factor, simd::load(score)));
    }
  }
}

[[gnu::noinline]] void hide_outside_band(float* scores, Index key_count, Index first_key, const std::int32_t* from,
                                         const std::int32_t* to) noexcept {
  const Batch hidden = simd::splat(minus_infinity);
  for (Index lane = 0; lane < panel_width; lane += simd::lanes) {
    const BatchInt first = BatchInt::load_unaligned(from + lane);
    const BatchInt end = BatchInt::load_unaligned(to + lane);
    for (Index key = 0; key < key_count; ++key) {
      float* score = scores + key * tile_queries + lane;
      const BatchInt position(static_cast<std::int32_t>(first_key + key));
      simd::store(score, simd::select_int((first <= position) & (position < end), simd::load(score), hidden));
    }
  }
}

[[gnu::noinline]] void hide_masked(float* scores, Index key_count, const std::uint8_t* visible,
                                   Index visible_stride) noexcept {
  const Batch hidden = simd::splat(minus_infinity);
  Index first = 0;
  for (; first + simd::byte_columns <= key_count; first += simd::byte_columns) {
    float* block = scores + first * tile_queries;
    simd::visit_byte_columns(
        visible + first, visible_stride, [&](Index key, simd::BatchBool low, simd::BatchBool high) {
          float* score = block + key * tile_queries;
          simd::store(score, simd::select(low, simd::load(score), hidden));
          simd::store(score + simd::lanes, simd::select(high, simd::load(score + simd::lanes), hidden));
        });
  }
  for (Index key = first; key < key_count; ++key) {
    for (Index lane = 0; lane < panel_width; ++lane) {
      if (visible[lane * visible_stride + key] == 0) scores[key * tile_queries + lane] = minus_infinity;
    }
  }
}

}  // namespace lookback::kernels
