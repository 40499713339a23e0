#pragma once

// An attention call that owns its operands, ways to make one, to run it and to compare it with the reference.

#include "lookback/attention.hpp"
#include "reference.hpp"
#include "support.hpp"

namespace lookback::test {

/// A contiguous [B, heads, L, width], or folded [B, L, heads·width].
template <typename T>
BasicView<T> view_of(T* data, Index heads, Index length, Index width, bool folded) {
  if (folded) return {data, length * heads * width, width, heads * width};
  return {data, heads * length * width, length * width, width};
}

/// Which dimensions of a mask or bias are broadcast.
struct Broadcast {
  bool batch = false;
  bool head = false;
  bool query = false;
  bool key = false;
};

template <typename T>
struct Dense {
  std::vector<T> data;
  BroadcastView<T> view;  ///< strides; its data pointer is set when a call is made

  /// Makes room for the dimensions that are not broadcast, filled with `value`.
  void resize(const AttentionShape& shape, Broadcast broadcast, T value);
};

struct Problem {
  AttentionShape shape;
  std::vector<float> queries, keys, values;  ///< exact, in the layout that `folded` names
  bool folded = false;                       ///< [B, L, H·D] instead of [B, H, L, D]
  Visibility rules;                          ///< causal and window; pointers are set from the vectors below
  std::vector<std::int32_t> offsets, key_lengths;
  std::vector<std::uint8_t> key_mask;
  Dense<std::uint8_t> mask;
  Dense<float> bias;
  std::vector<float> slopes, sinks;
  float scale = 1.0F;
  float softcap = 0.0F;
  Dropout dropout;

  /// Random queries, keys and values in [−bound, bound).
  static Problem random(const AttentionShape& shape, std::uint32_t seed, float bound = 1.0F);

  [[nodiscard]] AttentionCall call() const;
  [[nodiscard]] float& key(Index batch, Index kv_head, Index row, Index d);
  [[nodiscard]] float& value(Index batch, Index kv_head, Index row, Index c);
  [[nodiscard]] Index rows() const { return shape.batch * shape.heads * shape.query_length; }
};

struct Result {
  Status status = Status::ok;
  std::vector<float> output;       ///< [B, H, Lq, Dv], whatever the problem's layout
  std::vector<float> log_sum_exp;  ///< [B, H, Lq]
  std::vector<float> weights;      ///< as asked
};

/// Runs a call with outputs and a workspace of exactly the needed size. The weights request's data pointer is set here.
Result run(const Problem& problem);
Result run(const Problem& problem, WeightsRequest request);
Result run_all_weights(const Problem& problem, WeightsKind kind);

/// R22 for every element of the output, R14 for the log-sum-exp.
::testing::AssertionResult matches(const Problem& problem, const Result& result);
::testing::AssertionResult matches(const reference::Attention& expected, const Problem& problem, const Result& result);
/// The same bound for weights of all heads and rows.
::testing::AssertionResult weights_match(const reference::Attention& expected, const Problem& problem, WeightsKind kind,
                                         const std::vector<float>& weights);
/// Output and log-sum-exp, bit for bit.
::testing::AssertionResult same_result(const Result& a, const Result& b);

/// The conjunction of all that hides keys in `problem`, as one dense mask and nothing else beside it.
Problem with_one_dense_mask(const Problem& problem);
/// NaN, +∞ and −∞ in turn at every place of K, V and bias that no row can see.
Problem with_poison_where_hidden(const Problem& problem);

/// A problem with random shape, options and masks; every combination that is valid can come up.
Problem random_problem(Random& random);
/// A random request of heads and query rows.
struct OwnedRequest {
  std::vector<std::int32_t> heads;
  WeightsRequest request;
};
OwnedRequest random_request(const Problem& problem, Random& random);
/// What must hold for any problem; one sentence that names the rule if it does not.
::testing::AssertionResult keeps_every_rule(const Problem& problem, Random& random);

}  // namespace lookback::test
