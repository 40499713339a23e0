#pragma once

// Small decoders of each family with random weights, for the suites that compare with reference_decoder.hpp.

#include <algorithm>

#include "lookback/decoder.hpp"
#include "reference_decoder.hpp"
#include "support.hpp"

namespace lookback::test {

inline DecoderConfig llama() {
  DecoderConfig config;
  config.vocab_size = 37;
  config.layers = 3;
  config.embed_dim = 20;
  config.heads = 6;
  config.kv_heads = 2;
  config.head_dim = 6;
  config.hidden_dim = 29;
  config.context_length = 32;
  config.norm = NormKind::rms_norm;
  config.activation = Activation::silu;
  config.gated = true;
  config.rotary.dims = 6;
  return config;
}

inline DecoderConfig gpt2() {
  DecoderConfig config = llama();
  config.norm = NormKind::layer_norm;
  config.activation = Activation::gelu_tanh;
  config.gated = false;
  config.learned_positions = true;
  config.tied_head = true;
  config.query_key_value_bias = true;
  config.output_bias = true;
  config.mlp_bias = true;
  config.kv_heads = config.heads;
  config.rotary.dims = 0;
  return config;
}

inline DecoderConfig gemma() {
  DecoderConfig config = llama();
  config.activation = Activation::gelu_erf;
  config.tied_head = true;
  config.query_key_norm = true;
  config.post_norms = true;
  config.norm_weights_from_one = true;
  config.mlp_bias = true;
  config.embed_scale = 3.0F;
  config.attention_scale = 0.4F;
  config.attention_softcap = 4.0F;
  config.logit_softcap = 3.0F;
  config.window = 3;
  config.first_windowed_layer = 1;
  config.full_every = 3;
  config.rotary.interleaved = true;
  config.rotary.dims = 4;
  config.window_rotary_base = 50.0;
  return config;
}

/// A decoder in memory of exactly its size, with random weights written in pieces.
class Model {
public:
  Model(const DecoderConfig& config, std::uint32_t seed, Index rows_at_once = 5, bool transposed = false)
      : memory_(Decoder::bytes(config)), decoder_(memory_.data()) {
    EXPECT_EQ(Decoder::create(config, memory_.data()), Status::ok);
    Random random(seed);
    for (int number = 0; number < decoder_slot_count; ++number) {
      const auto slot = static_cast<DecoderSlot>(number);
      const SlotShape shape = decoder_slot(config, slot);
      if (shape.rows == 0) continue;
      for (Index layer = 0; layer < (is_layer_slot(slot) ? config.layers : 1); ++layer) {
        const float bound = shape.columns == 1 ? 0.5F : std::sqrt(3.0F / static_cast<float>(shape.columns));
        std::vector<float> values = random.vector(shape.rows * shape.columns, bound);
        tensors_[{slot, layer}] = values;
        const bool turned = transposed && shape.columns > 1 && slot != DecoderSlot::position_embedding;
        if (turned) values = transpose(values, shape);
        const Index rows = turned ? shape.columns : shape.rows;
        const Index width = turned ? shape.rows : shape.columns;
        for (Index first = 0; first < rows; first += rows_at_once) {
          EXPECT_EQ(decoder_.write({slot, layer, first, std::min(rows_at_once, rows - first),
                                    values.data() + first * width, WeightType::f32, width, turned}),
                    Status::ok);
        }
      }
    }
  }

  static std::vector<float> transpose(const std::vector<float>& values, SlotShape shape) {
    std::vector<float> turned(values.size());
    for (Index r = 0; r < shape.rows; ++r) {
      for (Index c = 0; c < shape.columns; ++c) turned[c * shape.rows + r] = values[r * shape.columns + c];
    }
    return turned;
  }

  Decoder& decoder() { return decoder_; }
  reference::DecoderTensors& tensors() { return tensors_; }
  [[nodiscard]] const DecoderConfig& config() const { return decoder_.config(); }

private:
  Scratch memory_;
  Decoder decoder_;
  reference::DecoderTensors tensors_;
};

inline std::vector<std::int32_t> tokens_of(std::uint32_t seed, Index count) {
  Random random(seed);
  std::vector<std::int32_t> tokens;
  for (Index n = 0; n < count; ++n) tokens.push_back(static_cast<std::int32_t>(random.below(37)));
  return tokens;
}

inline double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

}  // namespace lookback::test
