#include "lookback/engine.hpp"

#include "kernels/tile.hpp"

namespace lookback {
namespace {

bool wide_tiles = false;

}  // namespace

bool fused_multiply_add() noexcept { return simd::rounds_once(); }

bool use_wide_tiles(bool wide) noexcept { return wide_tiles = wide && simd::madd_is_one_instruction; }

Index kernels::rows_at_once() noexcept { return wide_tiles ? wide_rows : register_rows; }

}  // namespace lookback
