#pragma once

// Counter-based dropout: whether an element is kept is a function of its coordinates and the seed, so no order of computing changes it. A
// row of elements (a query of a head) has a key of 64 bits, from chained finalisers of SplitMix64 (Steele, Lea and Flood 2014, "Fast
// splittable pseudorandom number generators"); element j hashes first + j · φ (a Weyl sequence) with the two-multiplication permutation
// `lowbias32` (Wellons 2018, hash-prospector, bias 0.17), whose middle the other half of the key enters, so that rows whose first halves
// are near are not shifts of each other. An element is dropped if the hash is below p · 2³². 13 instructions per batch.

#include <cstdint>

#include "kernels/tile.hpp"

namespace lookback::kernels {

/// Of one row of elements.
struct DropoutKey {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};

/// Equal coordinates give equal keys; `position` may be negative.
[[nodiscard]] DropoutKey dropout_key(std::uint64_t seed, Index batch, Index head, std::int64_t position) noexcept;

struct DropoutRule {
  std::uint32_t threshold;  ///< dropped below it
  float factor;             ///< of what is kept

  /// 0 ≤ p < 1.
  explicit DropoutRule(float p) noexcept
      : threshold(static_cast<std::uint32_t>(p * 0x1p32F)), factor(1.0F / (1.0F - p)) {}
};

/// The hash of element `index` of a row.
[[nodiscard]] inline std::uint32_t dropout_hash(DropoutKey key, std::uint32_t index) noexcept {
  std::uint32_t x = key.first + index * 0x9e3779b9U;
  x = (x ^ x >> 16) * 0x7feb352dU ^ key.second;
  x = (x ^ x >> 15) * 0x846ca68bU;
  return x ^ x >> 16;
}

/// The keys of a panel's queries.
struct DropoutLanes {
  std::uint32_t first[panel_width];
  std::uint32_t second[panel_width];
};

/// Which elements are kept, key after key, of a batch of queries.
class DropoutStream {
public:
  DropoutStream(const DropoutLanes& lanes, Index first_lane, Index first_key, DropoutRule rule) noexcept
      : counter_(simd::load_bits(lanes.first + first_lane) +
                 simd::BatchBits(static_cast<std::uint32_t>(first_key) * 0x9e3779b9U)),
        second_(simd::load_bits(lanes.second + first_lane)),
        threshold_(rule.threshold) {}

  [[nodiscard]] simd::BatchBool next() noexcept {
    simd::BatchBits x = counter_;
    counter_ += simd::BatchBits(0x9e3779b9U);
    x = (x ^ (x >> 16)) * simd::BatchBits(0x7feb352dU) ^ second_;
    x = (x ^ (x >> 15)) * simd::BatchBits(0x846ca68bU);
    x = x ^ (x >> 16);
    return simd::at_least(x, threshold_);
  }

private:
  simd::BatchBits counter_;
  simd::BatchBits second_;
  simd::BatchBits threshold_;
};

/// block[key][lane] = kept ? block[key][lane] · factor : 0, for a panel of queries of a block [key][tile_queries].
void drop_weights(float* block, Index key_count, Index first_key, const DropoutLanes& lanes, DropoutRule rule) noexcept;

/// row[i] = kept ? row[i] · factor : 0, i the element's index.
void drop_row(float* row, Index count, DropoutKey key, DropoutRule rule) noexcept;

}  // namespace lookback::kernels
