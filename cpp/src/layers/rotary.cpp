#include "lookback/rotary.hpp"

#include <algorithm>
#include <cmath>

#include "lookback/parallel.hpp"

namespace lookback {
namespace {

constexpr double two_pi = 6.283185307179586;

/// Llama 3.1: a wave longer than original/low is stretched by the factor, one shorter than original/high is kept.
double llama3_frequency(const RotaryOptions& options, double frequency) noexcept {
  const double wave_length = two_pi / frequency;
  const double longest_kept = options.original_length / options.high_frequency_factor;
  const double shortest_scaled = options.original_length / options.low_frequency_factor;
  if (wave_length < longest_kept) return frequency;
  if (wave_length > shortest_scaled) return frequency / options.factor;
  const double kept = (options.original_length / wave_length - options.low_frequency_factor) /
                      (options.high_frequency_factor - options.low_frequency_factor);
  return (1.0 - kept) * frequency / options.factor + kept * frequency;
}

/// The pair whose wave turns `rotations` times over the original length.
double yarn_pair(const RotaryOptions& options, double rotations) noexcept {
  return static_cast<double>(options.dims) * std::log(options.original_length / (rotations * two_pi)) /
         (2.0 * std::log(options.base));
}

double yarn_frequency(const RotaryOptions& options, double frequency, Index pair) noexcept {
  const double low = std::max(std::floor(yarn_pair(options, options.beta_fast)), 0.0);
  double high = std::min(std::ceil(yarn_pair(options, options.beta_slow)), static_cast<double>(options.dims - 1));
  if (low == high) high += 0.001;  // as the reference implementation does, against a division by 0
  const double stretched = std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
  return frequency * (1.0 - stretched) + frequency / options.factor * stretched;
}

double amplitude(const RotaryOptions& options) noexcept {
  if (options.scaling != RotaryScaling::yarn) return 1.0;
  if (options.attention_factor > 0.0) return options.attention_factor;
  return options.factor <= 1.0 ? 1.0 : 0.1 * std::log(options.factor) + 1.0;
}

void turn_row(const float* input, const float* cosines, const float* sines, const RotaryCall& call,
              float* output) noexcept {
  const Index half = call.dims / 2;
  const Index partner = call.interleaved ? 1 : half;
  const Index step = call.interleaved ? 2 : 1;
  for (Index pair = 0; pair < half; ++pair) {
    const float x = input[pair * step];
    const float y = input[pair * step + partner];
    const float sine = call.transposed ? -sines[pair] : sines[pair];
    output[pair * step] = x * cosines[pair] - y * sine;
    output[pair * step + partner] = x * sine + y * cosines[pair];
  }
  if (output != input) std::copy_n(input + call.dims, call.width - call.dims, output + call.dims);
}

bool is_valid_scaling(const RotaryOptions& options) noexcept {
  if (!(options.factor > 0.0) || !std::isfinite(options.factor)) return false;
  switch (options.scaling) {
    case RotaryScaling::none:
    case RotaryScaling::linear:
    case RotaryScaling::ntk: return true;
    case RotaryScaling::llama3:
      return options.original_length > 0.0 && options.low_frequency_factor > 0.0 &&
             options.high_frequency_factor > options.low_frequency_factor;
    case RotaryScaling::yarn:
      return options.original_length > 0.0 && options.beta_fast > 0.0 && options.beta_slow > 0.0;
  }
  return false;
}

}  // namespace

Status validate_rotary(const RotaryOptions& options, Index head_dim) noexcept {
  if (options.dims < 2 || options.dims % 2 != 0 || options.dims > head_dim) return Status::invalid_shape;
  const bool valid = std::isfinite(options.base) && options.base > 1.0 && is_valid_scaling(options);
  return valid ? Status::ok : Status::invalid_argument;
}

void rotary_frequencies(const RotaryOptions& options, double* frequencies) noexcept {
  const auto dims = static_cast<double>(options.dims);
  double base = options.base;
  if (options.scaling == RotaryScaling::ntk && options.dims > 2) {
    base *= std::pow(options.factor, dims / (dims - 2.0));
  }
  for (Index pair = 0; pair < options.dims / 2; ++pair) {
    const double frequency = std::pow(base, -2.0 * static_cast<double>(pair) / dims);
    switch (options.scaling) {
      case RotaryScaling::linear: frequencies[pair] = frequency / options.factor; break;
      case RotaryScaling::llama3: frequencies[pair] = llama3_frequency(options, frequency); break;
      case RotaryScaling::yarn: frequencies[pair] = yarn_frequency(options, frequency, pair); break;
      case RotaryScaling::none:
      case RotaryScaling::ntk: frequencies[pair] = frequency; break;
    }
  }
}

void rotary_table(const RotaryOptions& options, const std::int32_t* positions, Index count, double* frequencies,
                  float* cosines, float* sines) noexcept {
  rotary_frequencies(options, frequencies);
  const double scale = amplitude(options);
  const Index half = options.dims / 2;
  constexpr double cost_of_angle = 500.0;  // in multiply-adds
  parallel_for(0, count, static_cast<double>(count * half) * cost_of_angle, [&](Index row, Index) noexcept {
    for (Index pair = 0; pair < half; ++pair) {
      const double angle = static_cast<double>(positions[row]) * frequencies[pair];
      cosines[row * half + pair] = static_cast<float>(std::cos(angle) * scale);
      sines[row * half + pair] = static_cast<float>(std::sin(angle) * scale);
    }
  });
}

Status rotary_apply(const RotaryCall& call) noexcept {
  if (call.batch < 1 || call.heads < 1 || call.length < 0 || call.dims < 2 || call.dims % 2 != 0 ||
      call.dims > call.width) {
    return Status::invalid_shape;
  }
  if (call.length == 0) return Status::ok;
  if (call.input.data == nullptr || call.output.data == nullptr || call.cosines == nullptr || call.sines == nullptr) {
    return Status::null_pointer;
  }
  const Index rows = call.batch * call.length;
  parallel_for(0, rows, 8.0 * static_cast<double>(rows * call.heads * call.width), [&call](Index item, Index) noexcept {
    const Index batch = item / call.length;
    const Index row = item % call.length;
    const Index at = (batch * call.table_batch_rows + row) * (call.dims / 2);
    for (Index head = 0; head < call.heads; ++head) {
      turn_row(call.input.row(batch, head, row), call.cosines + at, call.sines + at, call,
               call.output.row(batch, head, row));
    }
  });
  return Status::ok;
}

}  // namespace lookback
