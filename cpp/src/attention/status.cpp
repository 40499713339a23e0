#include "lookback/status.hpp"

namespace lookback {

const char* status_message(Status status) noexcept {
  switch (status) {
    case Status::ok: return "ok";
    case Status::null_pointer: return "a required operand is absent";
    case Status::invalid_shape: return "a dimension is negative, or zero where it must not be";
    case Status::invalid_heads: return "heads must be a multiple of the key/value heads and divide the embedding";
    case Status::invalid_argument: return "a scalar option is out of its range";
    case Status::invalid_range: return "the requested heads or query rows lie outside of the result";
    case Status::workspace_too_small: return "the workspace is smaller than the call needs";
    case Status::cache_full: return "a row of the cache has no room for the new tokens";
    case Status::cache_mismatch: return "the cache has another batch, number of heads or width than the call";
    case Status::evicted: return "a rolling cache no longer has the tokens that would be needed";
    case Status::invalid_cache: return "the bytes were not saved from a cache of this shape";
    case Status::token_out_of_range: return "a token id is not in the vocabulary";
    case Status::not_finite: return "a number that has to be finite is NaN or infinite";
    case Status::context_exceeded: return "a token's position is beyond the model's context";
  }
  return "unknown status";
}

}  // namespace lookback
