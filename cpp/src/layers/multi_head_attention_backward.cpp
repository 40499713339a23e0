#include <algorithm>
#include <cstring>

#include "attention/planner.hpp"
#include "kernels/tile.hpp"
#include "lookback/multi_head_attention.hpp"

namespace lookback {
namespace {

Index query_rows(const MultiHeadAttentionCall& call) noexcept {
  return call.attention.shape.batch * call.attention.shape.query_length;
}

Index memory_rows(const MultiHeadAttentionCall& call) noexcept {
  return call.attention.shape.batch * call.attention.shape.key_length;
}

double floats(Index rows, Index width) noexcept { return static_cast<double>(rows) * static_cast<double>(width); }

/// [B, L, heads·width] seen as [B, heads, L, width].
template <typename T>
BasicView<T> split_heads(T* data, Index length, Index heads, Index width) noexcept {
  return {data, length * heads * width, width, heads * width};
}

/// Rows and their gradients, side by side.
struct Pair {
  float* rows = nullptr;
  float* gradients = nullptr;
};

class Backward {
public:
  Backward(const MultiHeadAttentionBackwardCall& call, void* memory) noexcept : call_(call), own_(call.forward) {
    const AttentionShape& shape = own_.attention.shape;
    Planner planner(memory);
    const auto pair = [&planner](Index rows, Index width) noexcept -> Pair {
      return {planner.take<float>(floats(rows, width)), planner.take<float>(floats(rows, width))};
    };
    queries_ = pair(query_rows(own_), own_.query.outputs);
    keys_ = pair(memory_rows(own_), own_.key.outputs);
    values_ = pair(memory_rows(own_), own_.value.outputs);
    heads_ = pair(query_rows(own_), own_.output_projection.inputs);
    log_sum_exp_ = planner.take<float>(floats(query_rows(own_), shape.heads));
    cosines_ = planner.take<float>(floats(query_rows(own_), own_.rotary.dims / 2));
    sines_ = planner.take<float>(floats(query_rows(own_), own_.rotary.dims / 2));
    frequencies_ = planner.take<double>(static_cast<double>(own_.rotary.dims));
    place_operands();
    double panels = 0.0;
    for (const PackedLinear* layer : {&own_.query, &own_.key, &own_.value, &own_.output_projection}) {
      panels = std::max(panels, packed_linear_bytes(layer->inputs, layer->outputs));
    }
    panels_ = planner.take<char>(panels);
    workspace_bytes_ = shared_bytes();
    workspace_ = planner.take<char>(workspace_bytes_);
    bytes_ = planner.bytes();
  }

  [[nodiscard]] double bytes() const noexcept { return bytes_; }

  [[nodiscard]] Status validate() const noexcept {
    if (own_.attention.inputs.cache || own_.projected_keys != nullptr || own_.projected_values != nullptr) {
      return Status::invalid_argument;
    }
    if (query_rows(own_) > 0 &&
        (call_.grad_output == nullptr || call_.grad_input == nullptr || own_.input == nullptr)) {
      return Status::null_pointer;
    }
    if (memory_rows(own_) > 0 && (call_.grad_memory_keys == nullptr || call_.grad_memory_values == nullptr ||
                                  own_.memory_keys == nullptr || own_.memory_values == nullptr)) {
      return Status::null_pointer;
    }
    for (const ProjectionGradients* each : {&call_.query, &call_.key, &call_.value, &call_.output_projection}) {
      if (each->weight == nullptr) return Status::null_pointer;
    }
    const AttentionShape& shape = own_.attention.shape;
    if (own_.query.outputs != shape.heads * shape.head_dim || own_.key.outputs != shape.kv_heads * shape.head_dim ||
        own_.value.outputs != shape.kv_heads * shape.value_dim ||
        own_.output_projection.inputs != shape.heads * shape.value_dim) {
      return Status::invalid_heads;
    }
    if (own_.rotary.dims > 0) {
      if (own_.positions == nullptr && shape.query_length > 0) return Status::null_pointer;
      if (shape.query_length != shape.key_length) return Status::invalid_argument;
      if (const Status status = validate_rotary(own_.rotary, shape.head_dim); status != Status::ok) return status;
    }
    return validate_attention_backward(attention_);
  }

  Status run() noexcept {
    Status status = project(own_.query, own_.input, query_rows(own_), queries_.rows);
    if (status == Status::ok) status = project(own_.key, own_.memory_keys, memory_rows(own_), keys_.rows);
    if (status == Status::ok) status = project(own_.value, own_.memory_values, memory_rows(own_), values_.rows);
    if (status != Status::ok) return status;
    if (own_.rotary.dims > 0) {
      rotary_table(own_.rotary, own_.positions, query_rows(own_), frequencies_, cosines_, sines_);
      status = turn(queries_.rows, keys_.rows, false);
    }
    if (status == Status::ok) status = attention_forward(attention_.forward, workspace_, workspace_size());
    if (status == Status::ok) {
      status = back(own_.output_projection, heads_.rows, call_.grad_output, query_rows(own_), heads_.gradients, false,
                    call_.output_projection);
    }
    if (status == Status::ok) status = attention_backward(attention_, workspace_, workspace_size());
    if (status == Status::ok && own_.rotary.dims > 0) status = turn(queries_.gradients, keys_.gradients, true);
    if (status == Status::ok) {
      status = back(own_.query, own_.input, queries_.gradients, query_rows(own_), call_.grad_input, false, call_.query);
    }
    const bool own_memory = call_.grad_memory_keys == call_.grad_input;
    if (status == Status::ok) {
      status = back(own_.key, own_.memory_keys, keys_.gradients, memory_rows(own_), call_.grad_memory_keys, own_memory,
                    call_.key);
    }
    const bool adds =
        call_.grad_memory_values == call_.grad_memory_keys || call_.grad_memory_values == call_.grad_input;
    if (status == Status::ok) {
      status = back(own_.value, own_.memory_values, values_.gradients, memory_rows(own_), call_.grad_memory_values,
                    adds, call_.value);
    }
    return status;
  }

private:
  [[nodiscard]] std::size_t workspace_size() const noexcept { return static_cast<std::size_t>(workspace_bytes_); }

  /// The attention between the projections, forward and backward.
  void place_operands() noexcept {
    const AttentionShape& shape = own_.attention.shape;
    AttentionCall& forward = attention_.forward;
    forward = own_.attention;
    forward.inputs.queries = split_heads<const float>(queries_.rows, shape.query_length, shape.heads, shape.head_dim);
    forward.inputs.keys = split_heads<const float>(keys_.rows, shape.key_length, shape.kv_heads, shape.head_dim);
    forward.inputs.values = split_heads<const float>(values_.rows, shape.key_length, shape.kv_heads, shape.value_dim);
    forward.outputs = {};
    forward.outputs.output = split_heads(heads_.rows, shape.query_length, shape.heads, shape.value_dim);
    forward.outputs.log_sum_exp = log_sum_exp_;
    attention_.output = split_heads<const float>(heads_.rows, shape.query_length, shape.heads, shape.value_dim);
    attention_.log_sum_exp = log_sum_exp_;
    attention_.grad_output =
        split_heads<const float>(heads_.gradients, shape.query_length, shape.heads, shape.value_dim);
    attention_.grad_queries = split_heads(queries_.gradients, shape.query_length, shape.heads, shape.head_dim);
    attention_.grad_keys = split_heads(keys_.gradients, shape.key_length, shape.kv_heads, shape.head_dim);
    attention_.grad_values = split_heads(values_.gradients, shape.key_length, shape.kv_heads, shape.value_dim);
  }

  /// Of the steps that come one after another.
  [[nodiscard]] double shared_bytes() const noexcept {
    float asked = 0.0F;  // its address says that a gradient is
    double bytes =
        std::max(attention_workspace_bytes(attention_.forward), attention_backward_workspace_bytes(attention_));
    for (const PackedLinear* layer : {&own_.query, &own_.key, &own_.value, &own_.output_projection}) {
      const bool of_memory = layer == &own_.key || layer == &own_.value;
      const Index rows = of_memory ? memory_rows(own_) : query_rows(own_);
      bytes = std::max(bytes, linear_workspace_bytes(*layer, rows));
      LinearBackwardCall gradients{.layer = *layer, .rows = rows};
      gradients.grad_input = gradients.grad_weight = gradients.grad_bias = &asked;
      bytes = std::max(bytes, linear_backward_workspace_bytes(gradients));
    }
    return bytes;
  }

  Status project(const PackedLinear& layer, const float* input, Index rows, float* output) const noexcept {
    return linear_forward(layer, input, rows, output, workspace_, workspace_size());
  }

  Status back(const PackedLinear& layer, const float* input, const float* grad_output, Index rows, float* grad_input,
              bool adds, const ProjectionGradients& gradients) const noexcept {
    std::memset(panels_, 0, static_cast<std::size_t>(packed_linear_bytes(layer.inputs, layer.outputs)));
    if (gradients.bias != nullptr) std::fill_n(gradients.bias, layer.outputs, 0.0F);
    const Status status = linear_backward(
        {layer, input, grad_output, rows, grad_input, adds, reinterpret_cast<float*>(panels_), gradients.bias},
        workspace_, workspace_size());
    if (status != Status::ok) return status;
    return unpack_linear({panels_, nullptr, layer.inputs, layer.outputs, {}}, 0, layer.outputs, gradients.weight);
  }

  Status turn(float* queries, float* keys, bool transposed) const noexcept {
    const AttentionShape& shape = own_.attention.shape;
    const auto apply = [&](float* data, Index heads) noexcept {
      return rotary_apply({split_heads<const float>(data, shape.query_length, heads, shape.head_dim),
                           split_heads(data, shape.query_length, heads, shape.head_dim), shape.batch, heads,
                           shape.query_length, shape.head_dim, own_.rotary.dims, own_.rotary.interleaved, cosines_,
                           sines_, shape.query_length, transposed});
    };
    const Status status = apply(queries, shape.heads);
    return status == Status::ok ? apply(keys, shape.kv_heads) : status;
  }

  const MultiHeadAttentionBackwardCall& call_;
  const MultiHeadAttentionCall& own_;
  AttentionBackwardCall attention_;
  Pair queries_, keys_, values_, heads_;
  float* log_sum_exp_ = nullptr;
  float* cosines_ = nullptr;
  float* sines_ = nullptr;
  double* frequencies_ = nullptr;
  char* panels_ = nullptr;
  char* workspace_ = nullptr;
  double workspace_bytes_ = 0;
  double bytes_ = 0;
};

}  // namespace

double multi_head_attention_backward_workspace_bytes(const MultiHeadAttentionBackwardCall& call) noexcept {
  return Backward(call, nullptr).bytes();
}

Status multi_head_attention_backward(const MultiHeadAttentionBackwardCall& call, void* workspace,
                                     std::size_t workspace_bytes) noexcept {
  if (workspace == nullptr) return Status::workspace_too_small;
  Backward backward(call, workspace);
  if (const Status status = backward.validate(); status != Status::ok) return status;
  if (static_cast<double>(workspace_bytes) < backward.bytes()) {
    return Status::workspace_too_small;
  }
  return backward.run();
}

}  // namespace lookback
