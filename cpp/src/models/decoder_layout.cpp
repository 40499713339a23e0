#include "models/decoder_layout.hpp"

#include <cmath>

namespace lookback {
namespace {

constexpr double alignment = 64;

}  // namespace

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
