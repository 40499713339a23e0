#include "kernels/adamw.hpp"

#include <cmath>

namespace lookback::kernels {

using simd::Batch;
using simd::lanes;

[[gnu::noinline]] void adamw_row(const AdamWFactors& factors, Index count, float* weights, float* gradients,
                                 float* first_moments, float* second_moments) noexcept {
  const Batch scale = simd::splat(factors.gradient);
  const Batch first = simd::splat(factors.first);
  const Batch first_rest = simd::splat(factors.first_rest);
  const Batch second = simd::splat(factors.second);
  const Batch second_rest = simd::splat(factors.second_rest);
  const Batch kept = simd::splat(factors.kept);
  const Batch rate = simd::splat(factors.rate);
  const Batch correction = simd::splat(factors.inverse_correction);
  const Batch epsilon = simd::splat(factors.epsilon);
  Index i = 0;
  for (; i + lanes <= count; i += lanes) {
    const Batch g = simd::load(gradients + i) * scale;
    const Batch m = first * simd::load(first_moments + i) + first_rest * g;
    const Batch v = second * simd::load(second_moments + i) + second_rest * g * g;
    const Batch step = rate * m / (simd::square_root(v * correction) + epsilon);
    simd::store(first_moments + i, m);
    simd::store(second_moments + i, v);
    simd::store(weights + i, kept * simd::load(weights + i) - step);
    simd::store(gradients + i, simd::splat(0.0F));
  }
  for (; i < count; ++i) {
    const float g = gradients[i] * factors.gradient;
    const float m = factors.first * first_moments[i] + factors.first_rest * g;
    const float v = factors.second * second_moments[i] + factors.second_rest * g * g;
    first_moments[i] = m;
    second_moments[i] = v;
    weights[i] =
        factors.kept * weights[i] - factors.rate * m / (std::sqrt(v * factors.inverse_correction) + factors.epsilon);
    gradients[i] = 0.0F;
  }
}

[[gnu::noinline]] float sum_of_squares(const float* values, Index count) noexcept {
  constexpr Index chains = 4;
  Batch sums[chains] = {simd::splat(0.0F), simd::splat(0.0F), simd::splat(0.0F), simd::splat(0.0F)};
  Index i = 0;
  for (; i + chains * lanes <= count; i += chains * lanes) {
    for (Index chain = 0; chain < chains; ++chain) {
      const Batch value = simd::load(values + i + chain * lanes);
      sums[chain] = simd::madd(value, value, sums[chain]);
    }
  }
  float sum = simd::sum_of_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; i < count; ++i) sum += values[i] * values[i];
  return sum;
}

}  // namespace lookback::kernels
