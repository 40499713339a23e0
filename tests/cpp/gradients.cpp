#include "gradients.hpp"

#include <algorithm>
#include <cmath>

namespace lookback::test {
namespace {

std::vector<float> floats(Index count) { return std::vector<float>(static_cast<std::size_t>(count), untouched); }

/// [B, heads, L, width] in the problem's layout, from and to the one in which results are compared.
struct Laid {
  Index batch, heads, length, width;
  bool folded;
  std::vector<float> data;

  Laid(const AttentionShape& shape, Index head_count, Index row_count, Index column_count, bool is_folded)
      : batch(shape.batch),
        heads(head_count),
        length(row_count),
        width(column_count),
        folded(is_folded),
        data(floats(batch * heads * length * width)) {}

  [[nodiscard]] MutableView view() { return view_of(data.data(), heads, length, width, folded); }

  void set(const std::vector<float>& rows) {
    for (Index row = 0; row < batch * heads * length; ++row) {
      std::copy_n(rows.data() + row * width, width,
                  view().row(row / length / heads, row / length % heads, row % length));
    }
  }
  [[nodiscard]] std::vector<float> rows() {
    std::vector<float> all;
    for (Index row = 0; row < batch * heads * length; ++row) {
      const float* source = view().row(row / length / heads, row / length % heads, row % length);
      all.insert(all.end(), source, source + width);
    }
    return all;
  }
  [[nodiscard]] ConstView const_view() {
    const MutableView own = view();
    return {own.data, own.batch_stride, own.head_stride, own.row_stride};
  }
};

double largest(const std::vector<double>& values) {
  double result = 0.0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

}  // namespace

std::vector<float> random_grad_output(const Problem& problem, Random& random) {
  return random.vector(problem.rows() * problem.shape.value_dim);
}

std::vector<float> with_poison_in_blind_rows(const Problem& problem, std::vector<float> grad_output) {
  const Problem dense = with_one_dense_mask(problem);
  const Index keys = problem.shape.key_length;
  const Index width = problem.shape.value_dim;
  constexpr float poison[] = {not_a_number, infinity, -infinity};
  for (Index row = 0; row < problem.rows(); ++row) {
    const auto first = dense.mask.data.begin() + row * keys;
    if (std::find(first, first + keys, 1) != first + keys) continue;
    for (Index c = 0; c < width; ++c) grad_output[row * width + c] = poison[(row + c) % 3];
  }
  return grad_output;
}

Gradients differentiate(const Problem& problem, const std::vector<float>& grad_output) {
  const AttentionShape& shape = problem.shape;
  const Result forward = run(problem);
  AttentionBackwardCall call;
  call.forward = problem.call();
  call.log_sum_exp = forward.log_sum_exp.data();
  Laid output(shape, shape.heads, shape.query_length, shape.value_dim, problem.folded);
  Laid grads = output;
  output.set(forward.output);
  grads.set(grad_output);
  Laid queries(shape, shape.heads, shape.query_length, shape.head_dim, problem.folded);
  Laid keys(shape, shape.kv_heads, shape.key_length, shape.head_dim, problem.folded);
  Laid values(shape, shape.kv_heads, shape.key_length, shape.value_dim, problem.folded);
  call.output = output.const_view();
  call.grad_output = grads.const_view();
  call.grad_queries = queries.view();
  call.grad_keys = keys.view();
  call.grad_values = values.view();
  Gradients result;
  if (!problem.bias.data.empty()) {
    result.bias = floats(static_cast<Index>(problem.bias.data.size()));
    call.grad_bias = result.bias.data();
  }
  if (!problem.sinks.empty()) {
    result.sinks = floats(shape.heads);
    call.grad_sinks = result.sinks.data();
  }
  const Scratch scratch(attention_backward_workspace_bytes(call));
  result.status = attention_backward(call, scratch.data(), scratch.bytes());
  result.queries = queries.rows();
  result.keys = keys.rows();
  result.values = values.rows();
  return result;
}

::testing::AssertionResult matches(const Problem& problem, const std::vector<float>& grad_output,
                                   const Gradients& gradients) {
  if (gradients.status != Status::ok) return ::testing::AssertionFailure() << status_message(gradients.status);
  const AttentionCall call = problem.call();
  const reference::AttentionGradients expected =
      reference::attention_gradients(call, grad_output, static_cast<Index>(problem.bias.data.size()));
  const reference::Attention forward = reference::attention(call);
  // Float32 scores and log_sum_exp are rounded at the magnitude of the scores (R22), and weights with them.
  const double score =
      forward.magnitude.empty() ? 0.0 : *std::max_element(forward.magnitude.begin(), forward.magnitude.end());
  const double rounding = 2e-6 + 0x1p-21 * score;
  const auto compare = [rounding](const char* name, const std::vector<float>& actual, const std::vector<double>& exact,
                                  double magnitude) {
    const auto near = all_near(actual, exact, 1e-4 * largest(exact) + rounding * magnitude);
    return near ? near : ::testing::AssertionFailure() << "R20: gradient of " << name << ": " << near.message();
  };
  if (const auto near = compare("queries", gradients.queries, expected.queries, expected.query_magnitude); !near) {
    return near;
  }
  if (const auto near = compare("keys", gradients.keys, expected.keys, expected.key_magnitude); !near) return near;
  if (const auto near = compare("values", gradients.values, expected.values, expected.value_magnitude); !near) {
    return near;
  }
  if (const auto near = compare("bias", gradients.bias, expected.bias, expected.bias_magnitude); !near) return near;
  return compare("sinks", gradients.sinks, expected.sinks, expected.sink_magnitude);
}

::testing::AssertionResult same_gradients(const Gradients& a, const Gradients& b) {
  if (a.status != Status::ok || b.status != Status::ok) return ::testing::AssertionFailure() << "a call was refused";
  const auto compare = [](const char* name, const std::vector<float>& one, const std::vector<float>& other) {
    const auto same = all_same_bits(one, other);
    return same ? same : ::testing::AssertionFailure() << "gradient of " << name << ": " << same.message();
  };
  if (const auto same = compare("queries", a.queries, b.queries); !same) return same;
  if (const auto same = compare("keys", a.keys, b.keys); !same) return same;
  if (const auto same = compare("values", a.values, b.values); !same) return same;
  if (const auto same = compare("bias", a.bias, b.bias); !same) return same;
  return compare("sinks", a.sinks, b.sinks);
}

::testing::AssertionResult keeps_every_gradient_rule(const Problem& problem, Random& random) {
  const std::vector<float> grad_output = random_grad_output(problem, random);
  const Gradients gradients = differentiate(problem, grad_output);
  if (const auto near = matches(problem, grad_output, gradients); !near) return near;
  const Gradients dense = differentiate(with_one_dense_mask(problem), grad_output);
  if (const auto same = same_gradients(gradients, dense); !same) {
    return ::testing::AssertionFailure() << "R8: " << same.message();
  }
  const Gradients poisoned = differentiate(with_poison_where_hidden(problem), grad_output);
  if (const auto same = same_gradients(gradients, poisoned); !same) {
    return ::testing::AssertionFailure() << "R10: " << same.message();
  }
  const Gradients blind = differentiate(problem, with_poison_in_blind_rows(problem, grad_output));
  if (const auto same = same_gradients(gradients, blind); !same) {
    return ::testing::AssertionFailure() << "R9: " << same.message();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace lookback::test
