// Registers what js/src/module-training.ts declares.

#include <emscripten/bind.h>

#include "lookback/training.hpp"
#include "marshal.hpp"

namespace {

using namespace lookback;
using namespace lookback::bindings;

struct RawTrainingShape {
  std::int32_t batch, length;
};

struct RawTrainingBatch {
  Pointer tokens, targets;
  bool causal;
  float gradientScale, dropout;
  std::uint32_t seedLow, seedHigh;
};

struct RawTrainingLoss {
  std::int32_t status;
  double loss;
};

struct RawTrainingStep {
  double step;
  float learningRate, beta1, beta2, epsilon, weightDecay, maxNorm;
};

struct RawTrainingNorm {
  std::int32_t status;
  double gradientNorm;
};

struct RawTensorRows {
  std::int32_t slot, layer, firstRow, rowCount;
};

Decoder decoder_at(Pointer memory) { return Decoder(to_pointer<void>(memory)); }
DecoderTrainer trainer_at(Pointer memory) { return DecoderTrainer(to_pointer<void>(memory)); }

TrainingBatch to_batch(const RawTrainingBatch& raw) {
  return {to_pointer<const std::int32_t>(raw.tokens),
          to_pointer<const std::int32_t>(raw.targets),
          raw.causal,
          raw.gradientScale,
          {raw.dropout, static_cast<std::uint64_t>(raw.seedHigh) << 32U | raw.seedLow}};
}

DecoderStep to_step(const RawTrainingStep& raw) {
  return {{static_cast<std::int64_t>(raw.step), raw.learningRate, raw.beta1, raw.beta2, raw.epsilon, raw.weightDecay},
          raw.maxNorm};
}

TensorRows to_rows(const RawTensorRows& raw) {
  return {static_cast<DecoderSlot>(raw.slot), raw.layer, raw.firstRow, raw.rowCount};
}

double trainer_bytes(Pointer decoder, const RawTrainingShape& shape) {
  return DecoderTrainer::bytes(decoder_at(decoder).config(), {shape.batch, shape.length});
}

int trainer_create(Pointer decoder, const RawTrainingShape& shape, Pointer trainer) {
  return static_cast<int>(
      DecoderTrainer::create(decoder_at(decoder).config(), {shape.batch, shape.length}, to_pointer<void>(trainer)));
}

RawTrainingLoss accumulate(Pointer decoder, Pointer trainer, const RawTrainingBatch& batch) {
  DecoderTrainer used = trainer_at(trainer);
  double loss = 0;
  const Status status = decoder_accumulate(decoder_at(decoder), used, to_batch(batch), loss);
  return {static_cast<int>(status), loss};
}

RawTrainingLoss evaluate(Pointer decoder, Pointer trainer, const RawTrainingBatch& batch) {
  DecoderTrainer used = trainer_at(trainer);
  double loss = 0;
  const Status status = decoder_evaluate(decoder_at(decoder), used, to_batch(batch), loss);
  return {static_cast<int>(status), loss};
}

RawTrainingNorm update(Pointer decoder, Pointer trainer, const RawTrainingStep& step) {
  Decoder stepped = decoder_at(decoder);
  DecoderTrainer used = trainer_at(trainer);
  double norm = 0;
  const Status status = decoder_update(stepped, used, to_step(step), norm);
  return {static_cast<int>(status), norm};
}

void zero_gradients(Pointer trainer) {
  DecoderTrainer used = trainer_at(trainer);
  decoder_zero_gradients(used);
}

int read_part(Pointer decoder, Pointer trainer, int part, const RawTensorRows& rows, Pointer values) {
  const DecoderTrainer used = trainer_at(trainer);
  return static_cast<int>(decoder_read(decoder_at(decoder), trainer != 0 ? &used : nullptr,
                                       static_cast<TrainingPart>(part), to_rows(rows), to_pointer<float>(values)));
}

int write_moments(Pointer trainer, int part, const RawTensorRows& rows, Pointer values) {
  DecoderTrainer used = trainer_at(trainer);
  return static_cast<int>(
      decoder_write_moments(used, static_cast<TrainingPart>(part), to_rows(rows), to_pointer<const float>(values)));
}

}  // namespace

EMSCRIPTEN_BINDINGS(lookback_training) {
  using emscripten::function;
  using emscripten::value_object;

  value_object<RawTrainingShape>("RawTrainingShape")
      .field("batch", &RawTrainingShape::batch)
      .field("length", &RawTrainingShape::length);

  value_object<RawTrainingBatch>("RawTrainingBatch")
      .field("tokens", &RawTrainingBatch::tokens)
      .field("targets", &RawTrainingBatch::targets)
      .field("causal", &RawTrainingBatch::causal)
      .field("gradientScale", &RawTrainingBatch::gradientScale)
      .field("dropout", &RawTrainingBatch::dropout)
      .field("seedLow", &RawTrainingBatch::seedLow)
      .field("seedHigh", &RawTrainingBatch::seedHigh);

  value_object<RawTrainingLoss>("RawTrainingLoss")
      .field("status", &RawTrainingLoss::status)
      .field("loss", &RawTrainingLoss::loss);

  value_object<RawTrainingStep>("RawTrainingStep")
      .field("step", &RawTrainingStep::step)
      .field("learningRate", &RawTrainingStep::learningRate)
      .field("beta1", &RawTrainingStep::beta1)
      .field("beta2", &RawTrainingStep::beta2)
      .field("epsilon", &RawTrainingStep::epsilon)
      .field("weightDecay", &RawTrainingStep::weightDecay)
      .field("maxNorm", &RawTrainingStep::maxNorm);

  value_object<RawTrainingNorm>("RawTrainingNorm")
      .field("status", &RawTrainingNorm::status)
      .field("gradientNorm", &RawTrainingNorm::gradientNorm);

  value_object<RawTensorRows>("RawTensorRows")
      .field("slot", &RawTensorRows::slot)
      .field("layer", &RawTensorRows::layer)
      .field("firstRow", &RawTensorRows::firstRow)
      .field("rowCount", &RawTensorRows::rowCount);

  function("trainerBytes", &trainer_bytes);
  function("trainerCreate", &trainer_create);
  function("trainerAccumulate", &accumulate);
  function("trainerEvaluate", &evaluate);
  function("trainerUpdate", &update);
  function("trainerZeroGradients", &zero_gradients);
  function("trainerRead", &read_part);
  function("trainerWriteMoments", &write_moments);
}
