#pragma once

#include "attention/backward_workspace.hpp"
#include "attention/key_source.hpp"
#include "attention/visibility.hpp"

namespace lookback {

/// One query tile against one part of the keys: adds its share of the gradients to work.grad_keys and work.grad_values, and leaves those of its
/// queries in work.grad_queries (not yet times scale). work.key_columns and work.block_is_finite hold the part.
void backward_tile(const BackwardRun& run, const KeySource& source, const TileRows& rows, KeyRange part,
                   BackwardWorkspace& work) noexcept;

/// Σ grad_output · output over the columns of one row: what the weights' gradients have in common.
double grad_output_times_output(const AttentionBackwardCall& call, Index batch, Index head, Index query) noexcept;

}  // namespace lookback
