#pragma once

#include <cstddef>
#include <cstdint>

#include "lookback/decoder.hpp"
#include "lookback/status.hpp"

namespace lookback {

/// How the next token is drawn. Filters apply in this order, each on what the one before has left:
///   1. repetition penalty: logits of tokens seen so far are divided by it where positive, else multiplied (Keskar et al. 2019,
///      arXiv:1909.05858)
///   2. temperature: logits are divided by it; 0 takes the largest logit (the first one of equals), and 3 … 5 have no effect
///   3. top-k: the k most probable
///   4. top-p: the fewest most probable whose probabilities reach p (Holtzman et al. 2019, arXiv:1904.09751)
///   5. min-p: those with at least min_p times the probability of the most probable (Nguyen et al. 2024, arXiv:2407.01082)
/// Of equal logits the lower id is the more probable. A NaN counts as −∞.
struct SamplerOptions {
  std::int32_t batch = 1;
  std::int32_t vocab_size = 0;
  float temperature = 1.0F;
  float repetition_penalty = 1.0F;  ///< > 0; 1 = none
  std::int32_t top_k = 0;           ///< 0 = all
  float top_p = 1.0F;               ///< in (0, 1]; 1 = all
  float min_p = 0.0F;               ///< in [0, 1]; 0 = all
  std::int32_t candidates = 0;  ///< how many of the most probable tokens are reported; 0: neither they nor the entropy
};

/// Options, what each row has seen, how often it has drawn, and scratch memory: one block. This is a view of it.
class Sampler {
public:
  Sampler() noexcept = default;
  explicit Sampler(void* memory) noexcept : memory_(memory) {}

  [[nodiscard]] static double bytes(const SamplerOptions& options) noexcept;
  /// All rows have seed 0 and have seen nothing.
  static Status create(const SamplerOptions& options, void* memory) noexcept;

  [[nodiscard]] const SamplerOptions& options() const noexcept { return *static_cast<const SamplerOptions*>(memory_); }

  /// Starts a row anew: the n-th number that it draws depends on the seed and n only.
  void restart(Index row, std::uint64_t seed) noexcept;
  /// Tokens that the repetition penalty is to count as seen. token_out_of_range: nothing has been taken.
  Status observe(Index row, const std::int32_t* tokens, Index count) noexcept;

  /// The next token of a row with these logits [vocab_size], which counts as seen from now on; −1 where no logit is above −∞.
  std::int32_t sample(Index row, const float* logits) noexcept;

  /// Of the row's last draw, before 3 … 5 have cut it (and with temperature 0 as with 1): the most probable tokens by falling probability,
  /// −1 and 0 where there are no more, and the entropy −Σ p·ln p of the whole distribution in nats.
  [[nodiscard]] const std::int32_t* candidate_ids(Index row) const noexcept;
  [[nodiscard]] const float* candidate_probabilities(Index row) const noexcept;
  [[nodiscard]] float entropy(Index row) const noexcept;

private:
  void* memory_ = nullptr;
};

/// Draws session.step_tokens() by session.step_logits(). invalid_shape where the sampler is of another batch or vocabulary.
Status decoder_sample(DecoderSession& session, Sampler& sampler) noexcept;

/// One token further: session.step_tokens() are appended, and the ones after them drawn in their place. Allocates nothing.
Status decoder_step(const Decoder& decoder, DecoderSession& session, Sampler& sampler) noexcept;

}  // namespace lookback
