// The way back through the layers: work_.grad_residual is the gradient of the residual stream, behind a layer at first and before it at
// the end. Normalised rows and activations are computed again.

#include <algorithm>

#include "models/training_pass.hpp"

namespace lookback {

float* TrainingPass::gradient_of(const void* parameter) const noexcept {
  if (parameter == nullptr) return nullptr;
  auto* gradients = static_cast<char*>(trainer_.memory()) + static_cast<std::size_t>(head_.layout.gradients);
  return reinterpret_cast<float*>(gradients + (static_cast<const char*>(parameter) - decoder_));
}

[[gnu::noinline]] void TrainingPass::multiply_backward(const PackedLinear& layer, const float* input,
                                                       const float* grad_output, float* grad_input, bool add) noexcept {
  if (status_ != Status::ok) return;
  status_ = linear_backward(
      {layer, input, grad_output, rows_, grad_input, add, gradient_of(layer.weight), gradient_of(layer.bias)},
      work_.workspace, work_.workspace_bytes);
}

[[gnu::noinline]] void TrainingPass::run_norm_backward(const NormCall& forward, const float* grad_output,
                                                       float* grad_input, bool add) noexcept {
  if (status_ != Status::ok) return;
  NormBackwardCall call;
  call.forward = forward;
  const auto [data, batch_stride, head_stride, row_stride] = forward.input;
  call.grad_output = {grad_output, batch_stride, head_stride, row_stride};
  call.grad_input = {grad_input, batch_stride, head_stride, row_stride};
  call.add_to_grad_input = add;
  call.grad_weight = gradient_of(forward.weight);
  call.grad_bias = gradient_of(forward.bias);
  status_ = norm_backward(call, work_.workspace, work_.workspace_bytes);
}

[[gnu::noinline]] void TrainingPass::normalise_backward(const float* input, const float* weight,
                                                        const float* bias) noexcept {
  run_norm_backward(norm_of_rows(input, weight, bias, nullptr), work_.grad_normed, work_.grad_residual, true);
}

[[gnu::noinline]] void TrainingPass::normalise_heads_backward(const float* input, const float* weight, Index heads,
                                                              float* gradients) noexcept {
  run_norm_backward(norm_of_heads(input, weight, heads, nullptr), gradients, gradients, false);
}

void TrainingPass::backward() noexcept {
  for (Index layer = config_.layers - 1; layer >= 0; --layer) {
    transform_backward(layer);
    attend_backward(layer);
  }
  if (status_ != Status::ok) return;
  status_ = embedding_backward({embedding(), work_.grad_residual, gradient_of(weights_.token_embedding.weight),
                                gradient_of(weights_.position_embedding)});
}

const float* TrainingPass::branch_backward(Index layer, Branch branch) noexcept {
  const bool dropped = batch_.dropout.p > 0.0F;
  if (!dropped && !config_.post_norms) return work_.grad_residual;
  std::copy_n(work_.grad_residual, rows_ * config_.embed_dim, work_.branch);
  drop(layer, branch);
  if (!config_.post_norms) return work_.branch;
  const LayerActivations kept = activations(layer);
  const LayerWeights parameters = weights_.layer(layer);
  const bool is_mlp = branch == Branch::mlp;
  const float* weight = is_mlp ? parameters.mlp_post_norm_weight : parameters.attention_post_norm_weight;
  const float* before_norm = is_mlp ? kept.mlp_branch : kept.attention_branch;
  run_norm_backward(norm_of_rows(before_norm, weight, nullptr, nullptr), work_.branch, work_.branch, false);
  return work_.branch;
}

void TrainingPass::transform_backward(Index layer) noexcept {
  const LayerWeights parameters = weights_.layer(layer);
  const LayerActivations kept = activations(layer);
  const float* gradient = branch_backward(layer, Branch::mlp);
  activate(kept);
  multiply_backward(parameters.down, work_.hidden, gradient, work_.grad_hidden);
  if (status_ != Status::ok) return;
  const Index count = rows_ * config_.hidden_dim;
  status_ = config_.gated
                ? gated_activation_backward(config_.activation, kept.gate, kept.up, work_.grad_hidden, count,
                                            work_.grad_hidden, work_.grad_up)
                : activation_backward(config_.activation, kept.up, work_.grad_hidden, count, work_.grad_hidden);
  normalise(kept.middle, parameters.mlp_norm_weight, parameters.mlp_norm_bias);
  multiply_backward(parameters.up, work_.normed, config_.gated ? work_.grad_up : work_.grad_hidden, work_.grad_normed);
  if (config_.gated) {
    multiply_backward(parameters.gate, work_.normed, work_.grad_hidden, work_.grad_normed, true);
  }
  normalise_backward(kept.middle, parameters.mlp_norm_weight, parameters.mlp_norm_bias);
}

void TrainingPass::attend_backward(Index layer) noexcept {
  const LayerWeights parameters = weights_.layer(layer);
  const LayerActivations kept = activations(layer);
  const float* gradient = branch_backward(layer, Branch::attention);
  multiply_backward(parameters.output, kept.heads_output, gradient, work_.grad_heads);
  if (status_ != Status::ok) return;
  AttentionBackwardCall call;
  call.forward = attention(layer, kept);
  call.output = heads_of<const float>(kept.heads_output, config_.heads);
  call.log_sum_exp = kept.log_sum_exp;
  call.grad_output = heads_of<const float>(work_.grad_heads, config_.heads);
  call.grad_queries = heads_of(work_.grad_queries, config_.heads);
  call.grad_keys = heads_of(work_.grad_keys, config_.kv_heads);
  call.grad_values = heads_of(work_.grad_values, config_.kv_heads);
  status_ = attention_backward(call, work_.workspace, work_.workspace_bytes);
  turn(work_.grad_queries, config_.heads, layer, true);
  turn(work_.grad_keys, config_.kv_heads, layer, true);
  if (config_.query_key_norm) {
    normalise_heads_backward(kept.plain_queries, parameters.query_norm_weight, config_.heads, work_.grad_queries);
    normalise_heads_backward(kept.plain_keys, parameters.key_norm_weight, config_.kv_heads, work_.grad_keys);
  }
  normalise(kept.input, parameters.attention_norm_weight, parameters.attention_norm_bias);
  multiply_backward(parameters.query, work_.normed, work_.grad_queries, work_.grad_normed);
  multiply_backward(parameters.key, work_.normed, work_.grad_keys, work_.grad_normed, true);
  multiply_backward(parameters.value, work_.normed, work_.grad_values, work_.grad_normed, true);
  normalise_backward(kept.input, parameters.attention_norm_weight, parameters.attention_norm_bias);
}

}  // namespace lookback
