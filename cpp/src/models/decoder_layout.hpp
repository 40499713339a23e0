#pragma once

// Where the parts of a decoder lie in its memory: the config, tensors that exist once, then the layers, all laid out alike.

#include "lookback/decoder.hpp"

namespace lookback {

/// A linear map within the memory, at byte offsets that count from the memory's start or from its layer's.
struct LinearPlace {
  double weight = 0;
  double bias = 0;
  bool has_bias = false;
  Index inputs = 0;
  Index outputs = 0;
};

class DecoderLayout {
public:
  explicit DecoderLayout(const DecoderConfig& config) noexcept;

  LinearPlace token_embedding, head, query, key, value, output, gate, up, down;
  double position_embedding, final_norm_weight, final_norm_bias;
  double attention_norm_weight, attention_norm_bias, query_norm_weight, key_norm_weight, attention_post_norm_weight;
  double mlp_norm_weight, mlp_norm_bias, mlp_post_norm_weight;
  double first_tensor, first_layer, layer_bytes;
  double bytes;

private:
  double take(double byte_count) noexcept;
  double take_floats(Index count) noexcept;
  LinearPlace take_linear(Index inputs, Index outputs, bool has_bias) noexcept;
  LinearFormat format_;
  double next_ = 0;
};

/// Where a slot lies, from the memory's start.
struct SlotPlace {
  double offset = 0;
  bool packed = false;
  bool is_norm_weight = false;
};
SlotPlace find_slot(const DecoderLayout& layout, DecoderSlot slot, Index layer) noexcept;

/// How many of a slot there are.
Index slot_layers(const DecoderConfig& config, DecoderSlot slot) noexcept;

/// A layer's parameters, ready for calls; norms that the config does not have are absent.
struct LayerWeights {
  PackedLinear query, key, value, output, gate, up, down;
  const float* attention_norm_weight;
  const float* attention_norm_bias;
  const float* query_norm_weight;
  const float* key_norm_weight;
  const float* attention_post_norm_weight;
  const float* mlp_norm_weight;
  const float* mlp_norm_bias;
  const float* mlp_post_norm_weight;
};

/// The decoder's tensors.
class DecoderWeights {
public:
  explicit DecoderWeights(const Decoder& decoder) noexcept;

  [[nodiscard]] LayerWeights layer(Index number) const noexcept;

  PackedLinear token_embedding, head;
  const float* position_embedding;
  const float* final_norm_weight;
  const float* final_norm_bias;

private:
  [[nodiscard]] PackedLinear linear(const LinearPlace& place, double start) const noexcept;
  [[nodiscard]] const float* floats(double offset, bool exists = true) const noexcept;

  const DecoderConfig& config_;
  DecoderLayout layout_;
  char* memory_;
};

}  // namespace lookback
