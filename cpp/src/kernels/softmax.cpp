#include "kernels/softmax.hpp"

#include <limits>

#include "kernels/exponential.hpp"

namespace lookback::kernels {

using simd::Batch;

namespace {
// Not const: a constant would be folded into the code, and rebuilt there at each use.
ExponentialCoefficients coefficients;

/// Keys between the two halves of the exponential: few enough that what one leaves for the other stays in the first level of the cache.
constexpr Index chunk_keys = 32;

/// The first half, for a batch of queries and at most chunk_keys keys.
[[gnu::always_inline]] inline void reduce_scores(float* score, Index key_count, Batch subtrahend,
                                                 const Exponential& exponential, float* shifted) noexcept {
#pragma clang loop unroll(disable)
  for (Index key = 0; key < key_count; ++key, score += tile_queries, shifted += simd::lanes) {
    const Exponential::Reduced reduced = exponential.reduce(simd::load(score) - subtrahend);
    simd::store(score, reduced.rest);
    simd::store(shifted, reduced.shifted);
  }
}

/// The second half. Returns `sum` with what the scores have become added to it.
[[gnu::always_inline]] inline Batch raise_scores(float* score, Index key_count, const Exponential& exponential,
                                                 const float* shifted, Batch sum) noexcept {
#pragma clang loop unroll(disable)
  for (Index key = 0; key < key_count; ++key, score += tile_queries, shifted += simd::lanes) {
    const Batch probability = exponential.raise({simd::load(score), simd::load(shifted)});
    sum += probability;
    simd::store(score, probability);
  }
  return sum;
}

}  // namespace

[[gnu::noinline]] const ExponentialCoefficients* exponential_coefficients() noexcept {
  const ExponentialCoefficients* pointer = &coefficients;
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

[[gnu::noinline]] void join_maximum(const float* scores, Index key_count, float* maximum) noexcept {
  Batch m0 = simd::load(maximum);
  Batch m1 = simd::load(maximum + simd::lanes);
  for (Index key = 0; key < key_count; ++key) {
    m0 = simd::max_keeping(m0, simd::load(scores + key * tile_queries));
    m1 = simd::max_keeping(m1, simd::load(scores + key * tile_queries + simd::lanes));
  }
  simd::store(maximum, m0);
  simd::store(maximum + simd::lanes, m1);
}

[[gnu::noinline]] void exponentiate(float* scores, Index key_count, const float* block_maximum, float* row_maximum,
                                    float* row_sum, float* correction) noexcept {
  const Exponential exponential(exponential_coefficients());
  const Batch lowest = simd::splat(-std::numeric_limits<float>::infinity());
  alignas(64) float shifted[chunk_keys * simd::lanes];
  for (Index lane = 0; lane < panel_width; lane += simd::lanes) {
    const Batch old_maximum = simd::load(row_maximum + lane);
    const Batch maximum = simd::max_keeping(old_maximum, simd::load(block_maximum + lane));
    // −∞ − −∞ would be NaN: rows that have seen nothing yet subtract 0 instead.
    const Batch subtrahend = simd::select(maximum == lowest, simd::splat(0.0F), maximum);
    const Batch factor = exponential(old_maximum - subtrahend);
    Batch sum = simd::splat(0.0F);
    // In two halves: a chain of all instructions is so long that the processor's queues fill before it can begin enough of them.
    for (Index done = 0; done < key_count; done += chunk_keys) {
      const Index count = key_count - done < chunk_keys ? key_count - done : chunk_keys;
      float* score = scores + done * tile_queries + lane;
      reduce_scores(score, count, subtrahend, exponential, shifted);
      sum = raise_scores(score, count, exponential, shifted, sum);
    }
    simd::store(row_sum + lane, simd::madd(simd::load(row_sum + lane), factor, sum));
    simd::store(row_maximum + lane, maximum);
    simd::store(correction + lane, factor);
  }
}

[[gnu::noinline]] void fill_zero(float* probabilities, Index key_count) noexcept {
  for (Index key = 0; key < key_count; ++key, probabilities += tile_queries) {
    simd::store(probabilities, simd::splat(0.0F));
    simd::store(probabilities + simd::lanes, simd::splat(0.0F));
  }
}

}  // namespace lookback::kernels
