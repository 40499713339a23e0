#pragma once

// A trainer in memory of exactly its size, and texts for it and for the reference.

#include "decoder_models.hpp"
#include "lookback/training.hpp"

namespace lookback::test {

/// Calls visit(slot, layer, shape) for all tensors of a decoder.
template <typename Visit>
void for_each_tensor(const DecoderConfig& config, Visit visit) {
  for (int number = 0; number < decoder_slot_count; ++number) {
    const auto slot = static_cast<DecoderSlot>(number);
    const SlotShape shape = decoder_slot(config, slot);
    if (shape.rows == 0) continue;
    for (Index layer = 0; layer < (is_layer_slot(slot) ? config.layers : 1); ++layer) visit(slot, layer, shape);
  }
}

class Trainer {
public:
  Trainer(Model& model, TrainingShape shape)
      : memory_(DecoderTrainer::bytes(model.config(), shape)), trainer_(memory_.data()), model_(model) {
    EXPECT_EQ(DecoderTrainer::create(model.config(), shape, memory_.data()), Status::ok);
  }

  double accumulate(const TrainingBatch& batch) {
    double loss = -1;
    EXPECT_EQ(decoder_accumulate(model_.decoder(), trainer_, batch, loss), Status::ok);
    return loss;
  }

  [[nodiscard]] std::vector<float> read(TrainingPart part, DecoderSlot slot, Index layer) const {
    const SlotShape shape = decoder_slot(model_.config(), slot);
    std::vector<float> values(static_cast<std::size_t>(shape.rows * shape.columns), untouched);
    EXPECT_EQ(decoder_read(model_.decoder(), &trainer_, part, {slot, layer, 0, shape.rows}, values.data()), Status::ok);
    return values;
  }

  /// One part of all tensors, one after the other.
  [[nodiscard]] std::vector<float> all(TrainingPart part) const {
    std::vector<float> values;
    for_each_tensor(model_.config(), [&](DecoderSlot slot, Index layer, SlotShape) {
      const std::vector<float> own = read(part, slot, layer);
      values.insert(values.end(), own.begin(), own.end());
    });
    return values;
  }

  DecoderTrainer& trainer() { return trainer_; }

private:
  Scratch memory_;
  DecoderTrainer trainer_;
  Model& model_;
};

/// Tokens and targets of a batch, in both of the forms that are needed.
class Text {
public:
  Text(const DecoderConfig& config, std::uint32_t seed, TrainingShape shape, double scale = 1.0, bool causal = true) {
    Random random(seed);
    reference_.scale = scale;
    reference_.causal = causal;
    for (std::int32_t row = 0; row < shape.batch; ++row) {
      std::vector<std::int32_t> tokens, targets;
      for (std::int32_t i = 0; i < shape.length; ++i) {
        tokens.push_back(static_cast<std::int32_t>(random.below(config.vocab_size)));
        targets.push_back(random.chance(20) ? -1 : static_cast<std::int32_t>(random.below(config.vocab_size)));
      }
      reference_.tokens.push_back(tokens);
      reference_.targets.push_back(targets);
      tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
      targets_.insert(targets_.end(), targets.begin(), targets.end());
    }
  }

  [[nodiscard]] TrainingBatch batch() const {
    TrainingBatch batch;
    batch.tokens = tokens_.data();
    batch.targets = targets_.data();
    batch.causal = reference_.causal;
    batch.gradient_scale = static_cast<float>(reference_.scale);
    return batch;
  }
  [[nodiscard]] const reference::TrainingText& reference() const { return reference_; }
  std::vector<std::int32_t>& tokens() { return tokens_; }
  std::vector<std::int32_t>& targets() { return targets_; }

private:
  std::vector<std::int32_t> tokens_, targets_;
  reference::TrainingText reference_;
};

}  // namespace lookback::test
