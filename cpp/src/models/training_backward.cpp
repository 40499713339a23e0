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

Status TrainingPass::multiply_backward(const PackedLinear& layer, const float* input, const float* grad_output,
                                       float* grad_input, bool add) const noexcept {
  return linear_backward(
      {layer, input, grad_output, rows_, grad_input, add, gradient_of(layer.weight), gradient_of(layer.bias)},
      work_.workspace, work_.workspace_bytes);
}

Status TrainingPass::normalise_backward(const NormCall& forward, const float* grad_output, float* grad_input,
                                        bool add) const noexcept {
  NormBackwardCall call;
  call.forward = forward;
  const auto [data, batch_stride, head_stride, row_stride] = forward.input;
  call.grad_output = {grad_output, batch_stride, head_stride, row_stride};
  call.grad_input = {grad_input, batch_stride, head_stride, row_stride};
  call.add_to_grad_input = add;
  call.grad_weight = gradient_of(forward.weight);
  call.grad_bias = gradient_of(forward.bias);
  return norm_backward(call, work_.workspace, work_.workspace_bytes);
}

Status TrainingPass::backward() noexcept {
  Status status = Status::ok;
  for (Index layer = config_.layers - 1; layer >= 0 && status == Status::ok; --layer) {
    const LayerWeights parameters = weights_.layer(layer);
    const LayerActivations kept = head_.layout.activations(trainer_.memory(), layer);
    status = transform_backward(layer, parameters, kept);
    if (status == Status::ok) status = attend_backward(layer, parameters, kept);
  }
  if (status != Status::ok) return status;
  return embedding_backward({embedding(), work_.grad_residual, gradient_of(weights_.token_embedding.weight),
                             gradient_of(weights_.position_embedding)});
}

Status TrainingPass::branch_backward(Index layer, Branch branch, const float* post_norm, const float* before_norm,
                                     const float*& gradient) const noexcept {
  const bool dropped = batch_.dropout.p > 0.0F;
  gradient = work_.grad_residual;
  if (!dropped && post_norm == nullptr) return Status::ok;
  if (dropped) {
    std::copy_n(work_.grad_residual, rows_ * config_.embed_dim, work_.branch);
    drop(layer, branch);
    gradient = work_.branch;
  }
  if (post_norm == nullptr) return Status::ok;
  const float* behind_norm = gradient;
  gradient = work_.branch;
  return normalise_backward(norm_of_rows(before_norm, post_norm, nullptr, nullptr), behind_norm, work_.branch, false);
}

Status TrainingPass::transform_backward(Index layer, const LayerWeights& parameters,
                                        const LayerActivations& kept) noexcept {
  const Index count = rows_ * config_.hidden_dim;
  const float* gradient = nullptr;
  Status status = branch_backward(layer, Branch::mlp, parameters.mlp_post_norm_weight, kept.mlp_branch, gradient);
  if (status == Status::ok) status = activate(kept);
  if (status == Status::ok) status = multiply_backward(parameters.down, work_.hidden, gradient, work_.grad_hidden);
  if (status != Status::ok) return status;
  status = config_.gated
               ? gated_activation_backward(config_.activation, kept.gate, kept.up, work_.grad_hidden, count,
                                           work_.grad_hidden, work_.grad_up)
               : activation_backward(config_.activation, kept.up, work_.grad_hidden, count, work_.grad_hidden);
  const float* grad_up = config_.gated ? work_.grad_up : work_.grad_hidden;
  const NormCall norm = norm_of_rows(kept.middle, parameters.mlp_norm_weight, parameters.mlp_norm_bias, work_.normed);
  if (status == Status::ok) status = norm_forward(norm);
  if (status == Status::ok) status = multiply_backward(parameters.up, work_.normed, grad_up, work_.grad_normed);
  if (status == Status::ok && config_.gated) {
    status = multiply_backward(parameters.gate, work_.normed, work_.grad_hidden, work_.grad_normed, true);
  }
  return status != Status::ok ? status : normalise_backward(norm, work_.grad_normed, work_.grad_residual, true);
}

Status TrainingPass::attend_backward(Index layer, const LayerWeights& parameters,
                                     const LayerActivations& kept) noexcept {
  const float* gradient = nullptr;
  Status status =
      branch_backward(layer, Branch::attention, parameters.attention_post_norm_weight, kept.attention_branch, gradient);
  if (status == Status::ok)
    status = multiply_backward(parameters.output, kept.heads_output, gradient, work_.grad_heads);
  if (status != Status::ok) return status;
  AttentionBackwardCall call;
  call.forward = attention(layer, kept);
  call.output = heads_of<const float>(kept.heads_output, config_.heads);
  call.log_sum_exp = kept.log_sum_exp;
  call.grad_output = heads_of<const float>(work_.grad_heads, config_.heads);
  call.grad_queries = heads_of(work_.grad_queries, config_.heads);
  call.grad_keys = heads_of(work_.grad_keys, config_.kv_heads);
  call.grad_values = heads_of(work_.grad_values, config_.kv_heads);
  status = attention_backward(call, work_.workspace, work_.workspace_bytes);
  if (status != Status::ok) return status;
  turn(work_.grad_queries, config_.heads, layer, true);
  turn(work_.grad_keys, config_.kv_heads, layer, true);
  if (config_.query_key_norm) {
    status = normalise_backward(norm_of_heads(kept.plain_queries, parameters.query_norm_weight, config_.heads, nullptr),
                                work_.grad_queries, work_.grad_queries, false);
    if (status != Status::ok) return status;
    status = normalise_backward(norm_of_heads(kept.plain_keys, parameters.key_norm_weight, config_.kv_heads, nullptr),
                                work_.grad_keys, work_.grad_keys, false);
    if (status != Status::ok) return status;
  }
  const NormCall norm =
      norm_of_rows(kept.input, parameters.attention_norm_weight, parameters.attention_norm_bias, work_.normed);
  status = norm_forward(norm);
  if (status == Status::ok) {
    status = multiply_backward(parameters.query, work_.normed, work_.grad_queries, work_.grad_normed);
  }
  if (status == Status::ok) {
    status = multiply_backward(parameters.key, work_.normed, work_.grad_keys, work_.grad_normed, true);
  }
  if (status == Status::ok) {
    status = multiply_backward(parameters.value, work_.normed, work_.grad_values, work_.grad_normed, true);
  }
  return status != Status::ok ? status : normalise_backward(norm, work_.grad_normed, work_.grad_residual, true);
}

}  // namespace lookback
