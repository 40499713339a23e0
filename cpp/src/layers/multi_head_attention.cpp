#include "lookback/multi_head_attention.hpp"

#include <algorithm>
#include <new>

#include "attention/workspace.hpp"
#include "kernels/tile.hpp"

namespace lookback {
namespace {

constexpr Index alignment_floats = 16;  // 64 bytes

/// Keys and values that are to be projected: all of them, or the new ones where a cache holds the others.
Index memory_length(const MultiHeadAttentionCall& call) noexcept {
  return call.attention.inputs.cache ? call.attention.inputs.new_length : call.attention.shape.key_length;
}

/// What a call needs from its beginning to its end, at the start of its workspace; all else follows it.
struct Run {
  MultiHeadAttentionCall call;
  AttentionCall attention;  ///< with operands in the workspace
  float* queries = nullptr;
  float* keys = nullptr;
  float* values = nullptr;
  float* heads_output = nullptr;
  float* cosines = nullptr;
  float* sines = nullptr;
  double* frequencies = nullptr;
  void* linear = nullptr;
  double linear_bytes = 0;
  void* attention_workspace = nullptr;
  double attention_bytes = 0;
  Index attention_items = 0;
  bool attending = false;  ///< all is projected, and the attention has begun
  Status status = Status::ok;
};

/// Sizes of the parts of the workspace, in floats, and of what the attention itself needs, in bytes.
struct Layout {
  double run, queries, keys, values, heads_output, table, frequencies, linear;
  double attention_bytes;

  explicit Layout(const MultiHeadAttentionCall& call) noexcept {
    const AttentionShape& shape = call.attention.shape;
    const Index projected = call.projected_keys != nullptr ? 0 : memory_length(call);
    run = rows(1, 1, sizeof(Run) / sizeof(float));
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
    return (run + queries + keys + values + heads_output + 2 * table + frequencies + linear) * sizeof(float) +
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

/// Lays everything out in `memory`.
Run& lay_out(const MultiHeadAttentionCall& call, const Layout& layout, void* memory) noexcept {
  auto* next = static_cast<float*>(memory);
  const auto take = [&next](double floats) noexcept {
    float* part = next;
    next += kernels::round_up(static_cast<Index>(floats) - alignment_floats + 1, alignment_floats);
    return part;
  };
  Run& run = *new (take(layout.run)) Run;
  run.call = call;
  run.queries = take(layout.queries);
  run.keys = take(layout.keys);
  run.values = take(layout.values);
  run.heads_output = take(layout.heads_output);
  run.cosines = take(layout.table);
  run.sines = take(layout.table);
  run.frequencies = reinterpret_cast<double*>(take(layout.frequencies));
  run.linear = take(layout.linear);
  run.linear_bytes = Layout::linear_bytes(call);
  run.attention_workspace = next;
  run.attention_bytes = layout.attention_bytes;
  return run;
}

/// The attention between the projections.
AttentionCall attention_between(const Run& run) noexcept {
  const AttentionShape& shape = run.call.attention.shape;
  const Index length = memory_length(run.call);
  const bool projected = run.call.projected_keys != nullptr;
  const float* keys = projected ? run.call.projected_keys : run.keys;
  const float* values = projected ? run.call.projected_values : run.values;
  AttentionCall attention = run.call.attention;
  attention.inputs.queries = split_heads<const float>(run.queries, shape.query_length, shape.heads, shape.head_dim);
  attention.inputs.keys = split_heads(keys, length, shape.kv_heads, shape.head_dim);
  attention.inputs.values = split_heads(values, length, shape.kv_heads, shape.value_dim);
  attention.outputs.output = split_heads(run.heads_output, shape.query_length, shape.heads, shape.value_dim);
  return attention;
}

/// Turns queries and keys in place.
Status turn(const Run& run) noexcept {
  const MultiHeadAttentionCall& call = run.call;
  const AttentionShape& shape = call.attention.shape;
  const Index slots = shape.batch * shape.query_length;
  rotary_table(call.rotary, call.positions, slots, run.frequencies, run.cosines, run.sines);
  for (const bool is_key : {false, true}) {
    float* data = is_key ? run.keys : run.queries;
    const Index heads = is_key ? shape.kv_heads : shape.heads;
    const Status status = rotary_apply({split_heads<const float>(data, shape.query_length, heads, shape.head_dim),
                                        split_heads(data, shape.query_length, heads, shape.head_dim), shape.batch,
                                        heads, shape.query_length, shape.head_dim, call.rotary.dims,
                                        call.rotary.interleaved, run.cosines, run.sines, shape.query_length});
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

/// Rows of a projection that are one item of work; linear_forward passes over its weights as often anyway.
constexpr Index item_rows = 128;

/// One projection, as a part of the run.
struct Projection {
  const PackedLinear& layer;
  const float* input;
  float* output;
  Index rows;

  [[nodiscard]] Index items() const noexcept { return (rows + item_rows - 1) / item_rows; }

  [[nodiscard]] Status run(Index from, Index to, const Run& run) const noexcept {
    const Index first = from * item_rows;
    return linear_forward(layer, input + first * layer.inputs, std::min(rows, to * item_rows) - first,
                          output + first * layer.outputs, run.linear, static_cast<std::size_t>(run.linear_bytes));
  }
};

Projection output_of(const Run& run) noexcept {
  const AttentionShape& shape = run.call.attention.shape;
  return {run.call.output_projection, run.heads_output, run.call.output, shape.batch * shape.query_length};
}

/// Those before the attention; a projected memory's have no rows.
struct Projections {
  Projection parts[3];

  explicit Projections(const Run& run) noexcept : Projections(run.call, run) {}

private:
  Projections(const MultiHeadAttentionCall& call, const Run& run) noexcept
      : parts{{call.query, call.input, run.queries, call.attention.shape.batch * call.attention.shape.query_length},
              {call.key, call.memory_keys, run.keys, memory_rows(call)},
              {call.value, call.memory_values, run.values, memory_rows(call)}} {}

  static Index memory_rows(const MultiHeadAttentionCall& call) noexcept {
    return call.projected_keys != nullptr ? 0 : call.attention.shape.batch * memory_length(call);
  }
};

/// After the projections.
void begin_attention(Run& run) noexcept {
  if (run.attending || run.status != Status::ok) return;
  if (run.call.rotary.dims > 0) run.status = turn(run);
  if (run.status != Status::ok) return;
  Index items = 0;
  run.status =
      attention_begin(run.attention, run.attention_workspace, static_cast<std::size_t>(run.attention_bytes), items);
  run.attending = run.status == Status::ok;
}

}  // namespace

double multi_head_attention_workspace_bytes(const MultiHeadAttentionCall& call) noexcept {
  return Layout(call).bytes();
}

Status multi_head_attention_begin(const MultiHeadAttentionCall& call, void* workspace, std::size_t workspace_bytes,
                                  Index& items) noexcept {
  if (const Status status = validate(call); status != Status::ok) return status;
  const Layout layout(call);
  if (workspace == nullptr || static_cast<double>(workspace_bytes) < layout.bytes()) return Status::workspace_too_small;
  Run& run = lay_out(call, layout, workspace);
  run.attention = attention_between(run);
  if (const Status status = validate_attention(run.attention); status != Status::ok) return status;
  run.attention_items = AttentionRun::items(run.attention);
  items = run.attention_items + output_of(run).items();
  for (const Projection& projection : Projections(run).parts) items += projection.items();
  return Status::ok;
}

void multi_head_attention_run(void* workspace, Index from, Index to) noexcept {
  Run& run = *static_cast<Run*>(workspace);
  Index first = 0;  // of the part looked at
  const auto part = [&](Index items, const auto& body) noexcept {
    const Index begin = std::max(from - first, Index{0});
    const Index end = std::min(to - first, items);
    first += items;
    if (begin < end && run.status == Status::ok) body(begin, end);
  };
  const auto project = [&](const Projection& projection) noexcept {
    part(projection.items(), [&](Index begin, Index end) noexcept { run.status = projection.run(begin, end, run); });
  };
  for (const Projection& projection : Projections(run).parts) project(projection);
  part(run.attention_items, [&](Index begin, Index end) noexcept {
    begin_attention(run);
    if (!run.attending) return;
    attention_run(run.attention_workspace, begin, end);
    if (end == run.attention_items) attention_complete(run.attention_workspace);
  });
  project(output_of(run));
}

Status multi_head_attention_end(void* workspace, bool finished) noexcept {
  Run& run = *static_cast<Run*>(workspace);
  if (finished) begin_attention(run);  // where there is no query to have done so
  if (run.attending) attention_end(run.attention_workspace, finished);
  return run.status;
}

Status multi_head_attention_forward(const MultiHeadAttentionCall& call, void* workspace,
                                    std::size_t workspace_bytes) noexcept {
  Index items = 0;
  if (const Status status = multi_head_attention_begin(call, workspace, workspace_bytes, items); status != Status::ok) {
    return status;
  }
  multi_head_attention_run(workspace, 0, items);
  return multi_head_attention_end(workspace, true);
}

}  // namespace lookback
