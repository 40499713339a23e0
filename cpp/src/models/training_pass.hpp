#pragma once

// One batch through a decoder and back. Gradients lie in the trainer at the offsets that their tensors have in the decoder.

#include "lookback/embedding.hpp"
#include "models/trainer_layout.hpp"

namespace lookback {

/// What adds to the residual stream of a layer.
enum class Branch : int { attention = 0, mlp = 1 };

/// Each step may fail, though none is expected to once validate() has passed; after the first that did the others do nothing.
class TrainingPass {
public:
  TrainingPass(const Decoder& decoder, const DecoderTrainer& trainer, const TrainingBatch& batch) noexcept;

  [[nodiscard]] Status validate() const noexcept;
  /// From the tokens to the last layer's output; what the backward pass needs stays in the trainer.
  void forward() noexcept;
  /// Reads logits and sums losses. With gradients also those of the head and of the last layer's output.
  void read_out(bool with_gradients, double& loss_sum) noexcept;
  /// From the last layer's output to the tokens.
  void backward() noexcept;

  [[nodiscard]] Status status() const noexcept { return status_; }

private:
  void attend(Index layer) noexcept;
  void transform(Index layer) noexcept;
  void transform_backward(Index layer) noexcept;
  void attend_backward(Index layer) noexcept;

  /// work_.normed = norm(input).
  void normalise(const float* input, const float* weight, const float* bias) noexcept;
  /// Adds what the norm's gradient gives for work_.grad_normed to work_.grad_residual.
  void normalise_backward(const float* input, const float* weight, const float* bias) noexcept;
  void normalise_heads(const float* input, const float* weight, Index heads, float* output) noexcept;
  /// In place.
  void normalise_heads_backward(const float* input, const float* weight, Index heads, float* gradients) noexcept;
  void multiply(const PackedLinear& layer, const float* input, float* output) noexcept;
  /// grad_input = (or +=) grad_output · weight; adds to the gradients of weight and bias.
  void multiply_backward(const PackedLinear& layer, const float* input, const float* grad_output, float* grad_input,
                         bool add = false) noexcept;
  /// work_.hidden = what the MLP's last map reads.
  void activate(const LayerActivations& kept) noexcept;
  /// The last map of a branch, post norm and dropout; sum = stream + what they give.
  void add_branch(Index layer, Branch branch, const PackedLinear& map, const float* input, const float* stream,
                  float* sum) noexcept;
  /// work_.branch = the gradient of what the branch's last map gave, where that is not work_.grad_residual itself; returns where it is.
  const float* branch_backward(Index layer, Branch branch) noexcept;
  /// Dropout of work_.branch.
  void drop(Index layer, Branch branch) const noexcept;
  void turn(float* data, Index heads, Index layer, bool transposed) const noexcept;
  void turn_tables() const noexcept;
  /// sum = a + b, [rows, embed_dim].
  void add(const float* a, const float* b, float* sum) const noexcept;

  /// [B·L, heads · head_dim] as [B, heads, L, head_dim].
  template <typename T>
  [[nodiscard]] BasicView<T> heads_of(T* data, Index heads) const noexcept {
    const Index width = heads * config_.head_dim;
    return {data, shape_.length * width, config_.head_dim, width};
  }

  void run_norm_backward(const NormCall& forward, const float* grad_output, float* grad_input, bool add) noexcept;
  [[nodiscard]] NormCall norm_of_rows(const float* input, const float* weight, const float* bias,
                                      float* output) const noexcept;
  [[nodiscard]] NormCall norm_of_heads(const float* input, const float* weight, Index heads,
                                       float* output) const noexcept;
  [[nodiscard]] EmbeddingCall embedding() const noexcept;
  [[nodiscard]] AttentionCall attention(Index layer, const LayerActivations& kept) const noexcept;
  [[nodiscard]] LayerActivations activations(Index layer) const noexcept;
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
  Status status_ = Status::ok;
};

}  // namespace lookback
