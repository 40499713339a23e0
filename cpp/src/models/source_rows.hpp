#pragma once

// Numbers as files hold them.

#include "lookback/decoder.hpp"

namespace lookback {

[[nodiscard]] bool is_source_type(SourceType type) noexcept;

/// Elements [first, first + count) of `source`, which need not be aligned, as float32: exact.
void convert_elements(const void* source, SourceType type, Index first, Index count, float* values) noexcept;

}  // namespace lookback
