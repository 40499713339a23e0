#pragma once

namespace lookback {

/// Whether multiply-add rounds once in this build on this machine: true where it is fused (tested by a calculation that differs).
/// Equal inputs give equal bits only where this is equal too.
[[nodiscard]] bool fused_multiply_add() noexcept;

/// Chooses between two shapes of the register tiles that give the same bits: the wide one is about a tenth faster where the engine keeps 15
/// values in registers and half as fast where it does not. Narrow until called; returns what is in use from now on (never wide without
/// a multiply-add instruction). Not while a call runs.
bool use_wide_tiles(bool wide) noexcept;

}  // namespace lookback
