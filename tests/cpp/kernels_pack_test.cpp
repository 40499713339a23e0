#include "kernels/pack.hpp"
#include "support.hpp"

namespace lookback::test {
namespace {

using kernels::panel_width;

TEST(pack, rows_become_lanes_with_zeros_beyond_at_every_depth_and_number_of_rows) {
  Random random(1);
  for (const Index depth : tail_lengths(simd::lanes)) {
    for (Index row_count = 0; row_count <= panel_width; ++row_count) {
      const Index stride = depth + 3;
      Unaligned rows(random.vector(row_count == 0 ? 0 : (row_count - 1) * stride + depth));
      Unaligned panel(depth * panel_width, untouched);
      kernels::pack_rows_as_lanes(rows.data(), stride, row_count, depth, 0.37F, panel.data());
      for (Index d = 0; d < depth; ++d) {
        for (Index lane = 0; lane < panel_width; ++lane) {
          const float expected = lane < row_count ? rows[lane * stride + d] * 0.37F : 0.0F;
          ASSERT_TRUE(same_bits(panel[d * panel_width + lane], expected)) << depth << " deep, " << row_count << " rows";
        }
      }
    }
  }
}

TEST(pack, unpack_lanes_to_rows_is_the_exact_inverse) {
  Random random(2);
  for (const Index depth : tail_lengths(simd::lanes)) {
    for (Index row_count = 0; row_count <= panel_width; ++row_count) {
      const Unaligned rows(random.vector(row_count * depth));
      Unaligned source(rows);
      Unaligned panel(depth * panel_width, untouched);
      Unaligned back(row_count * depth, untouched);
      kernels::pack_rows_as_lanes(source.data(), depth, row_count, depth, 1.0F, panel.data());
      kernels::unpack_lanes_to_rows(panel.data(), row_count, depth, back.data(), depth);
      ASSERT_TRUE(all_same_bits(back.values(), rows.values()));
    }
  }
}

/// Column panels of a [row_count, column_count] matrix; returns what pack_columns says of its finiteness.
bool pack_columns(Unaligned& rows, Index row_stride, Index row_count, Index column_count, Unaligned& panels,
                  Index panel_stride) {
  return kernels::pack_columns(rows.data(), row_stride, row_count, column_count, panels.data(), panel_stride);
}

TEST(pack, columns_become_panels_with_zeros_beyond_at_every_width) {
  Random random(3);
  for (const Index column_count : tail_lengths(panel_width)) {
    for (const Index row_count : {0, 1, 2, 5}) {
      if (column_count == 0) continue;
      const Index row_stride = column_count + 2;
      const Index panel_count = kernels::round_up(column_count, panel_width) / panel_width;
      const Index panel_stride = row_count * panel_width + 4;
      Unaligned rows(random.vector(row_count == 0 ? 0 : (row_count - 1) * row_stride + column_count));
      Unaligned panels((panel_count - 1) * panel_stride + row_count * panel_width, untouched);
      ASSERT_TRUE(pack_columns(rows, row_stride, row_count, column_count, panels, panel_stride));
      for (Index at = 0; at < panels.size(); ++at) {
        const Index row = at % panel_stride / panel_width;
        const Index column = at / panel_stride * panel_width + at % panel_stride % panel_width;
        const float expected = row >= row_count        ? untouched
                               : column < column_count ? rows[row * row_stride + column]
                                                       : 0.0F;
        ASSERT_TRUE(same_bits(panels[at], expected)) << column_count << " columns, element " << at;
      }
    }
  }
}

TEST(pack, R10_columns_are_not_finite_if_any_one_element_is_not) {
  Random random(4);
  for (const Index column_count :
       {Index{1}, simd::lanes, panel_width - 1, panel_width, panel_width + 1, 2 * panel_width + 3}) {
    for (const Index row_count : {1, 3}) {
      const Index panel_stride = row_count * panel_width;
      Unaligned panels(kernels::round_up(column_count, panel_width) / panel_width * panel_stride);
      Unaligned rows(random.vector(row_count * column_count));
      for (Index at = 0; at < row_count * column_count; ++at) {
        const float original = rows[at];
        for (const float planted : {not_a_number, -not_a_number, infinity, -infinity}) {
          rows[at] = planted;
          ASSERT_FALSE(pack_columns(rows, column_count, row_count, column_count, panels, panel_stride))
              << planted << " at " << at << " of " << row_count << " × " << column_count;
        }
        for (const float planted : {3.4e38F, -3.4e38F, 1e-45F, -0.0F}) {
          rows[at] = planted;
          ASSERT_TRUE(pack_columns(rows, column_count, row_count, column_count, panels, panel_stride))
              << planted << " at " << at << " of " << row_count << " × " << column_count;
        }
        rows[at] = original;
      }
    }
  }
}

TEST(pack, R10_the_largest_numbers_side_by_side_are_still_finite) {
  Unaligned rows(4 * (panel_width + 1), 3.4e38F);
  Unaligned panels(2 * 4 * panel_width);
  EXPECT_TRUE(pack_columns(rows, panel_width + 1, 4, panel_width + 1, panels, 4 * panel_width));
}

TEST(pack, unpack_query_lanes_makes_rows_of_any_lanes) {
  Random random(5);
  for (const Index key_count : tail_lengths(simd::lanes)) {
    Unaligned block(random.vector(key_count * kernels::tile_queries));
    for (const Index first : {Index{0}, Index{3}, panel_width}) {
      for (const Index row_count : {Index{1}, simd::lanes, simd::lanes + 1, kernels::tile_queries - first}) {
        if (key_count == 0) continue;
        const Index row_stride = key_count + 3;
        Unaligned rows((row_count - 1) * row_stride + key_count, untouched);
        kernels::unpack_query_lanes(block.data() + first, row_count, key_count, rows.data(), row_stride);
        for (Index at = 0; at < rows.size(); ++at) {
          const Index key = at % row_stride;
          const Index lane = first + at / row_stride;
          ASSERT_TRUE(same_bits(rows[at], key < key_count ? block[key * kernels::tile_queries + lane] : untouched));
        }
      }
    }
  }
}

TEST(pack, scale_nonzero_multiplies_and_leaves_zeros_even_where_the_factor_is_NaN) {
  Random random(6);
  for (const Index count : tail_lengths(simd::lanes)) {
    for (const float factor : {0.3F, 0.0F, not_a_number, infinity}) {
      Unaligned row(random.vector(count));
      for (Index i = 0; i < count; i += 3) row[i] = 0.0F;
      Unaligned scaled(row);
      kernels::scale_nonzero(scaled.data(), count, factor);
      for (Index i = 0; i < count; ++i) {
        ASSERT_TRUE(same_bits(scaled[i], row[i] == 0.0F ? 0.0F : row[i] * factor)) << i << " of " << count;
      }
    }
  }
}

TEST(pack, store_scaled_row_multiplies_and_never_writes_a_negative_zero) {
  Random random(7);
  for (const Index count : tail_lengths(simd::lanes)) {
    for (const float factor : {0.3F, 0.0F, 1.0F}) {
      Unaligned row(random.vector(count));
      for (Index i = 0; i < count; i += 3) row[i] = -0.0F;
      Unaligned out(count, untouched);
      kernels::store_scaled_row(row.data(), count, factor, out.data());
      for (Index i = 0; i < count; ++i) ASSERT_TRUE(same_bits(out[i], row[i] * factor + 0.0F)) << i << " of " << count;
    }
  }
}

}  // namespace
}  // namespace lookback::test
