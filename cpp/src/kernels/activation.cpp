#include "kernels/activation.hpp"

#include <algorithm>

#include "kernels/exponential.hpp"

namespace lookback::kernels {

using simd::Batch;
using simd::lanes;

namespace {

template <typename Function>
[[gnu::always_inline]] inline void map_row(const float* input, Index count, float* output, Function f) noexcept {
  Index i = 0;
  for (; i + lanes <= count; i += lanes) simd::store(output + i, f(simd::load(input + i)));
  if (i == count) return;
  float rest[lanes] = {};
  std::copy_n(input + i, count - i, rest);
  simd::store(rest, f(simd::load(rest)));
  std::copy_n(rest, count - i, output + i);
}

/// x · σ(z)
[[gnu::always_inline]] inline Batch times_sigmoid(Batch x, Batch z, const Exponential& exponential) noexcept {
  const Batch e = exponential(simd::splat(0.0F) - simd::absolute(z));
  return x * (simd::select(z < simd::splat(0.0F), e, exponential.one) / (exponential.one + e));
}

}  // namespace

[[gnu::noinline]] void silu_row(const float* input, Index count, float* output) noexcept {
  const Exponential exponential(exponential_coefficients());
  map_row(input, count, output, [&](Batch x) { return times_sigmoid(x, x, exponential); });
}

[[gnu::noinline]] void gelu_tanh_row(const float* input, Index count, float* output) noexcept {
  const Exponential exponential(exponential_coefficients());
  const Batch linear = simd::splat(1.59576912F);   // 2·√(2/π)
  const Batch cubic = simd::splat(0.0713548163F);  // 2·√(2/π) · 0.044715
  map_row(input, count, output,
          [&](Batch x) { return times_sigmoid(x, x * simd::madd(cubic, x * x, linear), exponential); });
}

[[gnu::noinline]] void gelu_erf_row(const float* input, Index count, float* output) noexcept {
  const Batch half = simd::splat(0.5F);
  const Batch inverse_root_2 = simd::splat(0.707106781F);
  map_row(input, count, output, [&](Batch x) { return simd::madd(half * x, simd::erf(x * inverse_root_2), half * x); });
}

[[gnu::noinline]] void multiply_row(const float* factors, Index count, float* row) noexcept {
  Index i = 0;
  for (; i + lanes <= count; i += lanes) simd::store(row + i, simd::load(row + i) * simd::load(factors + i));
  for (; i < count; ++i) row[i] *= factors[i];
}

}  // namespace lookback::kernels
