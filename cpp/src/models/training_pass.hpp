#pragma once

// One batch through a decoder and back. Gradients lie in the trainer at the offsets that their tensors have in the decoder.

#include "lookback/embedding.hpp"
#include "models/trainer_layout.hpp"

namespace lookback {

/// What adds to the residual stream of a layer.
enum class Branch : int { attention = 0, mlp = 1 };

class TrainingPass {
public:
  TrainingPass(const Decoder& decoder, const DecoderTrainer& trainer, const TrainingBatch& batch) noexcept;

  [[nodiscard]] Status validate() const noexcept;
  /// From the tokens to the last layer's output; what the backward pass needs stays in the trainer.
  Status forward() noexcept;
  /// Reads logits and sums losses. With gradients also those of the head and of the last layer's output.
  Status read_out(bool with_gradients, double& loss_sum) noexcept;
  /// From the last layer's output to the tokens.
  Status backward() noexcept;

private:
  Status attend(Index layer, const LayerWeights& parameters, const LayerActivations& kept) noexcept;
  Status transform(Index layer, const LayerWeights& parameters, const LayerActivations& kept, float* output) noexcept;
  Status attend_backward(Index layer, const LayerWeights& parameters, const LayerActivations& kept) noexcept;
  Status transform_backward(Index layer, const LayerWeights& parameters, const LayerActivations& kept) noexcept;
  /// The gradient of what a branch gave before its post norm and dropout, whether it has them or not.
  Status branch_backward(Index layer, Branch branch, const float* post_norm, const float* before_norm,
                         const float*& gradient) const noexcept;
  /// Dropout of work_.branch.
  void drop(Index layer, Branch branch) const noexcept;
  /// work_.hidden = what the MLP's last map reads.
  Status activate(const LayerActivations& kept) const noexcept;

  /// [B·L, heads · head_dim] as [B, heads, L, head_dim].
  template <typename T>
  [[nodiscard]] BasicView<T> heads_of(T* data, Index heads) const noexcept {
    const Index width = heads * config_.head_dim;
    return {data, shape_.length * width, config_.head_dim, width};
  }

  [[nodiscard]] EmbeddingCall embedding() const noexcept;
  [[nodiscard]] AttentionCall attention(Index layer, const LayerActivations& kept) const noexcept;
  [[nodiscard]] NormCall norm_of_rows(const float* input, const float* weight, const float* bias,
                                      float* output) const noexcept;
  [[nodiscard]] NormCall norm_of_heads(const float* input, const float* weight, Index heads,
                                       float* output) const noexcept;
  Status multiply(const PackedLinear& layer, const float* input, float* output) const noexcept;
  /// grad_input = (or +=) grad_output · weight; adds to the gradients of weight and bias.
  Status multiply_backward(const PackedLinear& layer, const float* input, const float* grad_output, float* grad_input,
                           bool add = false) const noexcept;
  Status normalise_backward(const NormCall& forward, const float* grad_output, float* grad_input,
                            bool add) const noexcept;
  void turn(float* data, Index heads, Index layer, bool transposed) const noexcept;
  void turn_tables() const noexcept;
  /// sum = a + b, [rows, embed_dim].
  void add(const float* a, const float* b, float* sum) const noexcept;
  /// Where the gradient of a parameter is; nullptr if there is no such parameter.
  [[nodiscard]] float* gradient_of(const void* parameter) const noexcept;

  const DecoderConfig& config_;
  DecoderWeights weights_;
  const char* decoder_;
  const DecoderTrainer& trainer_;
  const TrainerHead& head_;
  const TrainingBatch& batch_;
  TrainingShape shape_;
  Index rows_;
  TrainerScratch work_;
};

}  // namespace lookback
