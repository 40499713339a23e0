#include <cmath>

#include "attention/cache_call.hpp"
#include "lookback/attention.hpp"

namespace lookback {
namespace {

Status validate_shape(const AttentionShape& shape) noexcept {
  if (shape.batch < 1 || shape.heads < 1 || shape.kv_heads < 1 || shape.head_dim < 1 || shape.value_dim < 1 ||
      shape.query_length < 0 || shape.key_length < 0) {
    return Status::invalid_shape;
  }
  if (shape.heads % shape.kv_heads != 0) return Status::invalid_heads;
  // Positions are 32-bit integers in masks and windows.
  if (shape.query_length >= unlimited || shape.key_length >= unlimited) return Status::invalid_shape;
  return Status::ok;
}

Status validate_request(const AttentionShape& shape, const WeightsRequest& request) noexcept {
  if (request.data == nullptr) return Status::ok;
  if (request.query_from < 0 || request.query_to < request.query_from || request.query_to > shape.query_length) {
    return Status::invalid_range;
  }
  if (request.kind < WeightsKind::scores || request.kind > WeightsKind::softmax) return Status::invalid_argument;
  if (request.heads == nullptr) return request.head_count == shape.heads ? Status::ok : Status::invalid_range;
  for (Index slot = 0; slot < request.head_count; ++slot) {
    if (request.heads[slot] < 0 || request.heads[slot] >= shape.heads) return Status::invalid_range;
  }
  return Status::ok;
}

Status validate_summary(const AttentionShape& shape, const SummaryRequest& request) noexcept {
  const bool lists = request.top_indices != nullptr;
  if (lists != (request.top_weights != nullptr)) return Status::null_pointer;
  if (lists && request.top_k < 1) return Status::invalid_range;
  if (request.map == nullptr) return Status::ok;
  const bool fits = request.map_rows >= 1 && request.map_rows <= shape.query_length && request.map_columns >= 1 &&
                    request.map_columns <= shape.key_length;
  return fits ? Status::ok : Status::invalid_range;
}

Status validate_operands(const AttentionCall& call) noexcept {
  if (const Status status = validate_shape(call.shape); status != Status::ok) return status;
  if (!std::isfinite(call.scores.scale) || !std::isfinite(call.scores.softcap) || call.scores.softcap < 0.0F) {
    return Status::invalid_argument;
  }
  const float p = call.scores.dropout.p;
  if (!(p >= 0.0F && p < 1.0F) || (p > 0.0F && call.inputs.cache)) return Status::invalid_argument;
  if (call.inputs.cache) {
    if (const Status status = validate_cache_call(call); status != Status::ok) return status;
  }
  const bool has_queries = call.shape.query_length > 0;
  const bool has_keys = call.shape.key_length > 0 && !call.inputs.cache;
  if (has_queries && call.inputs.queries.data == nullptr) return Status::null_pointer;
  if (has_keys && (call.inputs.keys.data == nullptr || call.inputs.values.data == nullptr)) return Status::null_pointer;
  return Status::ok;
}

}  // namespace

Status validate_attention(const AttentionCall& call) noexcept {
  if (const Status status = validate_operands(call); status != Status::ok) return status;
  if (call.shape.query_length > 0 && call.outputs.output.data == nullptr) return Status::null_pointer;
  if (const Status status = validate_request(call.shape, call.outputs.weights); status != Status::ok) return status;
  return validate_summary(call.shape, call.outputs.summary);
}

Status validate_attention_backward(const AttentionBackwardCall& call) noexcept {
  const AttentionCall& forward = call.forward;
  if (forward.inputs.cache) return Status::invalid_argument;
  if (const Status status = validate_operands(forward); status != Status::ok) return status;
  if (forward.shape.query_length > 0 && (call.output.data == nullptr || call.log_sum_exp == nullptr ||
                                         call.grad_output.data == nullptr || call.grad_queries.data == nullptr)) {
    return Status::null_pointer;
  }
  if (forward.shape.key_length > 0 && (call.grad_keys.data == nullptr || call.grad_values.data == nullptr)) {
    return Status::null_pointer;
  }
  const bool asked_without_operand = (call.grad_bias != nullptr && forward.scores.bias.data == nullptr) ||
                                     (call.grad_sinks != nullptr && forward.scores.sinks == nullptr);
  return asked_without_operand ? Status::invalid_argument : Status::ok;
}

}  // namespace lookback
