#include <algorithm>

#include "kernels/norm.hpp"
#include "kernels/row_softmax.hpp"
#include "lookback/decoder.hpp"
#include "lookback/embedding.hpp"
#include "lookback/parallel.hpp"
#include "models/decoder_layout.hpp"
#include "models/session_layout.hpp"

namespace lookback {
namespace {

Status validate_layers(const std::int32_t* layers, Index count, Index layer_count) noexcept {
  if (count > 0 && layers == nullptr) return Status::null_pointer;
  for (Index i = 0; i < count; ++i) {
    if (layers[i] < 0 || layers[i] >= layer_count || (i > 0 && layers[i] <= layers[i - 1])) {
      return Status::invalid_range;
    }
  }
  return Status::ok;
}

/// One call: what its parts share.
class Forward {
public:
  Forward(const Decoder& decoder, DecoderSession& session, const DecoderCall& call) noexcept
      : config_(decoder.config()),
        weights_(decoder),
        session_(session),
        call_(call),
        batch_(session.shape().batch),
        rows_(batch_ * call.length),
        layout_(static_cast<SessionHead*>(session.memory())->layout),
        work_(layout_.scratch(session.memory())) {}

  Status validate() noexcept {
    if (thread_count() > layout_.threads) return Status::workspace_too_small;
    if (call_.length < 1 || call_.length > session_.shape().chunk) return Status::invalid_shape;
    if (call_.tokens == nullptr || (call_.logits_of == LogitsOf::all && call_.logits == nullptr)) {
      return Status::null_pointer;
    }
    if (call_.token_lengths != nullptr && session_.shape().rolling) return Status::invalid_argument;
    if (call_.weights != nullptr) {
      const Status status = validate_layers(call_.weight_layers, call_.weight_layer_count, config_.layers);
      if (status != Status::ok) return status;
    }
    if (call_.lens != nullptr) {
      const Status status = validate_layers(call_.lens_layers, call_.lens_layer_count, config_.layers);
      if (status != Status::ok) return status;
    }
    if (const Status status = place_tokens(); status != Status::ok) return status;
    for (Index layer = 0; layer < config_.layers; ++layer) {
      const Status status = validate_attention(attention(layer, call_.weights));
      if (status != Status::ok) return status;
    }
    return Status::ok;
  }

  Status run() noexcept {
    count_padding();
    Status status = embedding_forward({weights_.token_embedding, config_.embed_scale, weights_.position_embedding,
                                       config_.context_length, work_.tokens, work_.positions, rows_, work_.residual});
    turn_tables();
    float* weights = call_.weights;
    float* lens = call_.lens;
    for (Index layer = 0; layer < config_.layers && status == Status::ok; ++layer) {
      const LayerWeights parameters = weights_.layer(layer);
      status = attend(layer, parameters, weights);
      if (status == Status::ok) status = transform(parameters);
      if (status == Status::ok && lens != nullptr && is_chosen(layer, call_.lens_layers, call_.lens_layer_count)) {
        status = read_logits(lens);
        lens += logit_rows() * config_.vocab_size;
      }
    }
    if (status != Status::ok || call_.logits_of == LogitsOf::none) return status;
    if (call_.logits_of == LogitsOf::last) return read_logits(session_.step_logits());
    status = read_logits(call_.logits);
    const Index vocabulary = config_.vocab_size;
    for (Index row = 0; row < batch_; ++row) {
      std::copy_n(call_.logits + last_row(row) * vocabulary, vocabulary, session_.step_logits() + row * vocabulary);
    }
    return status;
  }

private:
  static bool is_chosen(Index layer, const std::int32_t* layers, Index count) noexcept {
    return std::find(layers, layers + count, static_cast<std::int32_t>(layer)) != layers + count;
  }

  [[nodiscard]] Index valid_tokens(Index row) const noexcept {
    return call_.token_lengths != nullptr ? call_.token_lengths[row] : call_.length;
  }

  /// Of all rows B·L the one that is a sequence's last valid token.
  [[nodiscard]] Index last_row(Index row) const noexcept {
    return row * call_.length + std::max<Index>(valid_tokens(row), 1) - 1;
  }

  /// Padding tokens at the start of a row of this call.
  [[nodiscard]] Index new_padding(Index row) const noexcept {
    if (call_.token_mask == nullptr) return 0;
    const std::uint8_t* mask = call_.token_mask + row * call_.length;
    return std::find_if(mask, mask + valid_tokens(row), [](std::uint8_t bit) { return bit != 0; }) - mask;
  }

  /// Which tokens stand at which positions.
  Status place_tokens() noexcept {
    const std::int32_t* lengths = session_.cache(0).lengths();
    const std::int32_t* padded = session_.padding();
    for (Index row = 0; row < batch_; ++row) {
      const Index count = valid_tokens(row);
      if (count < 0 || count > call_.length) return Status::invalid_range;
      const Index skipped = new_padding(row);
      if (skipped > 0 && padded[row] != lengths[row]) return Status::invalid_argument;
      const Index first_position = static_cast<Index>(lengths[row]) - padded[row] - skipped;
      for (Index i = 0; i < call_.length; ++i) {
        const Index at = row * call_.length + i;
        const bool real = i >= skipped && i < count;
        const bool hole = real && call_.token_mask != nullptr && call_.token_mask[at] == 0;
        if (hole) return Status::invalid_argument;
        if (real && (call_.tokens[at] < 0 || call_.tokens[at] >= config_.vocab_size)) {
          return Status::token_out_of_range;
        }
        if (real && first_position + i >= config_.context_length) return Status::context_exceeded;
        work_.tokens[at] = real ? call_.tokens[at] : 0;
        work_.positions[at] = static_cast<std::int32_t>(real ? first_position + i : 0);
      }
    }
    return Status::ok;
  }

  void count_padding() noexcept {
    for (Index row = 0; row < batch_; ++row) {
      session_.padding()[row] += static_cast<std::int32_t>(new_padding(row));
    }
  }

  void turn_tables() noexcept {
    if (config_.rotary.dims == 0) return;
    const bool two = config_.window != 0 && config_.window_rotary_base != 0.0;
    for (const int kind : {0, 1}) {
      if (kind == 0 || two) {
        rotary_table(rotary_of_layer(config_, kind == 1), work_.positions, rows_, work_.frequencies,
                     work_.cosines[kind], work_.sines[kind]);
      }
    }
  }

  /// [B·L, heads · head_dim] as [B, heads, L, head_dim].
  template <typename T>
  [[nodiscard]] BasicView<T> heads_of(T* data, Index heads) const noexcept {
    const Index width = heads * config_.head_dim;
    return {data, call_.length * width, config_.head_dim, width};
  }

  Status multiply(const PackedLinear& layer, const float* input, Index rows, float* output) const noexcept {
    return linear_forward(layer, input, rows, output, work_.workspace, work_.workspace_bytes);
  }

  [[nodiscard]] AttentionCall attention(Index layer, float* weights) const noexcept {
    const KvCache cache = session_.cache(layer);
    AttentionCall attention =
        attention_of_layer(config_, is_windowed(config_, layer), batch_, call_.length, cache.columns());
    attention.inputs.queries = heads_of<const float>(work_.queries, config_.heads);
    attention.inputs.keys = heads_of<const float>(work_.keys, config_.kv_heads);
    attention.inputs.values = heads_of<const float>(work_.values, config_.kv_heads);
    attention.inputs.cache = cache;
    attention.visibility.key_lengths = call_.token_lengths;
    attention.visibility.key_mask = call_.token_mask;
    attention.outputs.output = heads_of(work_.heads_output, config_.heads);
    if (weights != nullptr && is_chosen(layer, call_.weight_layers, call_.weight_layer_count)) {
      const Index heads = call_.weight_heads != nullptr ? call_.weight_head_count : config_.heads;
      attention.outputs.weights = {weights, WeightsKind::softmax, call_.weight_heads, heads, 0, call_.length};
    }
    return attention;
  }

  void normalise_heads(const float* weight, float* data, Index heads) const noexcept {
    static_cast<void>(
        norm_forward({NormKind::rms_norm, config_.norm_epsilon, config_.head_dim, weight, nullptr,
                      heads_of<const float>(data, heads), heads_of(data, heads), batch_, heads, call_.length}));
  }

  void turn(float* data, Index heads, bool windowed) const noexcept {
    const int kind = windowed && config_.window_rotary_base != 0.0 ? 1 : 0;
    static_cast<void>(rotary_apply({heads_of<const float>(data, heads), heads_of(data, heads), batch_, heads,
                                    call_.length, config_.head_dim, config_.rotary.dims, config_.rotary.interleaved,
                                    work_.cosines[kind], work_.sines[kind], call_.length}));
  }

  /// target = norm(source), [row_count, embed_dim].
  void normalise(const float* source, const float* weight, const float* bias, Index row_count,
                 float* target) const noexcept {
    const Index width = config_.embed_dim;
    static_cast<void>(norm_forward({config_.norm,
                                    config_.norm_epsilon,
                                    width,
                                    weight,
                                    bias,
                                    {source, 0, 0, width},
                                    {target, 0, 0, width},
                                    1,
                                    1,
                                    row_count}));
  }

  /// residual += post_norm?(work.normed)
  void add_to_residual(const float* post_norm) const noexcept {
    if (post_norm != nullptr) normalise(work_.normed, post_norm, nullptr, rows_, work_.normed);
    kernels::add_row(work_.normed, rows_ * config_.embed_dim, work_.residual);
  }

  /// Moves `weights` on by what it has written.
  Status attend(Index layer, const LayerWeights& parameters, float*& weights) noexcept {
    normalise(work_.residual, parameters.attention_norm_weight, parameters.attention_norm_bias, rows_, work_.normed);
    Status status = multiply(parameters.query, work_.normed, rows_, work_.queries);
    if (status == Status::ok) status = multiply(parameters.key, work_.normed, rows_, work_.keys);
    if (status == Status::ok) status = multiply(parameters.value, work_.normed, rows_, work_.values);
    if (status != Status::ok) return status;
    if (config_.query_key_norm) {
      normalise_heads(parameters.query_norm_weight, work_.queries, config_.heads);
      normalise_heads(parameters.key_norm_weight, work_.keys, config_.kv_heads);
    }
    if (config_.rotary.dims > 0) {
      turn(work_.queries, config_.heads, is_windowed(config_, layer));
      turn(work_.keys, config_.kv_heads, is_windowed(config_, layer));
    }
    const AttentionCall attended = attention(layer, weights);
    status = attention_forward(attended, work_.workspace, work_.workspace_bytes);
    if (status != Status::ok) return status;
    if (attended.outputs.weights.data != nullptr) {
      weights += batch_ * attended.outputs.weights.head_count * call_.length * attended.shape.key_length;
    }
    status = multiply(parameters.output, work_.heads_output, rows_, work_.normed);
    if (status == Status::ok) add_to_residual(parameters.attention_post_norm_weight);
    return status;
  }

  /// The multi-layer perceptron.
  Status transform(const LayerWeights& parameters) noexcept {
    normalise(work_.residual, parameters.mlp_norm_weight, parameters.mlp_norm_bias, rows_, work_.normed);
    const Index count = rows_ * config_.hidden_dim;
    float* activated = config_.gated ? work_.gate : work_.up;
    Status status = multiply(parameters.up, work_.normed, rows_, work_.up);
    if (status == Status::ok && config_.gated) status = multiply(parameters.gate, work_.normed, rows_, work_.gate);
    if (status != Status::ok) return status;
    status = config_.gated ? gated_activation_forward(config_.activation, activated, work_.up, count, activated)
                           : activation_forward(config_.activation, activated, count, activated);
    if (status == Status::ok) status = multiply(parameters.down, activated, rows_, work_.normed);
    if (status == Status::ok) add_to_residual(parameters.mlp_post_norm_weight);
    return status;
  }

  [[nodiscard]] Index logit_rows() const noexcept {
    return call_.logits_of == LogitsOf::all ? rows_ : call_.logits_of == LogitsOf::last ? batch_ : 0;
  }

  /// The head's reading of the residual stream, of the rows that are asked for.
  Status read_logits(float* logits) noexcept {
    const Index count = logit_rows();
    if (count == 0) return Status::ok;
    const Index width = config_.embed_dim;
    if (call_.logits_of == LogitsOf::all) {
      normalise(work_.residual, weights_.final_norm_weight, weights_.final_norm_bias, count, work_.normed);
    } else {
      for (Index row = 0; row < batch_; ++row) {
        normalise(work_.residual + last_row(row) * width, weights_.final_norm_weight, weights_.final_norm_bias, 1,
                  work_.normed + row * width);
      }
    }
    if (const Status status = multiply(weights_.head, work_.normed, count, logits); status != Status::ok) {
      return status;
    }
    if (config_.logit_softcap > 0.0F) {
      for (Index row = 0; row < count; ++row) {
        kernels::cap_row(logits + row * config_.vocab_size, config_.vocab_size, config_.logit_softcap);
      }
    }
    return Status::ok;
  }

  const DecoderConfig& config_;
  DecoderWeights weights_;
  DecoderSession& session_;
  const DecoderCall& call_;
  Index batch_;
  Index rows_;
  const SessionLayout& layout_;
  DecoderScratch work_;
};

}  // namespace

Status decoder_forward(const Decoder& decoder, DecoderSession& session, const DecoderCall& call) noexcept {
  Forward forward(decoder, session, call);
  const Status status = forward.validate();
  return status != Status::ok ? status : forward.run();
}

}  // namespace lookback
