#pragma once

// What a trainer's memory holds: a head with its sizes; gradients and moments, each laid out as the decoder is; activations that the
// backward pass needs; scratch memory. "Rows" are B · L.

#include "lookback/training.hpp"
#include "models/decoder_layout.hpp"

namespace lookback {

/// What the backward pass needs of a layer.
struct LayerActivations {
  float* input;             ///< [rows, embed_dim]: the residual stream; the next layer's is this one's output
  float* middle;            ///< [rows, embed_dim]: the residual stream between attention and MLP
  float* plain_queries;     ///< [rows, heads · head_dim] before their norm: with query_key_norm
  float* plain_keys;        ///< [rows, kv_heads · head_dim]
  float* queries;           ///< [rows, heads · head_dim]
  float* keys;              ///< [rows, kv_heads · head_dim]
  float* values;            ///< [rows, kv_heads · head_dim]
  float* heads_output;      ///< [rows, heads · head_dim]
  float* log_sum_exp;       ///< [B, heads, L]
  float* attention_branch;  ///< [rows, embed_dim] before its norm: with post_norms
  float* gate;              ///< [rows, hidden_dim]: if gated
  float* up;                ///< [rows, hidden_dim]
  float* mlp_branch;        ///< [rows, embed_dim] before its norm: with post_norms
};

struct TrainerScratch {
  std::int32_t* positions;  ///< [rows]
  float* normed;            ///< [rows, embed_dim]
  float* branch;            ///< [rows, embed_dim]: what is added to the residual stream, or its gradient
  float* hidden;            ///< [rows, hidden_dim]: activations
  float* grad_residual;     ///< [rows, embed_dim]
  float* grad_normed;       ///< [rows, embed_dim]
  float* grad_queries;      ///< [rows, heads · head_dim]
  float* grad_keys;         ///< [rows, kv_heads · head_dim]
  float* grad_values;       ///< [rows, kv_heads · head_dim]
  float* grad_heads;        ///< [rows, heads · head_dim]
  float* grad_hidden;       ///< [rows, hidden_dim]
  float* grad_up;           ///< [rows, hidden_dim]: if gated
  float* logits;            ///< [logit_rows, vocab_size]
  double* losses;           ///< [rows]
  float* cosines[2];        ///< [rows, dims / 2] of full and of windowed layers
  float* sines[2];
  double* frequencies;  ///< [dims / 2]
  void* workspace;      ///< of a layer's forward or backward call
  std::size_t workspace_bytes;
};

/// Byte offsets. Planned once, when the trainer is made, and kept in its head.
class TrainerLayout {
public:
  TrainerLayout(const DecoderConfig& config, const TrainingShape& shape) noexcept;

  /// Number `layer` may be config.layers: then only `input` is there, the last layer's output.
  [[nodiscard]] LayerActivations activations(void* memory, Index layer) const noexcept;
  [[nodiscard]] TrainerScratch scratch(void* memory) const noexcept;

  double gradients, first_moments, second_moments, bytes;
  Index logit_rows;
  Index threads;  ///< that the workspace is for

private:
  double take(double byte_count) noexcept;

  double first_layer_, layer_bytes_;
  double input_, middle_, plain_queries_, plain_keys_, queries_, keys_, values_, heads_output_, log_sum_exp_;
  double attention_branch_, gate_, up_, mlp_branch_;
  double positions_, normed_, branch_, hidden_, grad_residual_, grad_normed_, grad_queries_, grad_keys_, grad_values_;
  double grad_heads_, grad_hidden_, grad_up_, logits_, losses_, cosines_[2], sines_[2], frequencies_;
  double workspace_, workspace_bytes_;
  double next_ = 0;
};

struct TrainerHead {
  TrainingShape shape;
  DecoderConfig config;
  DecoderLayout decoder;
  TrainerLayout layout;
};

inline TrainerHead& head_of(const DecoderTrainer& trainer) noexcept {
  return *static_cast<TrainerHead*>(trainer.memory());
}

/// Whether a trainer was made for decoders with this config.
[[nodiscard]] bool is_trainer_of(const TrainerHead& head, const DecoderConfig& config) noexcept;

/// The attention of a layer over a batch; operands are for the caller to set.
AttentionCall training_attention(const DecoderConfig& config, const TrainingShape& shape, bool windowed) noexcept;

}  // namespace lookback
