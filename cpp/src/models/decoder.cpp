#include "lookback/decoder.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/half.hpp"
#include "models/decoder_layout.hpp"

namespace lookback {
namespace {

bool is_not_negative(float value) noexcept { return std::isfinite(value) && value >= 0.0F; }

Status validate_rotaries(const DecoderConfig& config) noexcept {
  if (config.rotary.dims == 0) return Status::ok;
  if (const Status status = validate_rotary(config.rotary, config.head_dim); status != Status::ok) return status;
  if (config.window_rotary_base == 0.0) return Status::ok;
  RotaryOptions windowed = config.rotary;
  windowed.base = config.window_rotary_base;
  return validate_rotary(windowed, config.head_dim);
}

/// Elements of one row of the source as float32.
void widen(const DecoderRows& rows, Index row, Index count, float* target) noexcept {
  const Index first = row * rows.source_stride;
  const auto* halves = static_cast<const std::uint16_t*>(rows.source) + first;
  if (rows.type == WeightType::f16) return kernels::widen_f16(halves, count, target);
  if (rows.type == WeightType::bf16) return kernels::widen_bf16(halves, count, target);
  std::copy_n(static_cast<const float*>(rows.source) + first, count, target);
}

/// A slot of float32 [rows, columns]. The transpose of a table of positions exists in no file: only that of a vector is taken.
void write_floats(const DecoderRows& rows, Index width, float addend, float* target) noexcept {
  for (Index row = 0; row < rows.row_count; ++row) {
    float* values = target + (rows.first_row + row) * width;
    widen(rows, row, width, values);
    for (Index i = 0; i < width; ++i) values[i] += addend;
  }
}

}  // namespace

bool is_windowed(const DecoderConfig& config, Index layer) noexcept {
  if (config.window == 0 || layer < config.first_windowed_layer) return false;
  return config.full_every == 0 || (layer + 1) % config.full_every != 0;
}

Status validate_decoder(const DecoderConfig& config) noexcept {
  for (const std::int32_t size : {config.vocab_size, config.layers, config.embed_dim, config.heads, config.kv_heads,
                                  config.head_dim, config.hidden_dim, config.context_length}) {
    if (size < 1) return Status::invalid_shape;
  }
  if (config.heads % config.kv_heads != 0) return Status::invalid_heads;
  if (config.norm < NormKind::layer_norm || config.norm > NormKind::rms_norm ||
      config.activation < Activation::gelu_tanh || config.activation > Activation::silu) {
    return Status::invalid_argument;
  }
  if (!is_not_negative(config.norm_epsilon) || !std::isfinite(config.embed_scale) ||
      !std::isfinite(config.attention_scale) || !is_not_negative(config.attention_softcap) ||
      !is_not_negative(config.logit_softcap)) {
    return Status::invalid_argument;
  }
  if (const Status status = validate_linear(config.format); status != Status::ok) return status;
  if (config.window < 0 || config.first_windowed_layer < 0 || config.full_every < 0) return Status::invalid_argument;
  return validate_rotaries(config);
}

Index slot_layers(const DecoderConfig& config, DecoderSlot slot) noexcept {
  return is_layer_slot(slot) ? config.layers : 1;
}

bool is_layer_slot(DecoderSlot slot) noexcept { return slot > DecoderSlot::final_norm_bias; }

SlotShape decoder_slot(const DecoderConfig& config, DecoderSlot slot) noexcept {
  const Index embed_dim = config.embed_dim;
  const Index queries = static_cast<Index>(config.heads) * config.head_dim;
  const Index keys = static_cast<Index>(config.kv_heads) * config.head_dim;
  const auto vector = [](Index size, bool exists) { return exists ? SlotShape{size, 1} : SlotShape{}; };
  const auto matrix = [](Index rows, Index columns, bool exists) {
    return exists ? SlotShape{rows, columns} : SlotShape{};
  };
  switch (slot) {
    case DecoderSlot::token_embedding: return {config.vocab_size, embed_dim};
    case DecoderSlot::position_embedding: return matrix(config.context_length, embed_dim, config.learned_positions);
    case DecoderSlot::head: return matrix(config.vocab_size, embed_dim, !config.tied_head);
    case DecoderSlot::final_norm_weight:
    case DecoderSlot::attention_norm_weight:
    case DecoderSlot::mlp_norm_weight: return {embed_dim, 1};
    case DecoderSlot::final_norm_bias:
    case DecoderSlot::attention_norm_bias:
    case DecoderSlot::mlp_norm_bias: return vector(embed_dim, config.norm == NormKind::layer_norm);
    case DecoderSlot::query_weight: return {queries, embed_dim};
    case DecoderSlot::key_weight:
    case DecoderSlot::value_weight: return {keys, embed_dim};
    case DecoderSlot::query_bias: return vector(queries, config.query_key_value_bias);
    case DecoderSlot::key_bias:
    case DecoderSlot::value_bias: return vector(keys, config.query_key_value_bias);
    case DecoderSlot::query_norm_weight:
    case DecoderSlot::key_norm_weight: return vector(config.head_dim, config.query_key_norm);
    case DecoderSlot::output_weight: return {embed_dim, queries};
    case DecoderSlot::output_bias: return vector(embed_dim, config.output_bias);
    case DecoderSlot::attention_post_norm_weight:
    case DecoderSlot::mlp_post_norm_weight: return vector(embed_dim, config.post_norms);
    case DecoderSlot::gate_weight: return matrix(config.hidden_dim, embed_dim, config.gated);
    case DecoderSlot::gate_bias: return vector(config.hidden_dim, config.gated && config.mlp_bias);
    case DecoderSlot::up_weight: return {config.hidden_dim, embed_dim};
    case DecoderSlot::up_bias: return vector(config.hidden_dim, config.mlp_bias);
    case DecoderSlot::down_weight: return {embed_dim, config.hidden_dim};
    case DecoderSlot::down_bias: return vector(embed_dim, config.mlp_bias);
  }
  return {};
}

double Decoder::bytes(const DecoderConfig& config) noexcept { return DecoderLayout(config).bytes; }

Status Decoder::create(const DecoderConfig& config, void* memory) noexcept {
  if (const Status status = validate_decoder(config); status != Status::ok) return status;
  if (memory == nullptr) return Status::null_pointer;
  std::memset(memory, 0, static_cast<std::size_t>(bytes(config)));
  std::memcpy(memory, &config, sizeof config);
  return Status::ok;
}

Status Decoder::write(const DecoderRows& rows) noexcept {
  const SlotShape shape = decoder_slot(config(), rows.slot);
  if (shape.rows == 0 || rows.layer < 0 || rows.layer >= slot_layers(config(), rows.slot)) {
    return Status::invalid_range;
  }
  const Index source_rows = rows.transposed ? shape.columns : shape.rows;
  const Index width = rows.transposed ? shape.rows : shape.columns;
  if (rows.first_row < 0 || rows.row_count < 0 || rows.row_count > source_rows - rows.first_row ||
      rows.source_stride < width) {
    return Status::invalid_range;
  }
  if (rows.type < WeightType::f32 || rows.type > WeightType::bf16) return Status::invalid_argument;
  if (rows.row_count == 0) return Status::ok;
  if (rows.source == nullptr) return Status::null_pointer;

  const SlotPlace place = find_slot(DecoderLayout(config()), rows.slot, rows.layer);
  if (!place.packed && rows.transposed && shape.columns > 1) return Status::invalid_argument;
  void* target = static_cast<char*>(memory_) + static_cast<std::size_t>(place.offset);
  if (place.packed) {
    return pack_linear({rows.source, rows.type, rows.transposed, rows.first_row, rows.row_count, rows.source_stride},
                       shape.columns, shape.rows, config().format, target);
  }
  const bool from_one = place.is_norm_weight && config().norm_weights_from_one;
  write_floats(rows, width, from_one ? 1.0F : 0.0F, static_cast<float*>(target));
  return Status::ok;
}

}  // namespace lookback
