#include "lookback/multi_head_attention.hpp"

#include <algorithm>

#include "kernels/tile.hpp"

namespace lookback {
namespace {

constexpr Index alignment_floats = 16;  // 64 bytes

/// Keys and values that are to be projected: all of them, or the new ones where a cache holds the others.
Index memory_length(const MultiHeadAttentionCall& call) noexcept {
  return call.attention.inputs.cache ? call.attention.inputs.new_length : call.attention.shape.key_length;
}

/// Sizes of the parts of the workspace, in floats, and of what the attention itself needs, in bytes.
struct Layout {
  double queries, keys, values, heads_output, table, frequencies, linear;
  double attention_bytes;

  explicit Layout(const MultiHeadAttentionCall& call) noexcept {
    const AttentionShape& shape = call.attention.shape;
    const Index projected = call.projected_keys != nullptr ? 0 : memory_length(call);
    queries = rows(shape.batch, shape.query_length, call.query.outputs);
    keys = rows(shape.batch, projected, call.key.outputs);
    values = rows(shape.batch, projected, call.value.outputs);
    heads_output = rows(shape.batch, shape.query_length, call.output_projection.inputs);
    table = rows(shape.batch, shape.query_length, call.rotary.dims / 2);
    frequencies = rows(1, 1, call.rotary.dims);
    linear = linear_bytes(call) / sizeof(float) + static_cast<double>(alignment_floats);
    attention_bytes = attention_workspace_bytes(call.attention);
  }

  [[nodiscard]] double bytes() const noexcept {
    return (queries + keys + values + heads_output + 2 * table + frequencies + linear) * sizeof(float) +
           attention_bytes;
  }

  /// Projections come one after another and share their scratch memory.
  [[nodiscard]] static double linear_bytes(const MultiHeadAttentionCall& call) noexcept {
    const AttentionShape& shape = call.attention.shape;
    double bytes = 0.0;
    for (const PackedLinear* layer : {&call.query, &call.output_projection}) {
      bytes = std::max(bytes, linear_workspace_bytes(*layer, shape.batch * shape.query_length));
    }
    if (call.projected_keys != nullptr) return bytes;
    for (const PackedLinear* layer : {&call.key, &call.value}) {
      bytes = std::max(bytes, linear_workspace_bytes(*layer, shape.batch * memory_length(call)));
    }
    return bytes;
  }

private:
  static double rows(Index batch, Index length, Index width) noexcept {
    const double floats = static_cast<double>(batch) * static_cast<double>(length) * static_cast<double>(width);
    return floats + static_cast<double>(alignment_floats);
  }
};

/// Hands out the parts.
class Parts {
public:
  explicit Parts(void* workspace) noexcept : next_(static_cast<float*>(workspace)) {}

  float* take(double floats) noexcept {
    float* part = next_;
    next_ += kernels::round_up(static_cast<Index>(floats) - alignment_floats + 1, alignment_floats);
    return part;
  }

  [[nodiscard]] void* rest() const noexcept { return next_; }

private:
  float* next_;
};

/// What linear_forward() will ask for; asked beforehand, so that no call fails after its attention has written results.
Status validate_projection(const PackedLinear& layer, Index rows) noexcept {
  if (layer.inputs < 1 || layer.outputs < 1) return Status::invalid_shape;
  return rows > 0 && layer.weight == nullptr ? Status::null_pointer : validate_linear(layer.format);
}

Status validate_projections(const MultiHeadAttentionCall& call) noexcept {
  for (const PackedLinear* layer : {&call.query, &call.output_projection}) {
    const Status status = validate_projection(*layer, call.attention.shape.query_length);
    if (status != Status::ok) return status;
  }
  if (call.projected_keys != nullptr) return Status::ok;  // then only the outputs of key and value are looked at
  for (const PackedLinear* layer : {&call.key, &call.value}) {
    const Status status = validate_projection(*layer, memory_length(call));
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

Status validate(const MultiHeadAttentionCall& call) noexcept {
  const AttentionShape& shape = call.attention.shape;
  if (shape.batch < 1 || shape.query_length < 0 || shape.key_length < 0 || memory_length(call) < 0) {
    return Status::invalid_shape;
  }
  if (call.query.outputs != shape.heads * shape.head_dim || call.key.outputs != shape.kv_heads * shape.head_dim ||
      call.value.outputs != shape.kv_heads * shape.value_dim ||
      call.output_projection.inputs != shape.heads * shape.value_dim) {
    return Status::invalid_heads;
  }
  if ((call.projected_keys == nullptr) != (call.projected_values == nullptr)) return Status::null_pointer;
  const bool needs_memory = memory_length(call) > 0 && call.projected_keys == nullptr;
  if (needs_memory && (call.memory_keys == nullptr || call.memory_values == nullptr)) return Status::null_pointer;
  if (shape.query_length > 0 && (call.input == nullptr || call.output == nullptr)) return Status::null_pointer;
  if (const Status status = validate_projections(call); status != Status::ok) return status;
  if (call.rotary.dims == 0) return Status::ok;
  if (call.positions == nullptr && shape.query_length > 0) return Status::null_pointer;
  if (call.projected_keys != nullptr || memory_length(call) != shape.query_length) return Status::invalid_argument;
  return validate_rotary(call.rotary, shape.head_dim);
}

/// [B, L, heads·width] seen as [B, heads, L, width].
template <typename T>
BasicView<T> split_heads(T* data, Index length, Index heads, Index width) noexcept {
  return {data, length * heads * width, width, heads * width};
}

/// Turns queries and keys in place.
Status turn(const MultiHeadAttentionCall& call, const Layout& layout, Parts& parts, float* queries,
            float* keys) noexcept {
  const AttentionShape& shape = call.attention.shape;
  float* cosines = parts.take(layout.table);
  float* sines = parts.take(layout.table);
  auto* frequencies = reinterpret_cast<double*>(parts.take(layout.frequencies));
  rotary_table(call.rotary, call.positions, shape.batch * shape.query_length, frequencies, cosines, sines);
  for (const bool is_key : {false, true}) {
    float* data = is_key ? keys : queries;
    const Index heads = is_key ? shape.kv_heads : shape.heads;
    const Status status = rotary_apply({split_heads<const float>(data, shape.query_length, heads, shape.head_dim),
                                        split_heads(data, shape.query_length, heads, shape.head_dim), shape.batch,
                                        heads, shape.query_length, shape.head_dim, call.rotary.dims,
                                        call.rotary.interleaved, cosines, sines, shape.query_length});
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

/// linear_forward() in its part of the workspace.
struct Linears {
  void* workspace;
  std::size_t bytes;

  [[nodiscard]] Status forward(const PackedLinear& layer, const float* input, Index rows,
                               float* output) const noexcept {
    return linear_forward(layer, input, rows, output, workspace, bytes);
  }
};

/// Keys and values of the memory, in parts of the workspace.
Status project_memory(const MultiHeadAttentionCall& call, const Layout& layout, const Linears& linears, Parts& parts,
                      float*& keys, float*& values) noexcept {
  keys = parts.take(layout.keys);
  values = parts.take(layout.values);
  const Index rows = call.attention.shape.batch * memory_length(call);
  const Status status = linears.forward(call.key, call.memory_keys, rows, keys);
  return status != Status::ok ? status : linears.forward(call.value, call.memory_values, rows, values);
}

}  // namespace

double multi_head_attention_workspace_bytes(const MultiHeadAttentionCall& call) noexcept {
  return Layout(call).bytes();
}

Status multi_head_attention_forward(const MultiHeadAttentionCall& call, void* workspace,
                                    std::size_t workspace_bytes) noexcept {
  if (const Status status = validate(call); status != Status::ok) return status;
  const Layout layout(call);
  if (workspace == nullptr || static_cast<double>(workspace_bytes) < layout.bytes()) return Status::workspace_too_small;

  const AttentionShape& shape = call.attention.shape;
  Parts parts(workspace);
  float* queries = parts.take(layout.queries);
  float* heads_output = parts.take(layout.heads_output);
  const Linears linears{parts.take(layout.linear), static_cast<std::size_t>(Layout::linear_bytes(call))};
  Status status = linears.forward(call.query, call.input, shape.batch * shape.query_length, queries);
  if (status != Status::ok) return status;
  const float* keys = call.projected_keys;
  const float* values = call.projected_values;
  if (keys == nullptr) {
    float* own_keys = nullptr;
    float* own_values = nullptr;
    status = project_memory(call, layout, linears, parts, own_keys, own_values);
    if (status == Status::ok && call.rotary.dims > 0) status = turn(call, layout, parts, queries, own_keys);
    if (status != Status::ok) return status;
    keys = own_keys;
    values = own_values;
  }

  const Index length = memory_length(call);
  AttentionCall attention = call.attention;
  attention.inputs.queries = split_heads<const float>(queries, shape.query_length, shape.heads, shape.head_dim);
  attention.inputs.keys = split_heads(keys, length, shape.kv_heads, shape.head_dim);
  attention.inputs.values = split_heads(values, length, shape.kv_heads, shape.value_dim);
  attention.outputs.output = split_heads(heads_output, shape.query_length, shape.heads, shape.value_dim);
  status = attention_forward(attention, parts.rest(), static_cast<std::size_t>(layout.attention_bytes));
  if (status != Status::ok) return status;
  return linears.forward(call.output_projection, heads_output, shape.batch * shape.query_length, call.output);
}

}  // namespace lookback
