#include <cmath>

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
  if (request.heads == nullptr) return request.head_count == shape.heads ? Status::ok : Status::invalid_range;
  for (Index slot = 0; slot < request.head_count; ++slot) {
    if (request.heads[slot] < 0 || request.heads[slot] >= shape.heads) return Status::invalid_range;
  }
  return Status::ok;
}

}  // namespace

Status validate_attention(const AttentionCall& call) noexcept {
  if (const Status status = validate_shape(call.shape); status != Status::ok) return status;
  if (!std::isfinite(call.scores.scale) || !std::isfinite(call.scores.softcap) || call.scores.softcap < 0.0F) {
    return Status::invalid_argument;
  }
  const bool has_queries = call.shape.query_length > 0;
  const bool has_keys = call.shape.key_length > 0;
  if (has_queries && (call.inputs.queries.data == nullptr || call.outputs.output.data == nullptr)) {
    return Status::null_pointer;
  }
  if (has_keys && (call.inputs.keys.data == nullptr || call.inputs.values.data == nullptr)) return Status::null_pointer;
  return validate_request(call.shape, call.outputs.weights);
}

}  // namespace lookback
