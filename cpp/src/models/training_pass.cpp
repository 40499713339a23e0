#include "models/training_pass.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/dropout.hpp"
#include "kernels/norm.hpp"
#include "lookback/cross_entropy.hpp"
#include "lookback/parallel.hpp"
#include "models/session_layout.hpp"

namespace lookback {
namespace {

/// Elements that one item of work adds.
constexpr Index block = 4096;
/// Where the keys of a layer's attention are, beside those of its branches.
constexpr Index attention_stream = 2;

std::uint64_t seed_of_layer(std::uint64_t seed, Index layer) noexcept {
  const kernels::DropoutKey key = kernels::dropout_key(seed, layer, attention_stream, 0);
  return static_cast<std::uint64_t>(key.second) << 32U | key.first;
}

}  // namespace

TrainingPass::TrainingPass(const Decoder& decoder, const DecoderTrainer& trainer, const TrainingBatch& batch) noexcept
    : config_(decoder.config()),
      weights_(decoder),
      decoder_(static_cast<const char*>(decoder.memory())),
      trainer_(trainer),
      head_(head_of(trainer)),
      batch_(batch),
      shape_(head_.shape),
      rows_(static_cast<Index>(shape_.batch) * shape_.length),
      work_(head_.layout.scratch(trainer.memory())) {}

Status TrainingPass::validate() const noexcept {
  if (!is_trainer_of(head_, config_)) return Status::invalid_shape;
  if (thread_count() > head_.layout.threads) return Status::workspace_too_small;
  if (batch_.tokens == nullptr || batch_.targets == nullptr) return Status::null_pointer;
  if (!std::isfinite(batch_.gradient_scale)) return Status::invalid_argument;
  for (Index row = 0; row < rows_; ++row) {
    if (batch_.tokens[row] < 0 || batch_.tokens[row] >= config_.vocab_size || batch_.targets[row] < -1 ||
        batch_.targets[row] >= config_.vocab_size) {
      return Status::token_out_of_range;
    }
  }
  for (const Index layer : {Index{0}, static_cast<Index>(config_.layers) - 1}) {
    const Status status = validate_attention(attention(layer, activations(layer)));
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

EmbeddingCall TrainingPass::embedding() const noexcept {
  return {weights_.token_embedding,
          config_.embed_scale,
          weights_.position_embedding,
          config_.context_length,
          batch_.tokens,
          work_.positions,
          rows_,
          activations(0).input};
}

AttentionCall TrainingPass::attention(Index layer, const LayerActivations& kept) const noexcept {
  AttentionCall call = training_attention(config_, shape_, is_windowed(config_, layer));
  call.inputs.queries = heads_of<const float>(kept.queries, config_.heads);
  call.inputs.keys = heads_of<const float>(kept.keys, config_.kv_heads);
  call.inputs.values = heads_of<const float>(kept.values, config_.kv_heads);
  call.visibility.causal = batch_.causal;
  call.scores.dropout = {batch_.dropout.p, seed_of_layer(batch_.dropout.seed, layer)};
  call.outputs.output = heads_of(kept.heads_output, config_.heads);
  call.outputs.log_sum_exp = kept.log_sum_exp;
  return call;
}

NormCall TrainingPass::norm_of_rows(const float* input, const float* weight, const float* bias,
                                    float* output) const noexcept {
  const Index width = config_.embed_dim;
  return {config_.norm,         config_.norm_epsilon,  width, weight, bias,
          {input, 0, 0, width}, {output, 0, 0, width}, 1,     1,      rows_};
}

NormCall TrainingPass::norm_of_heads(const float* input, const float* weight, Index heads,
                                     float* output) const noexcept {
  return {NormKind::rms_norm,     config_.norm_epsilon,    config_.head_dim, weight, nullptr,
          heads_of(input, heads), heads_of(output, heads), shape_.batch,     heads,  shape_.length};
}

LayerActivations TrainingPass::activations(Index layer) const noexcept {
  return head_.layout.activations(trainer_.memory(), layer);
}

[[gnu::noinline]] void TrainingPass::normalise(const float* input, const float* weight, const float* bias) noexcept {
  if (status_ == Status::ok) status_ = norm_forward(norm_of_rows(input, weight, bias, work_.normed));
}

[[gnu::noinline]] void TrainingPass::normalise_heads(const float* input, const float* weight, Index heads,
                                                     float* output) noexcept {
  if (status_ == Status::ok) status_ = norm_forward(norm_of_heads(input, weight, heads, output));
}

[[gnu::noinline]] void TrainingPass::multiply(const PackedLinear& layer, const float* input, float* output) noexcept {
  if (status_ != Status::ok) return;
  status_ = linear_forward(layer, input, rows_, output, work_.workspace, work_.workspace_bytes);
}

void TrainingPass::turn(float* data, Index heads, Index layer, bool transposed) const noexcept {
  if (config_.rotary.dims == 0) return;
  const int kind = is_windowed(config_, layer) && config_.window_rotary_base != 0.0 ? 1 : 0;
  static_cast<void>(rotary_apply({heads_of<const float>(data, heads), heads_of(data, heads), shape_.batch, heads,
                                  shape_.length, config_.head_dim, config_.rotary.dims, config_.rotary.interleaved,
                                  work_.cosines[kind], work_.sines[kind], shape_.length, transposed}));
}

void TrainingPass::turn_tables() const noexcept {
  if (config_.rotary.dims == 0) return;
  const bool two = config_.window != 0 && config_.window_rotary_base != 0.0;
  for (const int kind : {0, 1}) {
    if (kind == 0 || two) {
      rotary_table(rotary_of_layer(config_, kind == 1), work_.positions, rows_, work_.frequencies, work_.cosines[kind],
                   work_.sines[kind]);
    }
  }
}

void TrainingPass::add(const float* a, const float* b, float* sum) const noexcept {
  const Index count = rows_ * config_.embed_dim;
  parallel_for(0, (count + block - 1) / block, static_cast<double>(count), [&](Index item, Index) noexcept {
    const Index first = item * block;
    const Index length = std::min(block, count - first);
    std::copy_n(a + first, length, sum + first);
    kernels::add_row(b + first, length, sum + first);
  });
}

void TrainingPass::drop(Index layer, Branch branch) const noexcept {
  if (batch_.dropout.p == 0.0F) return;
  const kernels::DropoutRule rule(batch_.dropout.p);
  const Index width = config_.embed_dim;
  constexpr double cost_of_element = 13.0;
  parallel_for(0, rows_, cost_of_element * static_cast<double>(rows_ * width), [&](Index row, Index) noexcept {
    const kernels::DropoutKey key = kernels::dropout_key(batch_.dropout.seed, layer, static_cast<Index>(branch), row);
    kernels::drop_row(work_.branch + row * width, width, key, rule);
  });
}

void TrainingPass::forward() noexcept {
  for (Index row = 0; row < rows_; ++row) work_.positions[row] = static_cast<std::int32_t>(row % shape_.length);
  turn_tables();
  status_ = embedding_forward(embedding());
  for (Index layer = 0; layer < config_.layers; ++layer) {
    attend(layer);
    transform(layer);
  }
}

void TrainingPass::attend(Index layer) noexcept {
  const LayerWeights parameters = weights_.layer(layer);
  const LayerActivations kept = activations(layer);
  const bool head_norms = config_.query_key_norm;
  float* queries = head_norms ? kept.plain_queries : kept.queries;
  float* keys = head_norms ? kept.plain_keys : kept.keys;
  normalise(kept.input, parameters.attention_norm_weight, parameters.attention_norm_bias);
  multiply(parameters.query, work_.normed, queries);
  multiply(parameters.key, work_.normed, keys);
  multiply(parameters.value, work_.normed, kept.values);
  if (head_norms) {
    normalise_heads(queries, parameters.query_norm_weight, config_.heads, kept.queries);
    normalise_heads(keys, parameters.key_norm_weight, config_.kv_heads, kept.keys);
  }
  turn(kept.queries, config_.heads, layer, false);
  turn(kept.keys, config_.kv_heads, layer, false);
  if (status_ != Status::ok) return;
  status_ = attention_forward(attention(layer, kept), work_.workspace, work_.workspace_bytes);
  add_branch(layer, Branch::attention, parameters.output, kept.heads_output, kept.input, kept.middle);
}

void TrainingPass::transform(Index layer) noexcept {
  const LayerWeights parameters = weights_.layer(layer);
  const LayerActivations kept = activations(layer);
  normalise(kept.middle, parameters.mlp_norm_weight, parameters.mlp_norm_bias);
  multiply(parameters.up, work_.normed, kept.up);
  if (config_.gated) multiply(parameters.gate, work_.normed, kept.gate);
  activate(kept);
  add_branch(layer, Branch::mlp, parameters.down, work_.hidden, kept.middle, activations(layer + 1).input);
}

void TrainingPass::activate(const LayerActivations& kept) noexcept {
  if (status_ != Status::ok) return;
  const Index count = rows_ * config_.hidden_dim;
  status_ = config_.gated ? gated_activation_forward(config_.activation, kept.gate, kept.up, count, work_.hidden)
                          : activation_forward(config_.activation, kept.up, count, work_.hidden);
}

void TrainingPass::add_branch(Index layer, Branch branch, const PackedLinear& map, const float* input,
                              const float* stream, float* sum) noexcept {
  const bool is_mlp = branch == Branch::mlp;
  if (config_.post_norms) {
    const LayerActivations kept = activations(layer);
    const LayerWeights parameters = weights_.layer(layer);
    float* before_norm = is_mlp ? kept.mlp_branch : kept.attention_branch;
    multiply(map, input, before_norm);
    const float* weight = is_mlp ? parameters.mlp_post_norm_weight : parameters.attention_post_norm_weight;
    if (status_ == Status::ok) status_ = norm_forward(norm_of_rows(before_norm, weight, nullptr, work_.branch));
  } else {
    multiply(map, input, work_.branch);
  }
  drop(layer, branch);
  add(stream, work_.branch, sum);
}

void TrainingPass::read_out(bool with_gradients, double& loss_sum) noexcept {
  const float* stream = activations(config_.layers).input;
  normalise(stream, weights_.final_norm_weight, weights_.final_norm_bias);
  const Index width = config_.embed_dim;
  for (Index first = 0; first < rows_ && status_ == Status::ok; first += head_.layout.logit_rows) {
    const Index count = std::min(head_.layout.logit_rows, rows_ - first);
    const float* normed = work_.normed + first * width;
    status_ = linear_forward(weights_.head, normed, count, work_.logits, work_.workspace, work_.workspace_bytes);
    if (status_ != Status::ok) return;
    status_ = cross_entropy({work_.logits, batch_.targets + first, count, config_.vocab_size, config_.logit_softcap,
                             with_gradients, batch_.gradient_scale, work_.losses + first});
    if (status_ != Status::ok || !with_gradients) continue;
    status_ = linear_backward({weights_.head, normed, work_.logits, count, work_.grad_normed + first * width, false,
                               gradient_of(weights_.head.weight)},
                              work_.workspace, work_.workspace_bytes);
  }
  if (status_ != Status::ok) return;
  if (with_gradients) {
    std::fill_n(work_.grad_residual, rows_ * width, 0.0F);
    normalise_backward(stream, weights_.final_norm_weight, weights_.final_norm_bias);
  }
  loss_sum = std::accumulate(work_.losses, work_.losses + rows_, 0.0);
}

}  // namespace lookback
