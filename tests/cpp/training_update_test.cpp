// Steps of AdamW on whole decoders against a float64 run; weights and moments in and out.

#include "training_support.hpp"

namespace lookback::test {
namespace {

constexpr TrainingPart moments[] = {TrainingPart::first_moments, TrainingPart::second_moments};

/// AdamW as in the paper, in float64, without a line of the core.
struct ReferenceAdamW {
  std::vector<double> weights, first, second;

  void step(const std::vector<float>& gradients, double factor, int number, double rate, double decay) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double g = gradients[i] * factor;
      first[i] = 0.9 * first[i] + 0.1 * g;
      second[i] = 0.95 * second[i] + 0.05 * g * g;
      const double m = first[i] / (1 - std::pow(0.9, number));
      const double v = second[i] / (1 - std::pow(0.95, number));
      weights[i] -= rate * (m / (std::sqrt(v) + 1e-8) + decay * weights[i]);
    }
  }
};

TEST(training, adamw_follows_a_float64_run_for_20_steps_and_decays_matrices_only) {
  Model model(gpt2(), 11);
  const DecoderConfig& config = model.config();
  Trainer trainer(model, {1, 8});
  std::map<std::pair<DecoderSlot, Index>, ReferenceAdamW> expected;
  for (const auto& [key, values] : model.tensors()) {
    expected[key] = {
        {values.begin(), values.end()}, std::vector<double>(values.size()), std::vector<double>(values.size())};
  }
  for (int number = 1; number <= 20; ++number) {
    const Text text(config, static_cast<std::uint32_t>(number), {1, 8}, 0.125);
    trainer.accumulate(text.batch());
    double squares = 0;
    for (const float gradient : trainer.all(TrainingPart::gradients))
      squares += static_cast<double>(gradient) * gradient;
    const double norm = std::sqrt(squares);
    const double max_norm = number > 10 ? 0.3 : 0.0;
    const double factor = max_norm > 0 && norm > max_norm ? max_norm / norm : 1.0;
    if (number > 10) EXPECT_LT(factor, 1.0) << "the second half is to be clipped";
    for (auto& [key, run] : expected) {
      const bool is_matrix = decoder_slot(config, key.first).columns > 1;
      run.step(trainer.read(TrainingPart::gradients, key.first, key.second), factor, number, 0.01,
               is_matrix ? 0.1 : 0.0);
    }
    double found_norm = 0;
    const DecoderStep step{{number, 0.01F, 0.9F, 0.95F, 1e-8F, 0.1F}, static_cast<float>(max_norm)};
    ASSERT_EQ(decoder_update(model.decoder(), trainer.trainer(), step, found_norm), Status::ok);
    EXPECT_NEAR(found_norm, norm, 1e-6 * norm);
    for (const float gradient : trainer.all(TrainingPart::gradients)) ASSERT_EQ(gradient, 0.0F);
  }
  for (const auto& [key, run] : expected) {
    // A step is of the size of the rate, and its error that of a quotient of small numbers.
    EXPECT_TRUE(all_near(trainer.read(TrainingPart::weights, key.first, key.second), run.weights, 2e-5));
    EXPECT_TRUE(all_near(trainer.read(TrainingPart::first_moments, key.first, key.second), run.first, 1e-6));
    EXPECT_TRUE(all_near(trainer.read(TrainingPart::second_moments, key.first, key.second), run.second, 1e-6));
  }
}

TEST(training, a_gradient_that_is_not_finite_takes_no_step) {
  Model model(llama(), 12);
  Trainer trainer(model, {1, 4});
  const Text text(model.config(), 13, {1, 4});
  TrainingBatch batch = text.batch();
  batch.gradient_scale = 3e38F;
  trainer.accumulate(batch);
  trainer.accumulate(batch);
  const std::vector<float> before = trainer.all(TrainingPart::weights);
  double norm = 0;
  EXPECT_EQ(decoder_update(model.decoder(), trainer.trainer(), {}, norm), Status::not_finite);
  EXPECT_FALSE(std::isfinite(norm));
  EXPECT_TRUE(all_same_bits(trainer.all(TrainingPart::weights), before));
  for (const TrainingPart part : moments) {
    for (const float moment : trainer.all(part)) ASSERT_EQ(moment, 0.0F);
  }
  decoder_zero_gradients(trainer.trainer());
  trainer.accumulate(text.batch());
  EXPECT_EQ(decoder_update(model.decoder(), trainer.trainer(), {}, norm), Status::ok);
}

TEST(training, weights_and_moments_come_out_as_they_went_in) {
  for (const DecoderConfig& config : {gpt2(), llama()}) {
    Model model(config, 15);
    Trainer trainer(model, {1, 3});
    for (const auto& [key, values] : model.tensors()) {
      EXPECT_TRUE(all_same_bits(trainer.read(TrainingPart::weights, key.first, key.second), values));
      const SlotShape shape = decoder_slot(config, key.first);
      for (const TrainingPart part : moments) {
        for (Index row = 0; row < shape.rows; row += 5) {
          ASSERT_EQ(decoder_write_moments(trainer.trainer(), part,
                                          {key.first, key.second, row, std::min<Index>(5, shape.rows - row)},
                                          values.data() + row * shape.columns),
                    Status::ok);
        }
        EXPECT_TRUE(all_same_bits(trainer.read(part, key.first, key.second), values));
      }
    }
  }
}

}  // namespace
}  // namespace lookback::test
