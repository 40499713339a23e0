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
  }
  return "unknown status";
}

}  // namespace lookback
