#include "problem.hpp"

#include <algorithm>
#include <cmath>

namespace lookback::test {
namespace {

template <typename T>
const T* pointer_or_null(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

std::string place(const Problem& problem, Index row) {
  const AttentionShape& shape = problem.shape;
  return "batch row " + std::to_string(row / shape.query_length / shape.heads) + ", head " +
         std::to_string(row / shape.query_length % shape.heads) + ", query " + std::to_string(row % shape.query_length);
}

bool within(float actual, double expected, double tolerance) {
  if (std::isinf(expected)) return static_cast<double>(actual) == expected;
  return std::abs(static_cast<double>(actual) - expected) <= tolerance;
}

double bound_of(const reference::Attention& expected, Index row) { return 2e-6 + 0x1p-23 * expected.magnitude[row]; }

}  // namespace

template <typename T>
void Dense<T>::resize(const AttentionShape& shape, Broadcast broadcast, T value) {
  Index stride = 1;
  const auto take = [&stride](bool is_broadcast, Index extent) {
    const Index own = is_broadcast ? 0 : stride;
    if (!is_broadcast) stride *= extent;
    return own;
  };
  view.key_stride = take(broadcast.key, shape.key_length);
  view.query_stride = take(broadcast.query, shape.query_length);
  view.head_stride = take(broadcast.head, shape.heads);
  view.batch_stride = take(broadcast.batch, shape.batch);
  data.assign(static_cast<std::size_t>(stride), value);
}

template struct Dense<float>;
template struct Dense<std::uint8_t>;

Problem Problem::random(const AttentionShape& shape, std::uint32_t seed, float bound) {
  Random random(seed);
  Problem problem;
  problem.shape = shape;
  problem.queries = random.vector(shape.batch * shape.heads * shape.query_length * shape.head_dim, bound);
  problem.keys = random.vector(shape.batch * shape.kv_heads * shape.key_length * shape.head_dim, bound);
  problem.values = random.vector(shape.batch * shape.kv_heads * shape.key_length * shape.value_dim, bound);
  problem.scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  return problem;
}

AttentionCall Problem::call() const {
  AttentionCall call;
  call.shape = shape;
  call.inputs.queries = view_of(queries.data(), shape.heads, shape.query_length, shape.head_dim, folded);
  call.inputs.keys = view_of(keys.data(), shape.kv_heads, shape.key_length, shape.head_dim, folded);
  call.inputs.values = view_of(values.data(), shape.kv_heads, shape.key_length, shape.value_dim, folded);
  call.visibility = rules;
  call.visibility.query_offsets = pointer_or_null(offsets);
  call.visibility.key_lengths = pointer_or_null(key_lengths);
  call.visibility.key_mask = pointer_or_null(key_mask);
  call.visibility.mask = mask.view;
  call.visibility.mask.data = pointer_or_null(mask.data);
  call.scores.scale = scale;
  call.scores.softcap = softcap;
  call.scores.bias = bias.view;
  call.scores.bias.data = pointer_or_null(bias.data);
  call.scores.alibi_slopes = pointer_or_null(slopes);
  call.scores.sinks = pointer_or_null(sinks);
  call.scores.dropout = dropout;
  return call;
}

float& Problem::key(Index batch, Index kv_head, Index row, Index d) {
  return view_of(keys.data(), shape.kv_heads, shape.key_length, shape.head_dim, folded).row(batch, kv_head, row)[d];
}

float& Problem::value(Index batch, Index kv_head, Index row, Index c) {
  return view_of(values.data(), shape.kv_heads, shape.key_length, shape.value_dim, folded).row(batch, kv_head, row)[c];
}

Result run(const Problem& problem, WeightsRequest request) {
  AttentionCall call = problem.call();
  const AttentionShape& shape = problem.shape;
  Result result;
  const auto rows = static_cast<std::size_t>(problem.rows());
  std::vector<float> output(rows * static_cast<std::size_t>(shape.value_dim), untouched);
  result.log_sum_exp.assign(rows, untouched);
  const Index row_count = request.query_to - request.query_from;
  result.weights.assign(static_cast<std::size_t>(shape.batch * request.head_count * row_count * shape.key_length),
                        untouched);
  if (!result.weights.empty()) {
    call.outputs.weights = request;
    call.outputs.weights.data = result.weights.data();
  }
  call.outputs.output = view_of(output.data(), shape.heads, shape.query_length, shape.value_dim, problem.folded);
  call.outputs.log_sum_exp = result.log_sum_exp.data();
  const Scratch scratch(attention_workspace_bytes(call));
  result.status = attention_forward(call, scratch.data(), scratch.bytes());
  result.output.reserve(output.size());
  for (Index row = 0; row < problem.rows(); ++row) {
    const float* source = call.outputs.output.row(row / shape.query_length / shape.heads,
                                                  row / shape.query_length % shape.heads, row % shape.query_length);
    result.output.insert(result.output.end(), source, source + shape.value_dim);
  }
  return result;
}

Result run(const Problem& problem) { return run(problem, {}); }

Result run_all_weights(const Problem& problem, WeightsKind kind) {
  WeightsRequest request;
  request.kind = kind;
  request.head_count = problem.shape.heads;
  request.query_to = problem.shape.query_length;
  return run(problem, request);
}

::testing::AssertionResult matches(const reference::Attention& expected, const Problem& problem, const Result& result) {
  if (result.status != Status::ok) return ::testing::AssertionFailure() << status_message(result.status);
  for (Index row = 0; row < problem.rows(); ++row) {
    const double bound = bound_of(expected, row);
    for (Index c = 0; c < problem.shape.value_dim; ++c) {
      const Index at = row * problem.shape.value_dim + c;
      if (!within(result.output[at], expected.output[at], expected.largest_value[row] * bound)) {
        return ::testing::AssertionFailure()
               << "R22: output at " << place(problem, row) << ", column " << c << " is " << result.output[at]
               << ", not " << expected.output[at] << " ± " << expected.largest_value[row] * bound;
      }
    }
    const double exact = expected.log_sum_exp[row];
    // Errors of single scores, which an average over values would soften, are seen here as they are.
    if (!within(result.log_sum_exp[row], exact, 3 * bound + 0x1p-23 * std::abs(exact))) {
      return ::testing::AssertionFailure()
             << "R14: logSumExp at " << place(problem, row) << " is " << result.log_sum_exp[row] << ", not " << exact;
    }
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult matches(const Problem& problem, const Result& result) {
  return matches(reference::attention(problem.call()), problem, result);
}

::testing::AssertionResult weights_match(const reference::Attention& expected, const Problem& problem, WeightsKind kind,
                                         const std::vector<float>& weights) {
  const std::vector<double>& stage = expected.stages[static_cast<int>(kind)];
  if (weights.size() != stage.size()) return ::testing::AssertionFailure() << weights.size() << " weights";
  const AttentionCall call = problem.call();
  for (Index at = 0; at < static_cast<Index>(weights.size()); ++at) {
    const Index row = at / problem.shape.key_length;
    double bound = bound_of(expected, row);
    if (kind != WeightsKind::softmax) {
      // These stages cover hidden keys, whose magnitude is not in the bound; their errors are those of one sum.
      const Index b = row / problem.shape.query_length / problem.shape.heads;
      const Index h = row / problem.shape.query_length % problem.shape.heads;
      const float* q = call.inputs.queries.row(b, h, row % problem.shape.query_length);
      const float* k =
          call.inputs.keys.row(b, h * problem.shape.kv_heads / problem.shape.heads, at % problem.shape.key_length);
      double magnitude = 0.0;
      for (Index d = 0; d < problem.shape.head_dim; ++d) magnitude += std::abs(static_cast<double>(q[d]) * k[d]);
      bound += 0x1p-22 * std::abs(static_cast<double>(problem.scale)) * magnitude;
    }
    if (!within(weights[at], stage[at], bound)) {
      return ::testing::AssertionFailure()
             << "R12: kind " << static_cast<int>(kind) << " at " << place(problem, row) << ", key "
             << at % problem.shape.key_length << " is " << weights[at] << ", not " << stage[at];
    }
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult same_result(const Result& a, const Result& b) {
  if (a.status != Status::ok || b.status != Status::ok) return ::testing::AssertionFailure() << "a call was refused";
  if (const auto same = all_same_bits(a.output, b.output); !same)
    return ::testing::AssertionFailure() << "output: " << same.message();
  if (const auto same = all_same_bits(a.log_sum_exp, b.log_sum_exp); !same) {
    return ::testing::AssertionFailure() << "logSumExp: " << same.message();
  }
  return ::testing::AssertionSuccess();
}

Problem with_one_dense_mask(const Problem& problem) {
  const reference::Attention reference = reference::attention(problem.call());
  Problem dense = problem;
  dense.mask.resize(problem.shape, {}, 1);
  dense.mask.data = reference.visible;
  dense.rules = {};
  dense.key_lengths.clear();
  dense.key_mask.clear();
  // The bias goes on being added where it is finite.
  std::replace(dense.bias.data.begin(), dense.bias.data.end(), -infinity, 7.0F);
  return dense;
}

Problem with_poison_where_hidden(const Problem& problem) {
  const AttentionShape& shape = problem.shape;
  const reference::Attention reference = reference::attention(problem.call());
  std::vector<bool> key_seen(static_cast<std::size_t>(shape.batch * shape.kv_heads * shape.key_length));
  std::vector<bool> bias_seen(problem.bias.data.size());
  const BiasView& bias = problem.bias.view;
  for (Index at = 0; at < static_cast<Index>(reference.visible.size()); ++at) {
    const Index key = at % shape.key_length;
    const Index query = at / shape.key_length % shape.query_length;
    const Index head = at / shape.key_length / shape.query_length % shape.heads;
    const Index batch = at / shape.key_length / shape.query_length / shape.heads;
    if (reference.visible[at] == 0) continue;
    key_seen[(batch * shape.kv_heads + head * shape.kv_heads / shape.heads) * shape.key_length + key] = true;
    if (bias_seen.empty()) continue;
    bias_seen[batch * bias.batch_stride + head * bias.head_stride + query * bias.query_stride + key * bias.key_stride] =
        true;
  }
  Problem poisoned = problem;
  constexpr float poisons[3] = {not_a_number, infinity, -infinity};
  int turn = 0;
  for (Index at = 0; at < static_cast<Index>(key_seen.size()); ++at) {
    if (key_seen[at]) continue;
    const Index batch = at / shape.key_length / shape.kv_heads;
    const Index head = at / shape.key_length % shape.kv_heads;
    poisoned.key(batch, head, at % shape.key_length, turn % shape.head_dim) = poisons[turn % 3];
    poisoned.value(batch, head, at % shape.key_length, turn % shape.value_dim) = poisons[turn / 2 % 3];
    ++turn;
  }
  for (std::size_t at = 0; at < bias_seen.size(); ++at) {
    // −∞ is itself a mask: where it is what hides, it has to stay.
    if (!bias_seen[at] && problem.bias.data[at] != -infinity) poisoned.bias.data[at] = poisons[turn++ % 3];
  }
  return poisoned;
}

}  // namespace lookback::test
