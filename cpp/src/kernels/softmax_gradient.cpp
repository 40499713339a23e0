#include "kernels/softmax_gradient.hpp"

#include <limits>

#include "kernels/exponential.hpp"

namespace lookback::kernels {

using simd::Batch;

namespace {
constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
}

[[gnu::noinline]] void softmax_gradients(float* scores, float* gradients, Index key_count, const float* log_sum_exp,
                                         const float* delta) noexcept {
  const Exponential exponential(exponential_coefficients());
  const Batch zero = simd::splat(0.0F);
  const Batch hidden = simd::splat(minus_infinity);
  for (Index half = 0; half < panel_width; half += simd::lanes) {
    const Batch subtrahend = simd::load(log_sum_exp + half);
    const Batch mean = simd::load(delta + half);
    for (Index at = half; at < key_count * tile_queries + half; at += tile_queries) {
      const Batch score = simd::load(scores + at);
      // A row whose log_sum_exp is NaN must not reach keys that it does not see.
      const Batch weight = simd::select(score == hidden, zero, exponential(score - subtrahend));
      simd::store(scores + at, weight);
      const Batch gradient = weight * (simd::load(gradients + at) - mean);
      simd::store(gradients + at, simd::select(weight == zero, zero, gradient));
    }
  }
}

[[gnu::noinline]] void softmax_gradients_dropped(float* scores, float* gradients, Index key_count, Index first_key,
                                                 const float* log_sum_exp, const float* delta,
                                                 const DropoutLanes& lanes, DropoutRule rule) noexcept {
  const Exponential exponential(exponential_coefficients());
  const Batch zero = simd::splat(0.0F);
  const Batch hidden = simd::splat(minus_infinity);
  const Batch factor = simd::splat(rule.factor);
  for (Index half = 0; half < panel_width; half += simd::lanes) {
    const Batch subtrahend = simd::load(log_sum_exp + half);
    const Batch mean = simd::load(delta + half);
    DropoutStream stream(lanes, half, first_key, rule);
    for (Index at = half; at < key_count * tile_queries + half; at += tile_queries) {
      const simd::BatchBool kept = stream.next();
      const Batch score = simd::load(scores + at);
      // A row whose log_sum_exp is NaN must not reach keys that it does not see.
      const Batch weight = simd::select(score == hidden, zero, exponential(score - subtrahend));
      const Batch product = simd::select(kept, simd::load(gradients + at) * factor, zero);
      simd::store(gradients + at, simd::select(weight == zero, zero, weight * (product - mean)));
      simd::store(scores + at, simd::select(kept, weight * factor, zero));
    }
  }
}

[[gnu::noinline]] void uncap_gradients(float* gradients, const float* capped, Index key_count, float cap) noexcept {
  const Batch zero = simd::splat(0.0F);
  const Batch one = simd::splat(1.0F);
  const Batch limit = simd::splat(cap);
  for (Index half = 0; half < panel_width; half += simd::lanes) {
    for (Index at = half; at < key_count * tile_queries + half; at += tile_queries) {
      const Batch gradient = simd::load(gradients + at);
      const Batch share = simd::load(capped + at) / limit;
      simd::store(gradients + at, simd::select(gradient == zero, zero, gradient * (one - share * share)));
    }
  }
}

}  // namespace lookback::kernels
