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

namespace {

struct GradientSums {
  Batch gradients = simd::splat(0.0F);
  Batch products = simd::splat(0.0F);
};

}  // namespace

[[gnu::noinline]] void normalise_row_backward(const float* row, const float* grad_output, Index width,
                                              NormStatistics statistics, bool centred, const float* weight,
                                              const NormGradients& gradients) noexcept {
  const Batch mean = simd::splat(statistics.mean);
  const Batch factor = simd::splat(statistics.factor);
  const Index whole = width / lanes * lanes;
  GradientSums sums[2];
  for (Index i = 0; i < whole; i += lanes) {
    const Batch grad = simd::load(grad_output + i);
    const Batch scaled = weight != nullptr ? grad * simd::load(weight + i) : grad;
    const Batch normalised = (simd::load(row + i) - mean) * factor;
    GradientSums& sum = sums[i / lanes % 2];
    sum.gradients += scaled;
    sum.products = simd::madd(scaled, normalised, sum.products);
    if (gradients.weight != nullptr) {
      simd::store(gradients.weight + i, simd::madd(grad, normalised, simd::load(gradients.weight + i)));
    }
    if (gradients.bias != nullptr) simd::store(gradients.bias + i, simd::load(gradients.bias + i) + grad);
  }
  float sum = simd::sum_of_lanes(sums[0].gradients + sums[1].gradients);
  float products = simd::sum_of_lanes(sums[0].products + sums[1].products);
  for (Index i = whole; i < width; ++i) {
    const float scaled = weight != nullptr ? grad_output[i] * weight[i] : grad_output[i];
    const float normalised = (row[i] - statistics.mean) * statistics.factor;
    sum += scaled;
    products += scaled * normalised;
    if (gradients.weight != nullptr) gradients.weight[i] += grad_output[i] * normalised;
    if (gradients.bias != nullptr) gradients.bias[i] += grad_output[i];
  }
  const float mean_gradient = centred ? sum / static_cast<float>(width) : 0.0F;
  const float mean_product = products / static_cast<float>(width);
  const Batch shift = simd::splat(mean_gradient);
  const Batch slope = simd::splat(mean_product);
  for (Index i = 0; i < whole; i += lanes) {
    const Batch grad = simd::load(grad_output + i);
    const Batch scaled = weight != nullptr ? grad * simd::load(weight + i) : grad;
    const Batch normalised = (simd::load(row + i) - mean) * factor;
    const Batch value = (scaled - shift - normalised * slope) * factor;
    simd::store(gradients.input + i, gradients.add_to_input ? simd::load(gradients.input + i) + value : value);
  }
  for (Index i = whole; i < width; ++i) {
    const float scaled = weight != nullptr ? grad_output[i] * weight[i] : grad_output[i];
    const float normalised = (row[i] - statistics.mean) * statistics.factor;
    const float value = (scaled - mean_gradient - normalised * mean_product) * statistics.factor;
    gradients.input[i] = gradients.add_to_input ? gradients.input[i] + value : value;
  }
}

[[gnu::noinline]] void add_row(const float* addend, Index count, float* row) noexcept {
  Index i = 0;
  for (; i + lanes <= count; i += lanes) simd::store(row + i, simd::load(row + i) + simd::load(addend + i));
  for (; i < count; ++i) row[i] += addend[i];
}

}  // namespace lookback::kernels
