#include "models/trainer_layout.hpp"

#include <algorithm>
#include <cmath>

#include "lookback/parallel.hpp"
#include "models/session_layout.hpp"

namespace lookback {
namespace {

constexpr double alignment = 64;
/// Logits that are there at once.
constexpr double most_logits = 16.0 * 1024 * 1024;

template <typename T>
T* at(void* memory, double offset) noexcept {
  return reinterpret_cast<T*>(static_cast<char*>(memory) + static_cast<std::size_t>(offset));
}

double attention_bytes(const DecoderConfig& config, const TrainingShape& shape, bool windowed) noexcept {
  AttentionBackwardCall call;
  call.forward = training_attention(config, shape, windowed);
  return std::max(attention_workspace_bytes(call.forward), attention_backward_workspace_bytes(call));
}

double linear_bytes(const DecoderConfig& config, Index rows) noexcept {
  const Index embed_dim = config.embed_dim;
  const Index queries = static_cast<Index>(config.heads) * config.head_dim;
  const Index maps[][2] = {{embed_dim, queries},
                           {queries, embed_dim},
                           {embed_dim, config.hidden_dim},
                           {config.hidden_dim, embed_dim},
                           {embed_dim, config.vocab_size}};
  double most = 0;
  for (const auto& [inputs, outputs] : maps) {
    // Only whether a pointer is there is looked at.
    float asked = 0;
    LinearBackwardCall call;
    call.layer = {nullptr, nullptr, inputs, outputs, config.format};
    call.rows = rows;
    call.grad_input = call.grad_weight = call.grad_bias = &asked;
    most = std::max(most, linear_backward_workspace_bytes(call));
  }
  return most;
}

double norm_bytes(const DecoderConfig& config, Index rows) noexcept {
  double most = 0;
  for (const Index width : {static_cast<Index>(config.embed_dim), static_cast<Index>(config.head_dim)}) {
    float asked = 0;
    NormBackwardCall call;
    call.forward.width = width;
    call.forward.length = rows;
    call.grad_weight = call.grad_bias = &asked;
    most = std::max(most, norm_backward_workspace_bytes(call));
  }
  return most;
}

}  // namespace

bool is_trainer_of(const TrainerHead& head, const DecoderConfig& config) noexcept {
  // All that decides where things are and how wide they are; other settings may differ.
  const DecoderConfig& own = head.config;
  const auto same = [&](auto member) { return own.*member == config.*member; };
  using Config = DecoderConfig;
  return same(&Config::vocab_size) && same(&Config::layers) && same(&Config::embed_dim) && same(&Config::heads) &&
         same(&Config::kv_heads) && same(&Config::head_dim) && same(&Config::hidden_dim) &&
         same(&Config::context_length) && same(&Config::norm) && same(&Config::gated) &&
         same(&Config::learned_positions) && same(&Config::tied_head) && same(&Config::query_key_value_bias) &&
         same(&Config::output_bias) && same(&Config::mlp_bias) && same(&Config::query_key_norm) &&
         same(&Config::post_norms) && own.rotary.dims == config.rotary.dims && config.format.type == WeightType::f32;
}

AttentionCall training_attention(const DecoderConfig& config, const TrainingShape& shape, bool windowed) noexcept {
  AttentionCall call = attention_of_layer(config, windowed, shape.batch, shape.length, 0);
  call.inputs.new_length = 0;
  return call;
}

double TrainerLayout::take(double byte_count) noexcept {
  const double start = next_;
  next_ += std::ceil(byte_count / alignment) * alignment;
  return start;
}

TrainerLayout::TrainerLayout(const DecoderConfig& config, const TrainingShape& shape) noexcept
    : threads(thread_count()) {
  const double rows = static_cast<double>(shape.batch) * shape.length;
  const auto table = [&](double width, bool exists = true) {
    return take(exists ? rows * width * sizeof(float) : 0.0);
  };
  const double embed_dim = config.embed_dim;
  const double hidden_dim = config.hidden_dim;
  const double queries = static_cast<double>(config.heads) * config.head_dim;
  const double keys = static_cast<double>(config.kv_heads) * config.head_dim;
  take(sizeof(TrainerHead));
  const double decoder_bytes = Decoder::bytes(config);
  gradients = take(decoder_bytes);
  first_moments = take(decoder_bytes);
  second_moments = take(decoder_bytes);

  first_layer_ = next_;
  next_ = 0;
  input_ = table(embed_dim);
  middle_ = table(embed_dim);
  plain_queries_ = table(queries, config.query_key_norm);
  plain_keys_ = table(keys, config.query_key_norm);
  queries_ = table(queries);
  keys_ = table(keys);
  values_ = table(keys);
  heads_output_ = table(queries);
  log_sum_exp_ = table(config.heads);
  attention_branch_ = table(embed_dim, config.post_norms);
  gate_ = table(hidden_dim, config.gated);
  up_ = table(hidden_dim);
  mlp_branch_ = table(embed_dim, config.post_norms);
  layer_bytes_ = next_;
  next_ = first_layer_ + layer_bytes_ * static_cast<double>(config.layers);
  table(embed_dim);  // the last layer's output

  positions_ = table(1);
  normed_ = table(embed_dim);
  branch_ = table(embed_dim);
  hidden_ = table(hidden_dim);
  grad_residual_ = table(embed_dim);
  grad_normed_ = table(embed_dim);
  grad_queries_ = table(queries);
  grad_keys_ = table(keys);
  grad_values_ = table(keys);
  grad_heads_ = table(queries);
  grad_hidden_ = table(hidden_dim);
  grad_up_ = table(hidden_dim, config.gated);
  const double chunk = std::max(1.0, std::min(std::floor(most_logits / config.vocab_size), rows));
  logit_rows = static_cast<Index>(chunk);
  logits_ = take(chunk * config.vocab_size * sizeof(float));
  losses_ = take(rows * sizeof(double));
  for (const int kind : {0, 1}) {
    cosines_[kind] = table(static_cast<double>(config.rotary.dims / 2));
    sines_[kind] = table(static_cast<double>(config.rotary.dims / 2));
  }
  frequencies_ = take(static_cast<double>(config.rotary.dims / 2) * sizeof(double));
  const auto row_count = static_cast<Index>(rows);
  workspace_bytes_ = std::max({attention_bytes(config, shape, false), attention_bytes(config, shape, true),
                               linear_bytes(config, row_count), norm_bytes(config, row_count),
                               gradient_norm_workspace_bytes(static_cast<Index>(decoder_bytes / sizeof(float)))});
  workspace_ = take(workspace_bytes_);
  bytes = next_;
}

LayerActivations TrainerLayout::activations(void* memory, Index layer) const noexcept {
  const double start = first_layer_ + layer_bytes_ * static_cast<double>(layer);
  const auto table = [&](double offset) { return at<float>(memory, start + offset); };
  return {table(input_), table(middle_), table(plain_queries_), table(plain_keys_),  table(queries_),
          table(keys_),  table(values_), table(heads_output_),  table(log_sum_exp_), table(attention_branch_),
          table(gate_),  table(up_),     table(mlp_branch_)};
}

TrainerScratch TrainerLayout::scratch(void* memory) const noexcept {
  const auto table = [&](double offset) { return at<float>(memory, offset); };
  return {at<std::int32_t>(memory, positions_),
          table(normed_),
          table(branch_),
          table(hidden_),
          table(grad_residual_),
          table(grad_normed_),
          table(grad_queries_),
          table(grad_keys_),
          table(grad_values_),
          table(grad_heads_),
          table(grad_hidden_),
          table(grad_up_),
          table(logits_),
          at<double>(memory, losses_),
          {table(cosines_[0]), table(cosines_[1])},
          {table(sines_[0]), table(sines_[1])},
          at<double>(memory, frequencies_),
          at<void>(memory, workspace_),
          static_cast<std::size_t>(workspace_bytes_)};
}

}  // namespace lookback
