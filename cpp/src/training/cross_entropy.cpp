#include "lookback/cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/cross_entropy.hpp"
#include "kernels/row_softmax.hpp"
#include "lookback/parallel.hpp"

namespace lookback {
namespace {

/// Multiply-adds that a logit costs.
constexpr double cost_of_logit = 30.0;

void process_row(const CrossEntropyCall& call, Index row) noexcept {
  float* logits = call.logits + row * call.vocabulary;
  const std::int32_t target = call.targets[row];
  if (call.softcap > 0.0F) kernels::cap_row(logits, call.vocabulary, call.softcap);
  if (target < 0) {
    call.losses[row] = 0.0;
    if (call.gradient) std::fill_n(logits, call.vocabulary, 0.0F);
    return;
  }
  const kernels::LogitSums sums = kernels::sum_logits(logits, call.vocabulary);
  const float logit = logits[target];
  call.losses[row] = static_cast<double>(sums.maximum) - logit + std::log(static_cast<double>(sums.sum));
  if (!call.gradient) return;
  const float inverse_cap = call.softcap > 0.0F ? 1.0F / call.softcap : 0.0F;
  kernels::logits_to_gradient(logits, call.vocabulary, sums, call.gradient_scale, inverse_cap);
  const float share = logit * inverse_cap;
  logits[target] -= call.gradient_scale * (1.0F - share * share);
}

}  // namespace

Status cross_entropy(const CrossEntropyCall& call) noexcept {
  if (call.rows < 0 || call.vocabulary < 1) return Status::invalid_shape;
  if (!std::isfinite(call.softcap) || call.softcap < 0.0F || !std::isfinite(call.gradient_scale)) {
    return Status::invalid_argument;
  }
  if (call.rows == 0) return Status::ok;
  if (call.logits == nullptr || call.targets == nullptr || call.losses == nullptr) return Status::null_pointer;
  const bool in_range = std::all_of(call.targets, call.targets + call.rows,
                                    [&](std::int32_t target) { return target >= -1 && target < call.vocabulary; });
  if (!in_range) return Status::token_out_of_range;
  const double cost = cost_of_logit * static_cast<double>(call.rows) * static_cast<double>(call.vocabulary);
  parallel_for(0, call.rows, cost, [&call](Index row, Index) noexcept { process_row(call, row); });
  return Status::ok;
}

}  // namespace lookback
