#pragma once

#include "attention/visibility.hpp"
#include "attention/workspace.hpp"

namespace lookback {

/// Rows whose sums are complete (work.accumulators, work.state): lets the sink in, divides, and writes output and logSumExp.
void finish_rows(const AttentionCall& call, const TileRows& rows, Workspace& work) noexcept;

}  // namespace lookback
