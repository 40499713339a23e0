#pragma once

#include <cstddef>
#include <cstdint>

#include "lookback/activation.hpp"
#include "lookback/kv_cache.hpp"
#include "lookback/linear.hpp"
#include "lookback/norm.hpp"
#include "lookback/rotary.hpp"
#include "lookback/status.hpp"

namespace lookback {

/// A decoder of the GPT-2 and Llama families, whole: with
///   x = embed_scale · E[token] (+ P[position]), then per layer
///   x += post_norm?(attention(norm(x)))          x += post_norm?(mlp(norm(x)))
///   logits = softcap?(head · norm(x))
/// where mlp(y) = down · f(up · y), or down · (f(gate · y) ⊙ (up · y)) if gated. Sizes are counts of elements.
struct DecoderConfig {
  std::int32_t vocab_size = 0;
  std::int32_t layers = 0;
  std::int32_t embed_dim = 0;
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;  ///< divides heads
  std::int32_t head_dim = 0;  ///< often embed_dim / heads
  std::int32_t hidden_dim = 0;
  std::int32_t context_length = 0;  ///< positions 0 … context_length − 1 exist
  NormKind norm = NormKind::layer_norm;
  Activation activation = Activation::gelu_tanh;
  bool gated = false;              ///< SwiGLU, GEGLU
  bool learned_positions = false;  ///< a table of context_length rows
  bool tied_head = false;          ///< the head is the token embedding
  bool query_key_value_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool query_key_norm =
      false;                ///< Qwen3, Gemma 3: an RMS norm over each head's queries and keys, before they are turned
  bool post_norms = false;  ///< Gemma 2: norms after attention and mlp, before they are added
  bool norm_weights_from_one = false;  ///< Gemma: a norm's weights are stored less 1; decoder_write adds it
  float norm_epsilon = 1e-5F;
  float embed_scale = 1.0F;
  float attention_scale = 0.0F;    ///< 0 = 1/√head_dim
  float attention_softcap = 0.0F;  ///< 0 = none
  float logit_softcap = 0.0F;      ///< 0 = none
  /// Tokens that a windowed layer sees, the position itself included; 0 = all layers see all. Layer l is windowed iff
  /// l ≥ first_windowed_layer and (full_every = 0 or (l + 1) mod full_every ≠ 0).
  std::int32_t window = 0;
  std::int32_t first_windowed_layer = 0;
  std::int32_t full_every = 0;      ///< Gemma 2: 2, Gemma 3: 6
  RotaryOptions rotary;             ///< dims = 0: none
  LinearFormat format;              ///< of all matrices but the table of positions; vectors are float32
  double window_rotary_base = 0.0;  ///< Gemma 3: windowed layers turn by this base, without scaling; 0 = as the others
};

[[nodiscard]] bool is_windowed(const DecoderConfig& config, Index layer) noexcept;

/// invalid_shape, invalid_heads, invalid_argument.
Status validate_decoder(const DecoderConfig& config) noexcept;

/// A tensor of the decoder, [rows, columns]; norms and biases have one column. Slots up to final_norm_bias exist once, the others
/// once per layer.
enum class DecoderSlot : int {
  token_embedding = 0,     ///< [vocab_size, embed_dim]
  position_embedding = 1,  ///< [context_length, embed_dim]
  head = 2,                ///< [vocab_size, embed_dim]; not with a tied head
  final_norm_weight = 3,
  final_norm_bias = 4,
  attention_norm_weight = 5,
  attention_norm_bias = 6,
  query_weight = 7,  ///< [heads · head_dim, embed_dim]
  query_bias = 8,
  key_weight = 9,  ///< [kv_heads · head_dim, embed_dim]
  key_bias = 10,
  value_weight = 11,
  value_bias = 12,
  query_norm_weight = 13,  ///< [head_dim]
  key_norm_weight = 14,
  output_weight = 15,  ///< [embed_dim, heads · head_dim]
  output_bias = 16,
  attention_post_norm_weight = 17,
  mlp_norm_weight = 18,
  mlp_norm_bias = 19,
  gate_weight = 20,  ///< [hidden_dim, embed_dim]
  gate_bias = 21,
  up_weight = 22,
  up_bias = 23,
  down_weight = 24,  ///< [embed_dim, hidden_dim]
  down_bias = 25,
  mlp_post_norm_weight = 26,
};
inline constexpr int decoder_slot_count = 27;

struct SlotShape {
  Index rows = 0;  ///< 0: this decoder has no such slot
  Index columns = 0;
};
[[nodiscard]] SlotShape decoder_slot(const DecoderConfig& config, DecoderSlot slot) noexcept;
[[nodiscard]] bool is_layer_slot(DecoderSlot slot) noexcept;

/// A piece of a tensor on its way into the decoder: as many rows as fit a small buffer, so that a file is never twice in memory.
struct DecoderRows {
  DecoderSlot slot = DecoderSlot::token_embedding;
  Index layer = 0;
  Index first_row = 0;  ///< of the source
  Index row_count = 0;
  const void* source = nullptr;
  WeightType type = WeightType::f32;  ///< f32, f16 or bf16
  Index source_stride =
      0;  ///< elements from one row of the source to the next; a part of a fused tensor has more than it uses
  /// The source is the transpose, [columns, rows] (Conv1D of GPT-2): its rows are the slot's columns. For int8 they come a group at a
  /// time: see pack_linear().
  bool transposed = false;
};

/// The weights: one block of memory, which holds its config. This is a view of it; everything is relative to `memory`.
class Decoder {
public:
  Decoder() noexcept = default;
  /// `memory`, aligned to 64, was given to create() before.
  explicit Decoder(void* memory) noexcept : memory_(memory) {}

  /// A double, so that a size beyond the address space is a number and not an overflow.
  [[nodiscard]] static double bytes(const DecoderConfig& config) noexcept;
  /// Lays out a decoder whose weights are all 0 in `memory`, bytes(config) bytes aligned to 64.
  static Status create(const DecoderConfig& config, void* memory) noexcept;

  [[nodiscard]] const DecoderConfig& config() const noexcept { return *static_cast<const DecoderConfig*>(memory_); }
  /// invalid_range where the config has no such slot, layer or rows. Converts, transposes and packs.
  Status write(const DecoderRows& rows) noexcept;

  [[nodiscard]] void* memory() const noexcept { return memory_; }

private:
  void* memory_ = nullptr;
};

struct DecoderSessionShape {
  std::int32_t batch = 1;
  std::int32_t capacity = 0;  ///< tokens per row that the caches hold
  std::int32_t chunk = 1;     ///< most new tokens per row of one call
  CacheType cache_type = CacheType::float32;
  /// Windowed layers keep their window only; a model whose layers are all windowed then goes on beyond the capacity.
  bool rolling = false;
};

/// Which tokens' logits a call computes; the last ones always go to the session's step_logits().
enum class LogitsOf : int { none = 0, last = 1, all = 2 };

struct DecoderCall {
  const std::int32_t* tokens = nullptr;  ///< [B, L]
  Index length = 0;                      ///< L, 1 … chunk
  const std::int32_t* token_lengths =
      nullptr;  ///< [B]: valid tokens of each row (a prefix of them), nullptr = L; not if rolling
  /// [B, L], 0 = padding on the left of a row, before anything else in it: it takes a place in the cache, is never seen and has no
  /// position, so that a row gives what it gives alone.
  const std::uint8_t* token_mask = nullptr;
  LogitsOf logits_of = LogitsOf::last;
  float* logits = nullptr;  ///< [B, L, vocab], where all are asked for
  /// Softmax weights, layer by layer [B, head_count, L, columns(layer) + L], one after the other.
  float* weights = nullptr;
  const std::int32_t* weight_layers = nullptr;  ///< [weight_layer_count], rising
  Index weight_layer_count = 0;
  const std::int32_t* weight_heads = nullptr;  ///< [weight_head_count]; nullptr = all in order
  Index weight_head_count = 0;
  /// Logits as the head would read them after chosen layers (nostalgebraist 2020, the logit lens): [lens_layer_count] × [B, vocab] or
  /// [B, L, vocab], as logits_of says.
  float* lens = nullptr;
  const std::int32_t* lens_layers = nullptr;  ///< [lens_layer_count], rising
  Index lens_layer_count = 0;
};

/// The caches of a batch of sequences, and all scratch memory of their calls: one block, which may be copied (with the same model).
class DecoderSession {
public:
  DecoderSession() noexcept = default;
  explicit DecoderSession(void* memory) noexcept : memory_(memory) {}

  [[nodiscard]] static double bytes(const DecoderConfig& config, const DecoderSessionShape& shape) noexcept;
  static Status create(const DecoderConfig& config, const DecoderSessionShape& shape, void* memory) noexcept;

  [[nodiscard]] const DecoderSessionShape& shape() const noexcept;
  [[nodiscard]] std::int32_t vocab_size() const noexcept;
  [[nodiscard]] KvCache cache(Index layer) const noexcept;
  /// Padding tokens of each row: [B]. The position of a token is its place in the cache less this.
  [[nodiscard]] std::int32_t* padding() const noexcept;
  /// The tokens that come next, [B], as the last draw has left them or as the caller says.
  [[nodiscard]] std::int32_t* step_tokens() const noexcept;
  /// After each row's last valid token (of a row without one: after its first): [B, vocab]. Of the last call that asked for logits.
  [[nodiscard]] float* step_logits() const noexcept;

  /// Forgets the tokens from place `length` on. evicted where a rolling cache does not have the ones before any more.
  Status truncate(Index length) noexcept;
  void reset() noexcept;

  [[nodiscard]] void* memory() const noexcept { return memory_; }

private:
  void* memory_ = nullptr;
};

/// Appends the tokens of `call` to the session and computes what it asks for. Refuses before anything is changed:
/// token_out_of_range, context_exceeded, cache_full, invalid_range, null_pointer; workspace_too_small where there are more threads than when
/// the session was made. Allocates nothing.
Status decoder_forward(const Decoder& decoder, DecoderSession& session, const DecoderCall& call) noexcept;

}  // namespace lookback
