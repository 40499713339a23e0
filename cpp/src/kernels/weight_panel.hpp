#pragma once

// A panel of a weight, [depth][panel_width], written from a part of it that lies elsewhere: `span` is [length][panel_width], and only its
// lanes [from, to) are written; read_ahead only reads. int8 panels are those of int8_tile.hpp: `group` points to one of their groups.

#include <cstdint>

#include "kernels/tile.hpp"

namespace lookback::kernels {

/// Brings a panel [length][panel_width] into the cache, but for up to three lines at its end. Its lines then come one after the other, where the first rows that met it would wait
/// for each of them.
void read_ahead(const float* panel, Index length) noexcept;

void store_lanes(const float* span, Index length, Index from, Index to, float* panel) noexcept;
void store_lanes(const std::uint16_t* span, Index length, Index from, Index to, std::uint16_t* panel) noexcept;

/// w ≈ q · scale, scale = max|w| / 127 of the lane, |error| ≤ scale / 2. A lane with NaN or ±∞ has scale NaN, one whose scale would be below
/// the least normal number is 0.
void store_lanes_int8(const float* span, Index length, Index from, Index to, std::int8_t* group) noexcept;

/// panel[d][lane] += row[d] · factor for d < length.
void add_to_lane(const float* row, Index lane, Index length, float factor, float* panel) noexcept;

/// row[d] = panel[d][lane] for d < length.
void read_lane(const float* panel, Index lane, Index length, float* row) noexcept;
void read_lane(const std::uint16_t* panel, Index lane, Index length, std::uint16_t* row) noexcept;
void read_lane_int8(const std::int8_t* group, Index lane, Index length, float* row) noexcept;

}  // namespace lookback::kernels
