#pragma once

namespace lookback {

/// Whether multiply-add rounds once in this build on this machine: true where it is fused (tested by a calculation that differs).
/// Equal inputs give equal bits only where this is equal too.
[[nodiscard]] bool fused_multiply_add() noexcept;

}  // namespace lookback
