#pragma once

#include <cstddef>
#include <cstdint>

#include "lookback/adamw.hpp"
#include "lookback/attention.hpp"
#include "lookback/decoder.hpp"
#include "lookback/status.hpp"

namespace lookback {

struct TrainingShape {
  std::int32_t batch = 1;
  std::int32_t length = 1;  ///< tokens of each row, at most the decoder's context_length
};

/// What training adds to a decoder: one block of memory with gradients and AdamW's moments, laid out as the decoder's weights are,
/// the activations of a batch, and all scratch memory of a call.
///
/// Kept from the forward pass for the backward one, of each layer and for B · L rows: the residual stream before attention and before the
/// MLP, queries, keys and values as attention reads them, its output and log-sum-exp, and what the MLP's first maps give; with a norm of
/// queries and keys also these before it, with post norms what they normalise. Normalised rows and activations are computed again.
/// Logits are made for some rows at a time, never more than 64 MB of them (or one row).
class DecoderTrainer {
public:
  DecoderTrainer() noexcept = default;
  /// `memory`, aligned to 64, was given to create() before.
  explicit DecoderTrainer(void* memory) noexcept : memory_(memory) {}

  /// A double, so that a size beyond the address space is a number and not an overflow.
  [[nodiscard]] static double bytes(const DecoderConfig& config, const TrainingShape& shape) noexcept;
  /// Gradients and moments are 0 afterwards. invalid_argument if the decoder's format is not f32, context_exceeded.
  static Status create(const DecoderConfig& config, const TrainingShape& shape, void* memory) noexcept;

  [[nodiscard]] const TrainingShape& shape() const noexcept;
  [[nodiscard]] const DecoderConfig& config() const noexcept;

  [[nodiscard]] void* memory() const noexcept { return memory_; }

private:
  void* memory_ = nullptr;
};

struct TrainingBatch {
  const std::int32_t* tokens = nullptr;   ///< [B, L]
  const std::int32_t* targets = nullptr;  ///< [B, L]: the token that follows each; −1 = not counted
  bool causal = true;                     ///< false: every token sees the whole row, and so its own target
  float gradient_scale = 1.0F;            ///< gradients are those of gradient_scale · Σ loss
  /// Of attention weights and of what each branch adds to the residual stream. The seed changes from batch to batch; each layer's masks are
  /// its own.
  Dropout dropout;
};

/// Forward, cross-entropy and backward: adds to the gradients. `loss_sum` = Σ −ln p(target) over the targets that count, in nats. Refuses
/// before anything is changed: null_pointer, token_out_of_range, invalid_argument; invalid_shape where the trainer is another
/// decoder's; workspace_too_small where there are more threads than when it was made. The bits depend on the batch, the weights and the
/// options only. Allocates nothing.
Status decoder_accumulate(const Decoder& decoder, DecoderTrainer& trainer, const TrainingBatch& batch,
                          double& loss_sum) noexcept;

/// Forward and loss only, without dropout; gradients stay as they are.
Status decoder_evaluate(const Decoder& decoder, DecoderTrainer& trainer, const TrainingBatch& batch,
                        double& loss_sum) noexcept;

struct DecoderStep {
  AdamWOptions adamw;     ///< weight_decay of matrices and tables only: not of norms and biases
  float max_norm = 0.0F;  ///< gradients are scaled down to this norm of all of them together; 0 = never
};

/// Clips, steps, and sets the gradients to 0. `gradient_norm` is that before clipping. not_finite where it is NaN or ∞: then nothing has
/// changed.
Status decoder_update(Decoder& decoder, DecoderTrainer& trainer, const DecoderStep& step,
                      double& gradient_norm) noexcept;

void decoder_zero_gradients(DecoderTrainer& trainer) noexcept;

enum class TrainingPart : int { weights = 0, gradients = 1, first_moments = 2, second_moments = 3 };

/// Rows of a tensor, outside of the decoder: [row_count, columns] of float32.
struct TensorRows {
  DecoderSlot slot = DecoderSlot::token_embedding;
  Index layer = 0;
  Index first_row = 0;
  Index row_count = 0;
};

/// Copies rows of a tensor's weights, gradients or moments into `values`, the exact inverse of Decoder::write (but that what
/// norm_weights_from_one adds is rounded). The trainer is needed for all but the weights. invalid_range.
Status decoder_read(const Decoder& decoder, const DecoderTrainer* trainer, TrainingPart part, const TensorRows& rows,
                    float* values) noexcept;

/// The inverse, for first_moments and second_moments (else invalid_argument).
Status decoder_write_moments(DecoderTrainer& trainer, TrainingPart part, const TensorRows& rows,
                             const float* values) noexcept;

}  // namespace lookback
