#pragma once

namespace lookback {

/// The outcome of a call. The core neither throws, prints nor aborts; after anything but `ok` no output has been written.
enum class [[nodiscard]] Status : int {
  ok = 0,
  null_pointer = 1,         ///< a required operand is absent
  invalid_shape = 2,        ///< a dimension is negative, or zero where it must not be
  invalid_heads = 3,        ///< heads is not a multiple of kv_heads, or embed_dim not a multiple of heads
  invalid_argument = 4,     ///< a scalar option is out of its range (not finite, negative softcap, …)
  invalid_range = 5,        ///< requested heads or query rows lie outside of the result
  workspace_too_small = 6,  ///< fewer bytes than the matching …_workspace_bytes() asks for
  cache_full = 7,           ///< a row of the cache has no room for the new tokens
  cache_mismatch = 8,       ///< the cache has another batch, number of heads or width than the call
  evicted = 9,              ///< a rolling cache no longer has the tokens that would be needed
  invalid_cache = 10,       ///< bytes that no cache of this shape has saved
  token_out_of_range = 11,  ///< a token id is negative or not below the vocabulary's size
  context_exceeded = 12,    ///< a position beyond those that the model has
  not_finite = 13,          ///< a number that has to be finite is NaN or ±∞
};

/// One English sentence without values; callers that know the values say them.
[[nodiscard]] const char* status_message(Status status) noexcept;

}  // namespace lookback
