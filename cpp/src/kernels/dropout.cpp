#include "kernels/dropout.hpp"

namespace lookback::kernels {
namespace {

using simd::Batch;

/// The finaliser of SplitMix64.
std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

std::uint64_t chain(std::uint64_t state, std::int64_t word) noexcept {
  return mix((state + 0x9e3779b97f4a7c15U) ^ static_cast<std::uint64_t>(word));
}

}  // namespace

DropoutKey dropout_key(std::uint64_t seed, Index batch, Index head, std::int64_t position) noexcept {
  const std::uint64_t key = chain(chain(chain(mix(seed), batch), head), position);
  return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

[[gnu::noinline]] void drop_weights(float* block, Index key_count, Index first_key, const DropoutLanes& lanes,
                                    DropoutRule rule) noexcept {
  const Batch factor = simd::splat(rule.factor);
  const Batch zero = simd::splat(0.0F);
  for (Index half = 0; half < panel_width; half += simd::lanes) {
    DropoutStream stream(lanes, half, first_key, rule);
    for (Index at = half; at < key_count * tile_queries + half; at += tile_queries) {
      simd::store(block + at, simd::select(stream.next(), simd::load(block + at) * factor, zero));
    }
  }
}

[[gnu::noinline]] void drop_row(float* row, Index count, DropoutKey key, DropoutRule rule) noexcept {
  const Batch factor = simd::splat(rule.factor);
  const Batch zero = simd::splat(0.0F);
  DropoutLanes lanes;
  for (Index lane = 0; lane < panel_width; ++lane) {
    lanes.first[lane] = key.first + static_cast<std::uint32_t>(lane) * 0x9e3779b9U;
    lanes.second[lane] = key.second;
  }
  Index i = 0;
  for (; i + simd::lanes <= count; i += simd::lanes) {
    DropoutStream stream(lanes, 0, i, rule);
    simd::store(row + i, simd::select(stream.next(), simd::load(row + i) * factor, zero));
  }
  for (; i < count; ++i) {
    row[i] = dropout_hash(key, static_cast<std::uint32_t>(i)) >= rule.threshold ? row[i] * rule.factor : 0.0F;
  }
}

}  // namespace lookback::kernels
