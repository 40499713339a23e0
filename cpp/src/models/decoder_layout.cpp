#include "models/decoder_layout.hpp"

#include <cmath>

namespace lookback {
namespace {

constexpr double alignment = 64;

SlotPlace weight_of(const LinearPlace& place) noexcept { return {place.weight, true, false}; }
SlotPlace bias_of(const LinearPlace& place) noexcept { return {place.bias, false, false}; }
SlotPlace floats_at(double offset) noexcept { return {offset, false, false}; }
SlotPlace norm_at(double offset) noexcept { return {offset, false, true}; }

/// From the memory's start or its layer's.
SlotPlace place_of(const DecoderLayout& layout, DecoderSlot slot) noexcept {
  switch (slot) {
    case DecoderSlot::token_embedding: return weight_of(layout.token_embedding);
    case DecoderSlot::position_embedding: return floats_at(layout.position_embedding);
    case DecoderSlot::head: return weight_of(layout.head);
    case DecoderSlot::final_norm_weight: return norm_at(layout.final_norm_weight);
    case DecoderSlot::final_norm_bias: return floats_at(layout.final_norm_bias);
    case DecoderSlot::attention_norm_weight: return norm_at(layout.attention_norm_weight);
    case DecoderSlot::attention_norm_bias: return floats_at(layout.attention_norm_bias);
    case DecoderSlot::query_weight: return weight_of(layout.query);
    case DecoderSlot::query_bias: return bias_of(layout.query);
    case DecoderSlot::key_weight: return weight_of(layout.key);
    case DecoderSlot::key_bias: return bias_of(layout.key);
    case DecoderSlot::value_weight: return weight_of(layout.value);
    case DecoderSlot::value_bias: return bias_of(layout.value);
    case DecoderSlot::query_norm_weight: return norm_at(layout.query_norm_weight);
    case DecoderSlot::key_norm_weight: return norm_at(layout.key_norm_weight);
    case DecoderSlot::output_weight: return weight_of(layout.output);
    case DecoderSlot::output_bias: return bias_of(layout.output);
    case DecoderSlot::attention_post_norm_weight: return norm_at(layout.attention_post_norm_weight);
    case DecoderSlot::mlp_norm_weight: return norm_at(layout.mlp_norm_weight);
    case DecoderSlot::mlp_norm_bias: return floats_at(layout.mlp_norm_bias);
    case DecoderSlot::gate_weight: return weight_of(layout.gate);
    case DecoderSlot::gate_bias: return bias_of(layout.gate);
    case DecoderSlot::up_weight: return weight_of(layout.up);
    case DecoderSlot::up_bias: return bias_of(layout.up);
    case DecoderSlot::down_weight: return weight_of(layout.down);
    case DecoderSlot::down_bias: return bias_of(layout.down);
    case DecoderSlot::mlp_post_norm_weight: return norm_at(layout.mlp_post_norm_weight);
  }
  return {};
}

}  // namespace

SlotPlace find_slot(const DecoderLayout& layout, DecoderSlot slot, Index layer) noexcept {
  SlotPlace place = place_of(layout, slot);
  if (is_layer_slot(slot)) place.offset += layout.first_layer + layout.layer_bytes * static_cast<double>(layer);
  return place;
}

double DecoderLayout::take(double byte_count) noexcept {
  const double start = next_;
  next_ += std::ceil(byte_count / alignment) * alignment;
  return start;
}

double DecoderLayout::take_floats(Index count) noexcept { return take(static_cast<double>(count) * sizeof(float)); }

LinearPlace DecoderLayout::take_linear(Index inputs, Index outputs, bool has_bias) noexcept {
  LinearPlace place{0, 0, has_bias, inputs, outputs};
  place.weight = take(packed_linear_bytes(inputs, outputs, format_));
  if (has_bias) place.bias = take_floats(outputs);
  return place;
}

DecoderLayout::DecoderLayout(const DecoderConfig& config) noexcept : format_(config.format) {
  const Index embed_dim = config.embed_dim;
  const Index queries = static_cast<Index>(config.heads) * config.head_dim;
  const Index keys = static_cast<Index>(config.kv_heads) * config.head_dim;
  const Index hidden = config.hidden_dim;
  const auto norm_bias = [&] { return config.norm == NormKind::layer_norm ? take_floats(embed_dim) : 0; };
  const auto post_norm = [&] { return config.post_norms ? take_floats(embed_dim) : 0; };
  take(sizeof(DecoderConfig));
  first_tensor = next_;
  token_embedding = take_linear(embed_dim, config.vocab_size, false);
  position_embedding = config.learned_positions
                           ? take(static_cast<double>(config.context_length) * static_cast<double>(embed_dim) * 4)
                           : 0;
  head = config.tied_head ? token_embedding : take_linear(embed_dim, config.vocab_size, false);
  final_norm_weight = take_floats(embed_dim);
  final_norm_bias = norm_bias();

  first_layer = next_;
  next_ = 0;
  attention_norm_weight = take_floats(embed_dim);
  attention_norm_bias = norm_bias();
  query = take_linear(embed_dim, queries, config.query_key_value_bias);
  key = take_linear(embed_dim, keys, config.query_key_value_bias);
  value = take_linear(embed_dim, keys, config.query_key_value_bias);
  query_norm_weight = config.query_key_norm ? take_floats(config.head_dim) : 0;
  key_norm_weight = config.query_key_norm ? take_floats(config.head_dim) : 0;
  output = take_linear(queries, embed_dim, config.output_bias);
  attention_post_norm_weight = post_norm();
  mlp_norm_weight = take_floats(embed_dim);
  mlp_norm_bias = norm_bias();
  if (config.gated) gate = take_linear(embed_dim, hidden, config.mlp_bias);
  up = take_linear(embed_dim, hidden, config.mlp_bias);
  down = take_linear(hidden, embed_dim, config.mlp_bias);
  mlp_post_norm_weight = post_norm();
  layer_bytes = next_;
  bytes = first_layer + layer_bytes * static_cast<double>(config.layers);
}

DecoderWeights::DecoderWeights(const Decoder& decoder) noexcept
    : config_(decoder.config()), layout_(decoder.config()), memory_(static_cast<char*>(decoder.memory())) {
  token_embedding = linear(layout_.token_embedding, 0);
  head = linear(layout_.head, 0);
  position_embedding = floats(layout_.position_embedding, config_.learned_positions);
  final_norm_weight = floats(layout_.final_norm_weight);
  final_norm_bias = floats(layout_.final_norm_bias, config_.norm == NormKind::layer_norm);
}

LayerWeights DecoderWeights::layer(Index number) const noexcept {
  const double start = layout_.first_layer + layout_.layer_bytes * static_cast<double>(number);
  const bool norm_bias = config_.norm == NormKind::layer_norm;
  return {linear(layout_.query, start),
          linear(layout_.key, start),
          linear(layout_.value, start),
          linear(layout_.output, start),
          linear(layout_.gate, start),
          linear(layout_.up, start),
          linear(layout_.down, start),
          floats(start + layout_.attention_norm_weight),
          floats(start + layout_.attention_norm_bias, norm_bias),
          floats(start + layout_.query_norm_weight, config_.query_key_norm),
          floats(start + layout_.key_norm_weight, config_.query_key_norm),
          floats(start + layout_.attention_post_norm_weight, config_.post_norms),
          floats(start + layout_.mlp_norm_weight),
          floats(start + layout_.mlp_norm_bias, norm_bias),
          floats(start + layout_.mlp_post_norm_weight, config_.post_norms)};
}

PackedLinear DecoderWeights::linear(const LinearPlace& place, double start) const noexcept {
  return {floats(start + place.weight), floats(start + place.bias, place.has_bias), place.inputs, place.outputs,
          config_.format};
}

const float* DecoderWeights::floats(double offset, bool exists) const noexcept {
  return exists ? reinterpret_cast<const float*>(memory_ + static_cast<std::size_t>(offset)) : nullptr;
}

}  // namespace lookback
