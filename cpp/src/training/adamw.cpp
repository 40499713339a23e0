#include "lookback/adamw.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/adamw.hpp"
#include "lookback/parallel.hpp"

namespace lookback {
namespace {

/// Elements of an item of work.
constexpr Index block = 4096;
/// Multiply-adds that an element costs: memory is the limit.
constexpr double cost_of_element = 16.0;

Index block_count(Index count) noexcept { return (count + block - 1) / block; }

template <typename Body>
void for_each_block(Index count, const Body& body) noexcept {
  parallel_for(0, block_count(count), cost_of_element * static_cast<double>(count),
               [&](Index item, Index) noexcept { body(item, std::min(block, count - item * block)); });
}

bool is_share(float value) noexcept { return value >= 0.0F && value < 1.0F; }
bool is_not_negative(float value) noexcept { return std::isfinite(value) && value >= 0.0F; }

kernels::AdamWFactors factors_of(const AdamWOptions& options, float gradient_factor) noexcept {
  const auto rest = [&](float beta) {
    return 1.0 - std::pow(static_cast<double>(beta), static_cast<double>(options.step));
  };
  const auto rate = static_cast<double>(options.learning_rate);
  return {gradient_factor,
          options.beta1,
          1.0F - options.beta1,
          options.beta2,
          1.0F - options.beta2,
          static_cast<float>(1.0 - rate * static_cast<double>(options.weight_decay)),
          static_cast<float>(rate / rest(options.beta1)),
          static_cast<float>(1.0 / rest(options.beta2)),
          options.epsilon};
}

}  // namespace

Status validate_adamw(const AdamWOptions& options) noexcept {
  const bool valid = options.step >= 1 && is_not_negative(options.learning_rate) && is_share(options.beta1) &&
                     is_share(options.beta2) && is_not_negative(options.epsilon) &&
                     is_not_negative(options.weight_decay);
  return valid ? Status::ok : Status::invalid_argument;
}

Status adamw_step(const AdamWCall& call) noexcept {
  if (const Status status = validate_adamw(call.options); status != Status::ok) return status;
  if (!std::isfinite(call.gradient_factor)) return Status::invalid_argument;
  if (call.count < 0) return Status::invalid_shape;
  if (call.count == 0) return Status::ok;
  if (call.weights == nullptr || call.gradients == nullptr || call.first_moments == nullptr ||
      call.second_moments == nullptr) {
    return Status::null_pointer;
  }
  const kernels::AdamWFactors factors = factors_of(call.options, call.gradient_factor);
  for_each_block(call.count, [&](Index item, Index length) noexcept {
    const Index first = item * block;
    kernels::adamw_row(factors, length, call.weights + first, call.gradients + first, call.first_moments + first,
                       call.second_moments + first);
  });
  return Status::ok;
}

double gradient_norm_workspace_bytes(Index count) noexcept {
  return static_cast<double>(block_count(std::max<Index>(count, 0))) * sizeof(double);
}

Status gradient_norm(const float* gradients, Index count, double& norm, void* workspace,
                     std::size_t workspace_bytes) noexcept {
  if (count < 0) return Status::invalid_shape;
  if (count > 0 && gradients == nullptr) return Status::null_pointer;
  if (static_cast<double>(workspace_bytes) < gradient_norm_workspace_bytes(count)) return Status::workspace_too_small;
  auto* sums = static_cast<double*>(workspace);
  for_each_block(count, [&](Index item, Index length) noexcept {
    sums[item] = static_cast<double>(kernels::sum_of_squares(gradients + item * block, length));
  });
  double sum = 0.0;
  for (Index item = 0; item < block_count(count); ++item) sum += sums[item];
  norm = std::sqrt(sum);
  return Status::ok;
}

float clipping_factor(double norm, float max_norm) noexcept {
  if (max_norm == 0.0F || norm <= static_cast<double>(max_norm)) return 1.0F;
  return static_cast<float>(static_cast<double>(max_norm) / norm);
}

}  // namespace lookback
