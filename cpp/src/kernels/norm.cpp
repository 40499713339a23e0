#include "kernels/norm.hpp"

#include <cmath>

namespace lookback::kernels {

using simd::Batch;
using simd::lanes;

namespace {

constexpr Index chains = 4;

/// Σ term(x) of a row.
template <typename BatchTerm, typename Term>
[[gnu::always_inline]] inline float sum_row(const float* row, Index width, BatchTerm batch_term, Term term) noexcept {
  Batch sums[chains] = {simd::splat(0.0F), simd::splat(0.0F), simd::splat(0.0F), simd::splat(0.0F)};
  Index i = 0;
  for (; i + chains * lanes <= width; i += chains * lanes) {
    for (Index chain = 0; chain < chains; ++chain) sums[chain] += batch_term(simd::load(row + i + chain * lanes));
  }
  for (Index chain = 0; i + lanes <= width; i += lanes, ++chain) sums[chain] += batch_term(simd::load(row + i));
  float sum = simd::sum_of_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; i < width; ++i) sum += term(row[i]);
  return sum;
}

float inverse_root(float sum, Index width, float epsilon) noexcept {
  const double mean = static_cast<double>(sum) / static_cast<double>(width);
  return static_cast<float>(1.0 / std::sqrt(mean + static_cast<double>(epsilon)));
}

}  // namespace

[[gnu::noinline]] NormStatistics layer_norm_statistics(const float* row, Index width, float epsilon) noexcept {
  const float sum = sum_row(row, width, [](Batch x) { return x; }, [](float x) { return x; });
  const auto mean = static_cast<float>(static_cast<double>(sum) / static_cast<double>(width));
  const Batch means = simd::splat(mean);
  const float squares = sum_row(
      row, width,
      [means](Batch x) {
        const Batch deviation = x - means;
        return deviation * deviation;
      },
      [mean](float x) { return (x - mean) * (x - mean); });
  return {mean, inverse_root(squares, width, epsilon)};
}

[[gnu::noinline]] NormStatistics rms_norm_statistics(const float* row, Index width, float epsilon) noexcept {
  const float squares = sum_row(row, width, [](Batch x) { return x * x; }, [](float x) { return x * x; });
  return {0.0F, inverse_root(squares, width, epsilon)};
}

[[gnu::noinline]] void normalise_row(const float* row, Index width, NormStatistics statistics, const float* weight,
                                     const float* bias, float* output) noexcept {
  const Batch mean = simd::splat(statistics.mean);
  const Batch factor = simd::splat(statistics.factor);
  Index i = 0;
  for (; i + lanes <= width; i += lanes) {
    Batch value = (simd::load(row + i) - mean) * factor;
    if (weight != nullptr) value = value * simd::load(weight + i);
    if (bias != nullptr) value = value + simd::load(bias + i);
    simd::store(output + i, value);
  }
  for (; i < width; ++i) {
    float value = (row[i] - statistics.mean) * statistics.factor;
    if (weight != nullptr) value *= weight[i];
    if (bias != nullptr) value += bias[i];
    output[i] = value;
  }
}

[[gnu::noinline]] void add_row(const float* addend, Index count, float* row) noexcept {
  Index i = 0;
  for (; i + lanes <= count; i += lanes) simd::store(row + i, simd::load(row + i) + simd::load(addend + i));
  for (; i < count; ++i) row[i] += addend[i];
}

}  // namespace lookback::kernels
