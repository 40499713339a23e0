#pragma once

// What a session's memory holds: a head with its sizes, a cache per layer, and the scratch memory of a call at its largest.

#include "lookback/attention.hpp"
#include "lookback/decoder.hpp"

namespace lookback {

/// Scratch memory of a call; B·L rows are a row per new token of each sequence.
struct DecoderScratch {
  std::int32_t* tokens;     ///< [B·L], 0 where a token is not real
  std::int32_t* positions;  ///< [B·L]
  float* residual;          ///< [B·L, embed_dim]
  float* normed;            ///< [B·L, embed_dim]
  float* queries;           ///< [B·L, heads · head_dim]
  float* keys;              ///< [B·L, kv_heads · head_dim]
  float* values;            ///< [B·L, kv_heads · head_dim]
  float* heads_output;      ///< [B·L, heads · head_dim]
  float* gate;              ///< [B·L, hidden_dim]; used if gated
  float* up;                ///< [B·L, hidden_dim]
  float* cosines[2];        ///< [B·L, dims / 2] of full and of windowed layers
  float* sines[2];
  double* frequencies;  ///< [dims / 2]
  void* workspace;      ///< of an attention or a linear map
  std::size_t workspace_bytes;
};

/// Byte offsets. Planned once, when the session is made, and kept in its head.
class SessionLayout {
public:
  SessionLayout(const DecoderConfig& config, const DecoderSessionShape& shape) noexcept;

  [[nodiscard]] DecoderScratch scratch(void* memory) const noexcept;
  [[nodiscard]] double cache(const DecoderConfig& config, Index layer) const noexcept;

  double padding, step_tokens, step_logits, bytes;
  Index threads;  ///< that the workspace is for

private:
  double take(double byte_count) noexcept;

  double first_cache_, cache_bytes_[2];  ///< of a full layer, of a windowed one
  double tokens_, positions_, residual_, normed_, queries_, keys_, values_, heads_output_, gate_, up_;
  double cosines_[2], sines_[2], frequencies_, workspace_, workspace_bytes_;
  double next_ = 0;
};

struct SessionHead {
  DecoderSessionShape shape;
  DecoderConfig config;
  SessionLayout layout;
};

KvCacheShape cache_shape(const DecoderConfig& config, const DecoderSessionShape& shape, bool windowed) noexcept;

/// How a layer turns its queries and keys.
RotaryOptions rotary_of_layer(const DecoderConfig& config, bool windowed) noexcept;

/// The attention of a layer; `length` new tokens, `columns` in the cache before them. Operands are for the caller to set.
AttentionCall attention_of_layer(const DecoderConfig& config, bool windowed, Index batch, Index length,
                                 Index columns) noexcept;

}  // namespace lookback
