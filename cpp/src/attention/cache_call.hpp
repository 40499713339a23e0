#pragma once

#include "attention/workspace.hpp"
#include "lookback/attention.hpp"

namespace lookback {

/// Whether the cache fits the call and has room for its new tokens; looks at the cache, changes nothing.
Status validate_cache_call(const AttentionCall& call) noexcept;

/// The call in terms of columns, as if all keys were one operand: offsets, first and last columns and the remembered key mask
/// stand in `work`. New tokens are in the cache afterwards, unless it rolls: then they are read from the operands, so that nothing
/// is evicted before every query was served.
AttentionCall columns_of_cache(const AttentionCall& call, const CacheWorkspace& work) noexcept;

/// The tokens that the call appends.
[[nodiscard]] KvCache::Tokens new_tokens(const AttentionCall& call) noexcept;

/// A call that was not finished leaves the cache as long as it was.
void end_cache_call(const AttentionRun& run, bool finished) noexcept;

}  // namespace lookback
