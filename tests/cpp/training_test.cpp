// Batches through whole decoders and back: gradients against the float64 reference, R15, R19, R20.

#include "lookback/parallel.hpp"
#include "training_support.hpp"

namespace lookback::test {
namespace {

std::vector<DecoderConfig> families() {
  DecoderConfig untied = gpt2();
  untied.tied_head = false;
  untied.mlp_bias = false;
  DecoderConfig tied = llama();
  tied.tied_head = true;
  tied.rotary.interleaved = true;
  return {gpt2(), untied, llama(), tied, gemma()};
}

TEST(training, the_references_gradients_are_central_differences_of_its_loss) {
  for (const DecoderConfig& config : {gpt2(), gemma()}) {
    Model model(config, 1);
    const Text text(config, 2, {1, 5});
    const reference::DecoderGradients expected =
        reference::decoder_gradients(config, model.tensors(), text.reference());
    reference::WideTensors tensors;
    for (const auto& [key, values] : model.tensors()) tensors[key] = {values.begin(), values.end()};
    EXPECT_NEAR(reference::decoder_loss(config, tensors, text.reference()), expected.loss, 1e-9);
    for (auto& [key, values] : tensors) {
      // One element of each tensor: the last of those that a token of this text can reach.
      const std::size_t at = key.first == DecoderSlot::position_embedding ? 7 : values.size() / 2;
      const double kept = values[at];
      values[at] = kept + 1e-5;
      const double above = reference::decoder_loss(config, tensors, text.reference());
      values[at] = kept - 1e-5;
      const double below = reference::decoder_loss(config, tensors, text.reference());
      values[at] = kept;
      EXPECT_NEAR(expected.gradients.at(key)[at], (above - below) / 2e-5, 1e-6) << static_cast<int>(key.first);
    }
  }
}

TEST(training, R20_a_batch_gives_each_tensor_the_gradient_of_the_reference) {
  for (const DecoderConfig& config : families()) {
    for (const bool causal : {true, false}) {
      Model model(config, 3);
      const TrainingShape shape{2, 11};
      const Text text(config, 4, shape, 0.25, causal);
      const reference::DecoderGradients expected =
          reference::decoder_gradients(config, model.tensors(), text.reference());
      Trainer trainer(model, shape);
      EXPECT_NEAR(trainer.accumulate(text.batch()), expected.loss / 0.25, 1e-5 * expected.loss / 0.25);
      for_each_tensor(config, [&](DecoderSlot slot, Index layer, SlotShape) {
        const std::vector<double>& wanted = expected.gradients.at({slot, layer});
        // A bias of keys that are not turned moves all scores of a query alike: its gradient is 0, but for rounding.
        const DecoderSlot measure = slot == DecoderSlot::key_bias ? DecoderSlot::query_bias : slot;
        const double bound = 1e-4 * largest(expected.gradients.at({measure, layer}));
        EXPECT_TRUE(all_near(trainer.read(TrainingPart::gradients, slot, layer), wanted, bound))
            << "slot " << static_cast<int>(slot) << " of layer " << layer << ", causal " << causal;
      });
    }
  }
}

TEST(training, evaluation_gives_the_same_loss_and_no_gradients) {
  Model model(gemma(), 5);
  Trainer trainer(model, {2, 7});
  const Text text(model.config(), 6, {2, 7});
  double loss = -1;
  ASSERT_EQ(decoder_evaluate(model.decoder(), trainer.trainer(), text.batch(), loss), Status::ok);
  for (const float gradient : trainer.all(TrainingPart::gradients)) ASSERT_EQ(gradient, 0.0F);
  EXPECT_EQ(trainer.accumulate(text.batch()), loss);
}

TEST(training, micro_batches_add_up_to_the_batch_and_zeroing_forgets_them) {
  Model model(llama(), 7);
  const Text text(model.config(), 8, {4, 9}, 0.5);
  Trainer whole(model, {4, 9});
  const double loss = whole.accumulate(text.batch());
  Trainer parts(model, {2, 9});
  double sum = 0;
  for (const Index first : {0, 2}) {
    TrainingBatch batch = text.batch();
    batch.tokens += first * 9;
    batch.targets += first * 9;
    sum += parts.accumulate(batch);
  }
  EXPECT_NEAR(sum, loss, 1e-9 * loss);
  const std::vector<float> expected = whole.all(TrainingPart::gradients);
  const std::vector<float> found = parts.all(TrainingPart::gradients);
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-5);
  decoder_zero_gradients(parts.trainer());
  for (const float gradient : parts.all(TrainingPart::gradients)) ASSERT_EQ(gradient, 0.0F);
}

TEST(training, targets_of_minus_one_count_neither_in_the_loss_nor_in_the_gradients) {
  Model model(gpt2(), 9);
  Text text(model.config(), 10, {1, 6});
  std::fill(text.targets().begin(), text.targets().end(), -1);
  Trainer trainer(model, {1, 6});
  EXPECT_EQ(trainer.accumulate(text.batch()), 0.0);
  for (const float gradient : trainer.all(TrainingPart::gradients)) ASSERT_EQ(gradient, 0.0F);
}

/// Two steps on as many threads; weights and moments afterwards.
std::vector<float> trained(const DecoderConfig& config, TrainingShape shape, Index threads) {
  set_threads(threads);
  Model model(config, 14);
  Trainer trainer(model, shape);
  std::vector<float> result;
  for (int number = 1; number <= 2; ++number) {
    const Text text(config, static_cast<std::uint32_t>(number), shape);
    result.push_back(static_cast<float>(trainer.accumulate(text.batch())));
    double norm = 0;
    EXPECT_EQ(decoder_update(model.decoder(), trainer.trainer(), {{number}, 1.0F}, norm), Status::ok);
    result.push_back(static_cast<float>(norm));
  }
  for (const TrainingPart part : {TrainingPart::weights, TrainingPart::first_moments, TrainingPart::second_moments}) {
    const std::vector<float> values = trainer.all(part);
    result.insert(result.end(), values.begin(), values.end());
  }
  set_threads(1);
  return result;
}

TEST(training, R15_every_number_of_threads_gives_the_same_bits) {
  DecoderConfig config = gemma();
  config.context_length = 160;
  config.vocab_size = 300;
  config.embed_dim = 64;
  config.hidden_dim = 100;
  for (const DecoderConfig& tried : {config, gpt2()}) {
    const TrainingShape shape{3, std::min(tried.context_length, 130)};
    const std::vector<float> expected = trained(tried, shape, 1);
    for (const Index threads : {2, 3, 4}) EXPECT_TRUE(all_same_bits(trained(tried, shape, threads), expected));
  }
}

TEST(training, what_cannot_be_is_refused_and_changes_nothing) {
  Model model(gpt2(), 16);
  const DecoderConfig& config = model.config();
  float memory = 0;
  EXPECT_EQ(DecoderTrainer::create(config, {0, 3}, &memory), Status::invalid_shape);
  EXPECT_EQ(DecoderTrainer::create(config, {1, 33}, &memory), Status::context_exceeded);
  EXPECT_EQ(DecoderTrainer::create(config, {1, 3}, nullptr), Status::null_pointer);
  DecoderConfig halves = config;
  halves.format.type = WeightType::f16;
  EXPECT_EQ(DecoderTrainer::create(halves, {1, 3}, &memory), Status::invalid_argument);

  Trainer trainer(model, {1, 6});
  Text text(config, 17, {1, 6});
  double loss = 4.5;
  const auto refused = [&](const TrainingBatch& batch) {
    const Status status = decoder_accumulate(model.decoder(), trainer.trainer(), batch, loss);
    EXPECT_EQ(loss, 4.5);
    return status;
  };
  TrainingBatch batch = text.batch();
  batch.gradient_scale = not_a_number;
  EXPECT_EQ(refused(batch), Status::invalid_argument);
  batch = text.batch();
  batch.targets = nullptr;
  EXPECT_EQ(refused(batch), Status::null_pointer);
  batch = text.batch();
  batch.dropout.p = 1.0F;
  EXPECT_EQ(refused(batch), Status::invalid_argument);
  text.tokens()[5] = config.vocab_size;
  EXPECT_EQ(refused(text.batch()), Status::token_out_of_range);
  text.tokens()[5] = 0;
  text.targets()[5] = -2;
  EXPECT_EQ(refused(text.batch()), Status::token_out_of_range);
  Model other(llama(), 18);
  EXPECT_EQ(decoder_accumulate(other.decoder(), trainer.trainer(), text.batch(), loss), Status::invalid_shape);
  for (const float gradient : trainer.all(TrainingPart::gradients)) ASSERT_EQ(gradient, 0.0F);

  double norm = 0;
  EXPECT_EQ(decoder_update(model.decoder(), trainer.trainer(), {{0}}, norm), Status::invalid_argument);
  EXPECT_EQ(decoder_update(model.decoder(), trainer.trainer(), {{1}, -1.0F}, norm), Status::invalid_argument);
  float value = 0;
  const TensorRows outside{DecoderSlot::final_norm_weight, 0, 20, 1};
  EXPECT_EQ(decoder_read(model.decoder(), nullptr, TrainingPart::weights, outside, &value), Status::invalid_range);
  const TensorRows absent{DecoderSlot::gate_weight, 0, 0, 1};
  EXPECT_EQ(decoder_read(model.decoder(), nullptr, TrainingPart::weights, absent, &value), Status::invalid_range);
  const TensorRows first{DecoderSlot::final_norm_weight, 0, 0, 1};
  EXPECT_EQ(decoder_read(model.decoder(), nullptr, TrainingPart::gradients, first, &value), Status::null_pointer);
  EXPECT_EQ(decoder_write_moments(trainer.trainer(), TrainingPart::weights, first, &value), Status::invalid_argument);
}

TEST(training, more_threads_than_a_trainer_was_made_for_are_refused_before_anything_is_changed) {
  DecoderConfig config = gpt2();
  config.context_length = 160;
  Model model(config, 19);
  const TrainingShape shape{3, 130};
  const Text text(config, 20, shape);
  Trainer trainer(model, shape);
  Trainer expected(model, shape);
  const double loss = expected.accumulate(text.batch());
  if (set_threads(2) == 1) GTEST_SKIP() << "a build without threads";
  double untouched_loss = 4.5;
  EXPECT_EQ(decoder_accumulate(model.decoder(), trainer.trainer(), text.batch(), untouched_loss),
            Status::workspace_too_small);
  EXPECT_EQ(decoder_evaluate(model.decoder(), trainer.trainer(), text.batch(), untouched_loss),
            Status::workspace_too_small);
  EXPECT_EQ(untouched_loss, 4.5);
  for (const float gradient : trainer.all(TrainingPart::gradients)) ASSERT_EQ(gradient, 0.0F);
  Trainer made_for_two(model, shape);
  set_threads(1);
  for (Trainer* other : {&trainer, &made_for_two}) {
    EXPECT_EQ(other->accumulate(text.batch()), loss);
    EXPECT_TRUE(all_same_bits(other->all(TrainingPart::gradients), expected.all(TrainingPart::gradients)));
  }
}

/// The loss of a batch, and what it would be one small step of all weights along `direction` away.
double loss_beside(Model& model, Trainer& trainer, const TrainingBatch& batch, const std::vector<float>& direction,
                   float step) {
  std::size_t next = 0;
  for_each_tensor(model.config(), [&](DecoderSlot slot, Index layer, SlotShape shape) {
    std::vector<float> values = model.tensors().at({slot, layer});
    for (float& value : values) value += step * direction[next++];
    ASSERT_EQ(model.decoder().write({slot, layer, 0, shape.rows, values.data(), WeightType::f32, shape.columns, false}),
              Status::ok);
  });
  decoder_zero_gradients(trainer.trainer());
  return trainer.accumulate(batch);
}

TEST(training, R19_dropout_has_one_mask_for_both_ways_another_for_another_seed_and_none_in_evaluation) {
  for (const DecoderConfig& config : {gpt2(), gemma()}) {
    DecoderConfig plain = config;
    plain.norm_weights_from_one = false;
    Model model(plain, 21);
    const TrainingShape shape{2, 12};
    Trainer trainer(model, shape);
    const Text text(plain, 22, shape, 1.0 / 24);
    TrainingBatch batch = text.batch();
    batch.dropout = {0.3F, 77};
    const double loss = trainer.accumulate(batch);
    const std::vector<float> gradients = trainer.all(TrainingPart::gradients);
    double norm = 0;
    for (const float gradient : gradients) norm += static_cast<double>(gradient) * gradient;
    std::vector<float> direction = gradients;
    for (float& value : direction) value /= static_cast<float>(std::sqrt(norm));
    const double above = loss_beside(model, trainer, batch, direction, 1e-3F);
    const double below = loss_beside(model, trainer, batch, direction, -1e-3F);
    EXPECT_NEAR((above - below) / 2e-3 / 24, std::sqrt(norm), 1e-2 * std::sqrt(norm));

    EXPECT_EQ(loss_beside(model, trainer, batch, direction, 0.0F), loss);
    EXPECT_TRUE(all_same_bits(trainer.all(TrainingPart::gradients), gradients));
    batch.dropout.seed = 78;
    EXPECT_NE(trainer.accumulate(batch), loss);
    double evaluated = 0;
    ASSERT_EQ(decoder_evaluate(model.decoder(), trainer.trainer(), batch, evaluated), Status::ok);
    EXPECT_EQ(evaluated, trainer.accumulate(text.batch()));
  }
}

TEST(training, steps_on_one_text_teach_it) {
  Model model(llama(), 19);
  Trainer trainer(model, {2, 16});
  const Text text(model.config(), 20, {2, 16}, 1.0 / 26);
  const double before = trainer.accumulate(text.batch());
  double after = before;
  for (int number = 1; number <= 60; ++number) {
    double norm = 0;
    ASSERT_EQ(decoder_update(model.decoder(), trainer.trainer(), {{number, 0.01F}, 1.0F}, norm), Status::ok);
    after = trainer.accumulate(text.batch());
  }
  EXPECT_LT(after, 0.1 * before);
}

}  // namespace
}  // namespace lookback::test
