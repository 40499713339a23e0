#include "kernels/activation.hpp"

#include <algorithm>

#include "kernels/exponential.hpp"

namespace lookback::kernels {

using simd::Batch;
using simd::lanes;

namespace {

constexpr float gelu_linear = 1.59576912F;   // 2·√(2/π)
constexpr float gelu_cubic = 0.0713548163F;  // 2·√(2/π) · 0.044715
constexpr float inverse_root_2 = 0.707106781F;

using Row = void (*)(const float* input, Index count, float* row) noexcept;

/// The elements beyond the last whole batch, through a batch of their own: `whole` is the kernel itself, so that its function is in it once.
[[gnu::noinline]] void process_rest(Row whole, const float* input, Index count, float* row) noexcept {
  float inputs[lanes] = {};
  float rest[lanes] = {};
  std::copy_n(input, count, inputs);
  std::copy_n(row, count, rest);
  whole(inputs, lanes, rest);
  std::copy_n(rest, count, row);
}

/// output = f(input).
template <typename Function>
[[gnu::always_inline]] inline void map_row(Row self, const float* input, Index count, float* output,
                                           Function f) noexcept {
  Index i = 0;
  for (; i + lanes <= count; i += lanes) simd::store(output + i, f(simd::load(input + i)));
  if (i < count) process_rest(self, input + i, count - i, output + i);
}

[[gnu::always_inline]] inline Batch sigmoid(Batch z, const Exponential& exponential) noexcept {
  const Batch e = exponential(simd::splat(0.0F) - simd::absolute(z));
  return simd::select(z < simd::splat(0.0F), e, exponential.one) / (exponential.one + e);
}

/// σ(z) and σ(−z) = 1 − σ(z), which keeps its digits where σ(z) is near 1.
struct Sigmoids {
  Batch value, rest;

  Sigmoids(Batch z, const Exponential& exponential) noexcept {
    const Batch e = exponential(simd::splat(0.0F) - simd::absolute(z));
    const Batch inverse = exponential.one / (exponential.one + e);
    const auto negative = z < simd::splat(0.0F);
    value = simd::select(negative, e, exponential.one) * inverse;
    rest = simd::select(negative, exponential.one, e) * inverse;
  }
};

/// row = row · slope(input).
template <typename Function>
[[gnu::always_inline]] inline void multiply_by_slope(Row self, const float* input, Index count, float* row,
                                                     Function slope) noexcept {
  Index i = 0;
  for (; i + lanes <= count; i += lanes) {
    simd::store(row + i, simd::load(row + i) * slope(simd::load(input + i)));
  }
  if (i < count) process_rest(self, input + i, count - i, row + i);
}

}  // namespace

[[gnu::noinline]] void silu_row(const float* input, Index count, float* output) noexcept {
  const Exponential exponential(exponential_coefficients());
  map_row(silu_row, input, count, output, [&](Batch x) { return x * sigmoid(x, exponential); });
}

[[gnu::noinline]] void gelu_tanh_row(const float* input, Index count, float* output) noexcept {
  const Exponential exponential(exponential_coefficients());
  const Batch linear = simd::splat(gelu_linear);
  const Batch cubic = simd::splat(gelu_cubic);
  map_row(gelu_tanh_row, input, count, output,
          [&](Batch x) { return x * sigmoid(x * simd::madd(cubic, x * x, linear), exponential); });
}

[[gnu::noinline]] void gelu_erf_row(const float* input, Index count, float* output) noexcept {
  const Batch half = simd::splat(0.5F);
  const Batch factor = simd::splat(inverse_root_2);
  map_row(gelu_erf_row, input, count, output,
          [&](Batch x) { return simd::madd(half * x, simd::erf(x * factor), half * x); });
}

[[gnu::noinline]] void silu_backward_row(const float* input, Index count, float* row) noexcept {
  const Exponential exponential(exponential_coefficients());
  multiply_by_slope(silu_backward_row, input, count, row, [&](Batch x) {
    const Sigmoids s(x, exponential);
    return s.value * simd::madd(x, s.rest, exponential.one);
  });
}

[[gnu::noinline]] void gelu_tanh_backward_row(const float* input, Index count, float* row) noexcept {
  const Exponential exponential(exponential_coefficients());
  const Batch linear = simd::splat(gelu_linear);
  const Batch cubic = simd::splat(gelu_cubic);
  const Batch slope = simd::splat(3.0F * gelu_cubic);
  multiply_by_slope(gelu_tanh_backward_row, input, count, row, [&](Batch x) {
    const Batch square = x * x;
    const Sigmoids s(x * simd::madd(cubic, square, linear), exponential);
    return s.value * simd::madd(x * s.rest, simd::madd(slope, square, linear), exponential.one);
  });
}

[[gnu::noinline]] void gelu_erf_backward_row(const float* input, Index count, float* row) noexcept {
  const Exponential exponential(exponential_coefficients());
  const Batch half = simd::splat(0.5F);
  const Batch minus_half = simd::splat(-0.5F);
  const Batch factor = simd::splat(inverse_root_2);
  const Batch density = simd::splat(0.39894228F);  // 1/√(2π)
  multiply_by_slope(gelu_erf_backward_row, input, count, row, [&](Batch x) {
    const Batch below = simd::madd(half, simd::erf(x * factor), half);
    return simd::madd(x * density, exponential(minus_half * x * x), below);
  });
}

[[gnu::noinline]] void multiply_row(const float* factors, Index count, float* row) noexcept {
  Index i = 0;
  for (; i + lanes <= count; i += lanes) simd::store(row + i, simd::load(row + i) * simd::load(factors + i));
  for (; i < count; ++i) row[i] *= factors[i];
}

}  // namespace lookback::kernels
