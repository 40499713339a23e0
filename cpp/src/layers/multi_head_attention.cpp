#include "lookback/multi_head_attention.hpp"

#include "kernels/tile.hpp"

namespace lookback {
namespace {

constexpr Index alignment_floats = 16;  // 64 bytes

/// Where the projections lie in the workspace, in floats.
struct Layout {
  double queries, keys, values, heads_output;
  double attention_bytes;

  explicit Layout(const MultiHeadAttentionCall& call) noexcept
      : queries(rows(call.attention.shape.batch, call.attention.shape.query_length, call.query.outputs)),
        keys(call.projected_keys != nullptr
                 ? 0
                 : rows(call.attention.shape.batch, call.attention.shape.key_length, call.key.outputs)),
        values(call.projected_keys != nullptr
                   ? 0
                   : rows(call.attention.shape.batch, call.attention.shape.key_length, call.value.outputs)),
        heads_output(
            rows(call.attention.shape.batch, call.attention.shape.query_length, call.output_projection.inputs)),
        attention_bytes(attention_workspace_bytes(call.attention)) {}

  [[nodiscard]] double bytes() const noexcept {
    return (queries + keys + values + heads_output) * sizeof(float) + attention_bytes;
  }

 private:
  static double rows(Index batch, Index length, Index width) noexcept {
    return static_cast<double>(batch) * static_cast<double>(length) * static_cast<double>(width) +
           static_cast<double>(alignment_floats);
  }
};

Status validate(const MultiHeadAttentionCall& call) noexcept {
  const AttentionShape& shape = call.attention.shape;
  if (shape.batch < 1 || shape.query_length < 0 || shape.key_length < 0) return Status::invalid_shape;
  if (call.query.outputs != shape.heads * shape.head_dim || call.key.outputs != shape.kv_heads * shape.head_dim ||
      call.value.outputs != shape.kv_heads * shape.value_dim ||
      call.output_projection.inputs != shape.heads * shape.value_dim) {
    return Status::invalid_heads;
  }
  if ((call.projected_keys == nullptr) != (call.projected_values == nullptr)) return Status::null_pointer;
  const bool needs_memory = shape.key_length > 0 && call.projected_keys == nullptr;
  if (needs_memory && (call.memory_keys == nullptr || call.memory_values == nullptr)) return Status::null_pointer;
  if (shape.query_length > 0 && (call.input == nullptr || call.output == nullptr)) return Status::null_pointer;
  return Status::ok;
}

/// [B, L, heads·width] seen as [B, heads, L, width].
template <typename T>
BasicView<T> split_heads(T* data, Index length, Index heads, Index width) noexcept {
  return {data, length * heads * width, width, heads * width};
}

}  // namespace

double multi_head_attention_workspace_bytes(const MultiHeadAttentionCall& call) noexcept { return Layout(call).bytes(); }

Status multi_head_attention_forward(const MultiHeadAttentionCall& call, void* workspace,
                                    std::size_t workspace_bytes) noexcept {
  if (const Status status = validate(call); status != Status::ok) return status;
  const Layout layout(call);
  if (workspace == nullptr || static_cast<double>(workspace_bytes) < layout.bytes()) return Status::workspace_too_small;

  auto* next = static_cast<float*>(workspace);
  const auto take = [&next](double floats) {
    float* part = next;
    next += kernels::round_up(static_cast<Index>(floats) - alignment_floats + 1, alignment_floats);
    return part;
  };
  const AttentionShape& shape = call.attention.shape;
  float* queries = take(layout.queries);
  float* heads_output = take(layout.heads_output);
  const float* keys = call.projected_keys;
  const float* values = call.projected_values;

  AttentionCall attention = call.attention;
  if (const Status status = linear_forward(call.query, call.input, shape.batch * shape.query_length, queries);
      status != Status::ok) {
    return status;
  }
  if (keys == nullptr) {
    float* projected_keys = take(layout.keys);
    float* projected_values = take(layout.values);
    const Index rows = shape.batch * shape.key_length;
    if (const Status status = linear_forward(call.key, call.memory_keys, rows, projected_keys); status != Status::ok) {
      return status;
    }
    if (const Status status = linear_forward(call.value, call.memory_values, rows, projected_values);
        status != Status::ok) {
      return status;
    }
    keys = projected_keys;
    values = projected_values;
  }
  attention.inputs.queries = split_heads<const float>(queries, shape.query_length, shape.heads, shape.head_dim);
  attention.inputs.keys = split_heads(keys, shape.key_length, shape.kv_heads, shape.head_dim);
  attention.inputs.values = split_heads(values, shape.key_length, shape.kv_heads, shape.value_dim);
  attention.outputs.output = split_heads(heads_output, shape.query_length, shape.heads, shape.value_dim);
  if (const Status status = attention_forward(attention, next, static_cast<std::size_t>(layout.attention_bytes));
      status != Status::ok) {
    return status;
  }
  return linear_forward(call.output_projection, heads_output, shape.batch * shape.query_length, call.output);
}

}  // namespace lookback
