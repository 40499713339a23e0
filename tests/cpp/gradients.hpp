#pragma once

// The backward call of a problem, and what must hold for it.

#include "problem.hpp"

namespace lookback::test {

struct Gradients {
  Status status = Status::ok;
  std::vector<float> queries;  ///< [B, H, Lq, D], whatever the problem's layout
  std::vector<float> keys;     ///< [B, Hkv, Lk, D]
  std::vector<float> values;   ///< [B, Hkv, Lk, Dv]
  std::vector<float> bias;     ///< as the problem's; empty without
  std::vector<float> sinks;    ///< [H]; empty without
};

/// [B, H, Lq, Dv].
std::vector<float> random_grad_output(const Problem& problem, Random& random);

/// NaN, +∞ and −∞ in turn in every row that sees nothing.
std::vector<float> with_poison_in_blind_rows(const Problem& problem, std::vector<float> grad_output);

/// Forward, then backward, with a workspace of exactly the needed size.
Gradients differentiate(const Problem& problem, const std::vector<float>& grad_output);

/// R20 for every gradient.
::testing::AssertionResult matches(const Problem& problem, const std::vector<float>& grad_output,
                                   const Gradients& gradients);
::testing::AssertionResult same_gradients(const Gradients& a, const Gradients& b);

/// R8, R9, R10, R20 of one problem.
::testing::AssertionResult keeps_every_gradient_rule(const Problem& problem, Random& random);

}  // namespace lookback::test
