#pragma once

// Reverse-mode differentiation of float64 formulas, number by number: the references' gradients come from their forward formulas alone.

#include <cmath>
#include <cstddef>
#include <vector>

namespace lookback::reference {

/// A number that remembers what it was made of. Constants are not remembered.
class Variable {
public:
  Variable(double value = 0.0) : value_(value) {}  // NOLINT(google-explicit-constructor): formulas mix both

  /// A number to differentiate by.
  static Variable input(double value) { return {value, none, 0.0, none, 0.0}; }

  [[nodiscard]] double value() const { return value_; }

  /// ∂result/∂input for each of `inputs`; forgets all numbers.
  static std::vector<double> gradients(const Variable& result, const std::vector<Variable>& inputs) {
    std::vector<double> sums(tape().size(), 0.0);
    if (result.node_ != none) sums[result.node_] = 1.0;
    for (std::size_t at = sums.size(); at-- > 0;) {
      const Node& node = tape()[at];
      if (node.first != none) sums[node.first] += sums[at] * node.first_slope;
      if (node.second != none) sums[node.second] += sums[at] * node.second_slope;
    }
    std::vector<double> wanted;
    for (const Variable& input : inputs) wanted.push_back(sums[input.node_]);
    tape().clear();
    return wanted;
  }

  friend Variable operator+(const Variable& a, const Variable& b) {
    return {a.value_ + b.value_, a.node_, 1.0, b.node_, 1.0};
  }
  friend Variable operator-(const Variable& a, const Variable& b) {
    return {a.value_ - b.value_, a.node_, 1.0, b.node_, -1.0};
  }
  friend Variable operator*(const Variable& a, const Variable& b) {
    return {a.value_ * b.value_, a.node_, b.value_, b.node_, a.value_};
  }
  friend Variable operator/(const Variable& a, const Variable& b) {
    return {a.value_ / b.value_, a.node_, 1.0 / b.value_, b.node_, -a.value_ / (b.value_ * b.value_)};
  }
  Variable& operator+=(const Variable& other) { return *this = *this + other; }
  Variable& operator/=(const Variable& other) { return *this = *this / other; }

  friend Variable exp(const Variable& x) { return x.map(std::exp(x.value_), std::exp(x.value_)); }
  friend Variable log(const Variable& x) { return x.map(std::log(x.value_), 1.0 / x.value_); }
  friend Variable sqrt(const Variable& x) { return x.map(std::sqrt(x.value_), 0.5 / std::sqrt(x.value_)); }
  friend Variable tanh(const Variable& x) {
    const double y = std::tanh(x.value_);
    return x.map(y, 1.0 - y * y);
  }
  friend Variable erf(const Variable& x) {
    return x.map(std::erf(x.value_), 2.0 / std::sqrt(M_PI) * std::exp(-x.value_ * x.value_));
  }

private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  struct Node {
    std::size_t first;
    double first_slope;
    std::size_t second;
    double second_slope;
  };
  static std::vector<Node>& tape() {
    static std::vector<Node> nodes;
    return nodes;
  }

  Variable(double value, std::size_t first, double first_slope, std::size_t second, double second_slope)
      : value_(value), node_(tape().size()) {
    tape().push_back({first, first_slope, second, second_slope});
  }
  [[nodiscard]] Variable map(double value, double slope) const { return {value, node_, slope, none, 0.0}; }

  double value_;
  std::size_t node_ = none;
};

}  // namespace lookback::reference
