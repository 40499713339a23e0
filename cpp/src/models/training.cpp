#include "lookback/training.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/training_pass.hpp"

namespace lookback {
namespace {

/// Where gradients and moments lie, seen from the trainer's memory.
double offset_of(const TrainerLayout& layout, TrainingPart part) noexcept {
  return part == TrainingPart::gradients       ? layout.gradients
         : part == TrainingPart::first_moments ? layout.first_moments
                                               : layout.second_moments;
}

float* floats(void* memory, double offset) noexcept {
  return reinterpret_cast<float*>(static_cast<char*>(memory) + static_cast<std::size_t>(offset));
}

Status validate_rows(const DecoderConfig& config, TrainingPart part, const TensorRows& rows,
                     const void* values) noexcept {
  if (part < TrainingPart::weights || part > TrainingPart::second_moments) return Status::invalid_argument;
  const SlotShape shape = decoder_slot(config, rows.slot);
  if (shape.rows == 0 || rows.layer < 0 || rows.layer >= slot_layers(config, rows.slot) || rows.first_row < 0 ||
      rows.row_count < 0 || rows.row_count > shape.rows - rows.first_row) {
    return Status::invalid_range;
  }
  return values == nullptr && rows.row_count > 0 ? Status::null_pointer : Status::ok;
}

/// All floats of a decoder's tensors, gaps between them included: these are 0 in gradients.
Index tensor_floats(const DecoderLayout& layout) noexcept {
  return static_cast<Index>((layout.bytes - layout.first_tensor) / sizeof(float));
}

Status run(const Decoder& decoder, DecoderTrainer& trainer, const TrainingBatch& batch, bool with_gradients,
           double& loss_sum) noexcept {
  TrainingPass pass(decoder, trainer, batch);
  if (const Status status = pass.validate(); status != Status::ok) return status;
  pass.forward();
  pass.read_out(with_gradients, loss_sum);
  if (with_gradients) pass.backward();
  return pass.status();
}

/// Floats that a tensor takes in the decoder's memory.
Index stored_floats(const DecoderConfig& config, const SlotShape& shape, bool packed) noexcept {
  if (!packed) return shape.rows * shape.columns;
  return static_cast<Index>(packed_linear_bytes(shape.columns, shape.rows, config.format) / sizeof(float));
}

}  // namespace

double DecoderTrainer::bytes(const DecoderConfig& config, const TrainingShape& shape) noexcept {
  return TrainerLayout(config, shape).bytes;
}

Status DecoderTrainer::create(const DecoderConfig& config, const TrainingShape& shape, void* memory) noexcept {
  if (const Status status = validate_decoder(config); status != Status::ok) return status;
  if (config.format.type != WeightType::f32) return Status::invalid_argument;
  if (shape.batch < 1 || shape.length < 1) return Status::invalid_shape;
  if (shape.length > config.context_length) return Status::context_exceeded;
  if (memory == nullptr) return Status::null_pointer;
  const TrainerLayout layout(config, shape);
  const TrainerHead head{shape, config, DecoderLayout(config), layout};
  std::memcpy(memory, &head, sizeof head);
  const double end = layout.second_moments + Decoder::bytes(config);
  std::memset(floats(memory, layout.gradients), 0, static_cast<std::size_t>(end - layout.gradients));
  return Status::ok;
}

const TrainingShape& DecoderTrainer::shape() const noexcept { return head_of(*this).shape; }
const DecoderConfig& DecoderTrainer::config() const noexcept { return head_of(*this).config; }

Status decoder_accumulate(const Decoder& decoder, DecoderTrainer& trainer, const TrainingBatch& batch,
                          double& loss_sum) noexcept {
  return run(decoder, trainer, batch, true, loss_sum);
}

Status decoder_evaluate(const Decoder& decoder, DecoderTrainer& trainer, const TrainingBatch& batch,
                        double& loss_sum) noexcept {
  TrainingBatch undropped = batch;
  undropped.dropout = {};
  return run(decoder, trainer, undropped, false, loss_sum);
}

void decoder_zero_gradients(DecoderTrainer& trainer) noexcept {
  const TrainerHead& head = head_of(trainer);
  std::memset(floats(trainer.memory(), head.layout.gradients), 0, static_cast<std::size_t>(head.decoder.bytes));
}

Status decoder_update(Decoder& decoder, DecoderTrainer& trainer, const DecoderStep& step,
                      double& gradient_norm_before) noexcept {
  const TrainerHead& head = head_of(trainer);
  const DecoderConfig& config = decoder.config();
  if (!is_trainer_of(head, config)) return Status::invalid_shape;
  if (const Status status = validate_adamw(step.adamw); status != Status::ok) return status;
  if (!std::isfinite(step.max_norm) || step.max_norm < 0.0F) return Status::invalid_argument;
  void* memory = trainer.memory();
  const TrainerScratch work = head.layout.scratch(memory);
  double norm = 0.0;
  const Status status = gradient_norm(floats(memory, head.layout.gradients + head.decoder.first_tensor),
                                      tensor_floats(head.decoder), norm, work.workspace, work.workspace_bytes);
  if (status != Status::ok) return status;
  gradient_norm_before = norm;
  if (!std::isfinite(norm)) return Status::not_finite;
  AdamWCall call;
  call.gradient_factor = clipping_factor(norm, step.max_norm);
  for (int number = 0; number < decoder_slot_count; ++number) {
    const auto slot = static_cast<DecoderSlot>(number);
    const SlotShape shape = decoder_slot(config, slot);
    if (shape.rows == 0) continue;
    for (Index layer = 0; layer < slot_layers(config, slot); ++layer) {
      const SlotPlace place = find_slot(head.decoder, slot, layer);
      call.options = step.adamw;
      const bool is_matrix = place.packed || slot == DecoderSlot::position_embedding;
      if (!is_matrix) call.options.weight_decay = 0.0F;
      call.weights = floats(decoder.memory(), place.offset);
      call.gradients = floats(memory, head.layout.gradients + place.offset);
      call.first_moments = floats(memory, head.layout.first_moments + place.offset);
      call.second_moments = floats(memory, head.layout.second_moments + place.offset);
      call.count = stored_floats(config, shape, place.packed);
      if (const Status stepped = adamw_step(call); stepped != Status::ok) return stepped;
    }
  }
  return Status::ok;
}

Status decoder_read(const Decoder& decoder, const DecoderTrainer* trainer, TrainingPart part, const TensorRows& rows,
                    float* values) noexcept {
  const DecoderConfig& config = decoder.config();
  if (const Status status = validate_rows(config, part, rows, values); status != Status::ok) return status;
  if (part != TrainingPart::weights) {
    if (trainer == nullptr) return Status::null_pointer;
    if (!is_trainer_of(head_of(*trainer), config)) return Status::invalid_shape;
  }
  const SlotShape shape = decoder_slot(config, rows.slot);
  const SlotPlace place = find_slot(DecoderLayout(config), rows.slot, rows.layer);
  const float* source = part == TrainingPart::weights
                            ? floats(decoder.memory(), place.offset)
                            : floats(trainer->memory(), offset_of(head_of(*trainer).layout, part) + place.offset);
  if (place.packed) {
    return unpack_linear({source, nullptr, shape.columns, shape.rows, config.format}, rows.first_row, rows.row_count,
                         values);
  }
  const Index count = rows.row_count * shape.columns;
  const bool from_one = place.is_norm_weight && config.norm_weights_from_one && part == TrainingPart::weights;
  const float* first = source + rows.first_row * shape.columns;
  std::transform(first, first + count, values, [from_one](float value) { return from_one ? value - 1.0F : value; });
  return Status::ok;
}

Status decoder_write_moments(DecoderTrainer& trainer, TrainingPart part, const TensorRows& rows,
                             const float* values) noexcept {
  const TrainerHead& head = head_of(trainer);
  if (const Status status = validate_rows(head.config, part, rows, values); status != Status::ok) return status;
  if (part != TrainingPart::first_moments && part != TrainingPart::second_moments) return Status::invalid_argument;
  const SlotShape shape = decoder_slot(head.config, rows.slot);
  const SlotPlace place = find_slot(head.decoder, rows.slot, rows.layer);
  float* target = floats(trainer.memory(), offset_of(head.layout, part) + place.offset);
  if (place.packed) {
    return pack_linear({values, WeightType::f32, false, rows.first_row, rows.row_count, 0}, shape.columns, shape.rows,
                       head.config.format, target);
  }
  std::copy_n(values, rows.row_count * shape.columns, target + rows.first_row * shape.columns);
  return Status::ok;
}

}  // namespace lookback
