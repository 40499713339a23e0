#include "kernels/row_softmax.hpp"

#include <limits>

#include "kernels/exponential.hpp"

namespace lookback::kernels {

using simd::Batch;

namespace {
constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
}

[[gnu::noinline]] void cap_row(float* scores, Index key_count, float cap) noexcept {
  const Batch limit = simd::splat(cap);
  Index key = 0;
  for (; key + simd::lanes <= key_count; key += simd::lanes) {
    simd::store(scores + key, simd::tanh(simd::load(scores + key) / limit) * limit);
  }
  for (; key < key_count; ++key) scores[key] = (simd::tanh(simd::splat(scores[key]) / limit) * limit).get(0);
}

[[gnu::noinline]] void add_bias_row(float* scores, Index key_count, const float* bias, Index key_stride) noexcept {
  for (Index key = 0; key < key_count; ++key) scores[key] += bias[key * key_stride];
}

[[gnu::noinline]] void add_distance_penalty_row(float* scores, Index key_count, std::int32_t first_key,
                                                std::int32_t position, float slope) noexcept {
  const std::int64_t ahead = static_cast<std::int64_t>(position) - first_key;
  for (Index key = 0; key < key_count; ++key) {
    const std::int64_t distance = ahead < key ? key - ahead : ahead - key;
    scores[key] -= slope * static_cast<float>(distance);
  }
}

[[gnu::noinline]] void hide_row(float* scores, Index key_count, const std::uint8_t* visible) noexcept {
  for (Index key = 0; key < key_count; ++key) scores[key] = visible[key] != 0 ? scores[key] : minus_infinity;
}

[[gnu::noinline]] float exponentiate_row(float* scores, Index batch_count, float* maximum, float* sum) noexcept {
  const Exponential exponential(exponential_coefficients());
  Batch largest = simd::splat(minus_infinity);
  for (Index batch = 0; batch < batch_count; ++batch) {
    largest = simd::max_keeping(largest, simd::load(scores + batch * simd::lanes));
  }
  float new_maximum = *maximum;
  for (Index lane = 0; lane < simd::lanes; ++lane) {
    const float value = largest.get(static_cast<std::size_t>(lane));
    new_maximum = new_maximum < value ? value : new_maximum;
  }
  // −∞ − −∞ would be NaN: a row that has seen nothing yet subtracts 0 instead.
  const Batch subtrahend = simd::splat(new_maximum == minus_infinity ? 0.0F : new_maximum);
  const float correction = exponential(simd::splat(*maximum) - subtrahend).get(0);
  Batch total = simd::splat(0.0F);
  for (Index batch = 0; batch < batch_count; ++batch) {
    const Batch probability = exponential(simd::load(scores + batch * simd::lanes) - subtrahend);
    total += probability;
    simd::store(scores + batch * simd::lanes, probability);
  }
  *sum = *sum * correction + simd::sum_of_lanes(total);
  *maximum = new_maximum;
  return correction;
}

}  // namespace lookback::kernels
