#pragma once

#include <cstddef>
#include <cstdint>

#include "lookback/status.hpp"
#include "lookback/views.hpp"

namespace lookback {

/// How a model trained on short texts is stretched to long ones. `none` leaves the frequencies θ_i = base^(−2i/dims) as they are.
enum class RotaryScaling : int {
  none = 0,
  linear = 1,  ///< θ / factor (Chen et al. 2023, arXiv:2306.15595)
  ntk = 2,     ///< base · factor^(dims / (dims − 2))
  llama3 =
      3,  ///< long waves / factor, short ones kept, between them blended (Llama 3.1's config: low/high_frequency_factor)
  yarn = 4,  ///< NTK by parts, and cos and sin × attention_factor (Peng et al. 2023, arXiv:2309.00071)
};

/// Rotary position embedding (Su et al. 2021, arXiv:2104.09864): pair i of a row at position p is turned by p · θ_i.
struct RotaryOptions {
  Index dims = 0;  ///< how many of a row's first elements are turned: even, 2 … D
  bool interleaved =
      false;  ///< pairs (2i, 2i + 1) instead of the half-split (i, i + dims/2) of GPT-NeoX and Llama in Hugging Face
  double base = 10000.0;
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1.0;                 ///< of every scaling
  double original_length = 0.0;        ///< llama3, yarn: the length that the model was trained for
  double low_frequency_factor = 1.0;   ///< llama3
  double high_frequency_factor = 4.0;  ///< llama3
  double beta_fast = 32.0;             ///< yarn
  double beta_slow = 1.0;              ///< yarn
  double attention_factor = 0.0;       ///< yarn; 0 = 0.1·ln(factor) + 1
};

Status validate_rotary(const RotaryOptions& options, Index head_dim) noexcept;

/// θ after scaling, [dims / 2].
void rotary_frequencies(const RotaryOptions& options, double* frequencies) noexcept;

/// Cosines and sines, each [count, dims/2], for the given positions; computed in float64, rounded once. `frequencies` [dims/2] is
/// scratch.
void rotary_table(const RotaryOptions& options, const std::int32_t* positions, Index count, double* frequencies,
                  float* cosines, float* sines) noexcept;

/// Turns the rows of `input` [B, heads, L, width] into `output` (which may be the input): row (b, l) by row b · table_batch_rows + l of
/// the tables [rows, dims/2].
struct RotaryCall {
  ConstView input;
  MutableView output;
  Index batch = 1;
  Index heads = 1;
  Index length = 0;
  Index width = 1;
  Index dims = 0;
  bool interleaved = false;
  const float* cosines = nullptr;
  const float* sines = nullptr;
  Index table_batch_rows = 0;  ///< rows of the tables between one batch row and the next: 0 or L
  /// By the transposed matrix: the other way round, with the same factor. So gradients of turned rows become those of the rows.
  bool transposed = false;
};
Status rotary_apply(const RotaryCall& call) noexcept;

}  // namespace lookback
