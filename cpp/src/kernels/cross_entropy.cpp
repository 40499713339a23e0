#include "kernels/cross_entropy.hpp"

#include <algorithm>
#include <limits>

#include "kernels/exponential.hpp"

namespace lookback::kernels {

using simd::Batch;
using simd::lanes;

namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

/// The last, incomplete batch of a row.
struct Rest {
  float values[lanes];

  Rest(const float* row, Index count) noexcept {
    std::fill_n(values, lanes, minus_infinity);
    std::copy_n(row + count / lanes * lanes, count % lanes, values);
  }
  [[nodiscard]] Batch load() const noexcept { return simd::load(values); }
};

float largest_lane(Batch value) noexcept {
  float values[lanes];
  simd::store(values, value);
  return *std::max_element(values, values + lanes);
}

}  // namespace

[[gnu::noinline]] LogitSums sum_logits(const float* logits, Index count) noexcept {
  const Rest rest(logits, count);
  const Index whole = count / lanes * lanes;
  Batch maxima = simd::max_keeping(simd::splat(minus_infinity), rest.load());
  for (Index i = 0; i < whole; i += lanes) maxima = simd::max_keeping(maxima, simd::load(logits + i));
  const float maximum = largest_lane(maxima);
  const Batch shift = simd::splat(maximum);
  const Exponential exponential(exponential_coefficients());
  Batch sum = exponential(rest.load() - shift);
  for (Index i = 0; i < whole; i += lanes) sum += exponential(simd::load(logits + i) - shift);
  return {maximum, simd::sum_of_lanes(sum)};
}

[[gnu::noinline]] void logits_to_gradient(float* logits, Index count, LogitSums sums, float scale,
                                          float inverse_cap) noexcept {
  const Exponential exponential(exponential_coefficients());
  const Batch shift = simd::splat(sums.maximum);
  const Batch factor = simd::splat(scale / sums.sum);
  const Batch inverse = simd::splat(inverse_cap);
  const auto gradient = [&](Batch logit) {
    const Batch share = logit * inverse;
    return exponential(logit - shift) * factor * (exponential.one - share * share);
  };
  Rest rest(logits, count);
  const Index whole = count / lanes * lanes;
  for (Index i = 0; i < whole; i += lanes) simd::store(logits + i, gradient(simd::load(logits + i)));
  simd::store(rest.values, gradient(rest.load()));
  std::copy_n(rest.values, count - whole, logits + whole);
}

}  // namespace lookback::kernels
