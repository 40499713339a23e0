// The two products: rows times a panel (scores, linear layers) and probabilities times values.

#include "kernels/row_tile.hpp"
#include "kernels/value_tile.hpp"
#include "lookback/engine.hpp"
#include "support.hpp"

namespace lookback::test {
namespace {

using kernels::panel_width;
using kernels::register_rows;
using kernels::tile_queries;

/// initial + Σ_d row[d] · panel[d][lane], and the sum of the absolute terms.
struct Sum {
  double value, magnitude;
};
Sum sum_of(const float* row, Unaligned& panel, Index depth, Index lane, float initial) {
  Sum sum{initial, std::abs(static_cast<double>(initial))};
  for (Index d = 0; d < depth; ++d) {
    const double term = static_cast<double>(row[d]) * panel[d * panel_width + lane];
    sum.value += term;
    sum.magnitude += std::abs(term);
  }
  return sum;
}

bool is_near(float actual, const Sum& sum) {
  return std::abs(static_cast<double>(actual) - sum.value) <= 3 * 0x1p-23 * sum.magnitude;
}

void check_rows(Index row_count, Index depth, Random& random) {
  const Index row_stride = depth + 2;
  const Index out_stride = panel_width + 5;
  Unaligned rows(random.vector(row_count == 0 ? 0 : (row_count - 1) * row_stride + depth));
  Unaligned panel(random.vector(depth * panel_width));
  Unaligned initial(random.vector(panel_width));
  const Index out_size = row_count == 0 ? 0 : (row_count - 1) * out_stride + panel_width;
  Unaligned out(out_size, untouched);
  kernels::multiply_rows(rows.data(), row_stride, row_count, panel.data(), depth, initial.data(), out.data(),
                         out_stride);
  for (Index at = 0; at < out_size; ++at) {
    const Index lane = at % out_stride;
    if (lane >= panel_width) {
      ASSERT_TRUE(same_bits(out[at], untouched)) << "between the rows";
      continue;
    }
    const float* row = rows.data() + at / out_stride * row_stride;
    ASSERT_TRUE(is_near(out[at], sum_of(row, panel, depth, lane, initial[lane])))
        << "row " << at / out_stride << " of " << row_count << ", depth " << depth;
  }
}

TEST(row_tile, without_initial_the_sum_is_added_to_what_stands_there_and_zeros_may_be_left_out) {
  Random random(4);
  for (const Index depth : {1, 5, 24, 31, 70}) {
    for (const Index row_count : tail_lengths(register_rows)) {
      Unaligned rows(random.vector(row_count * depth));
      for (Index at = 0; at < rows.size(); at += 3) rows[at] = 0.0F;
      Unaligned panel(random.vector(depth * panel_width));
      const std::vector<float> before = random.vector(row_count * panel_width);
      Unaligned added(before);
      kernels::multiply_rows(rows.data(), depth, row_count, panel.data(), depth, nullptr, added.data(), panel_width);
      for (Index at = 0; at < added.size(); ++at) {
        const float* row = rows.data() + at / panel_width * depth;
        ASSERT_TRUE(is_near(added[at], sum_of(row, panel, depth, at % panel_width, before[at])));
      }
      Unaligned careful(before);
      kernels::add_nonzero_products(rows.data(), depth, row_count, panel.data(), depth, careful.data(), panel_width);
      ASSERT_TRUE(all_same_bits(added.values(), careful.values()));
      if (row_count == 0) continue;
      for (Index lane = 0; lane < panel_width; ++lane) panel[lane] = not_a_number;  // every row's factor of it is 0
      for (Index row = 0; row < row_count; ++row) rows[row * depth] = 0.0F;
      Unaligned poisoned(before);
      kernels::add_nonzero_products(rows.data(), depth, row_count, panel.data(), depth, poisoned.data(), panel_width);
      for (Index at = 0; at < poisoned.size(); ++at) ASSERT_FALSE(std::isnan(poisoned[at]));
    }
  }
}

TEST(row_tile, each_element_is_the_sum_over_d_for_every_number_of_rows) {
  Random random(1);
  for (const Index row_count : tail_lengths(register_rows)) check_rows(row_count, 13, random);
}

TEST(row_tile, each_element_is_the_sum_over_d_at_every_depth) {
  Random random(2);
  for (const Index depth : tail_lengths(panel_width)) {
    if (depth == 0) continue;  // there is no head of width 0
    check_rows(register_rows + 3, depth, random);
  }
}

TEST(row_tile, R15_a_row_has_the_same_bits_wherever_it_stands_and_whichever_rows_are_beside_it) {
  Random random(8);
  for (const Index depth : {1, 31, 32, 33, 64, 100}) {
    Unaligned row(random.vector(depth));
    Unaligned panel(random.vector(depth * panel_width));
    const std::vector<float> zeros(static_cast<std::size_t>(panel_width), 0.0F);
    std::vector<float> alone(static_cast<std::size_t>(panel_width));
    kernels::multiply_rows(row.data(), depth, 1, panel.data(), depth, zeros.data(), alone.data(), panel_width);
    for (Index row_count = 1; row_count <= 2 * register_rows + 1; ++row_count) {
      // A stride of 0: every row is the same one.
      Unaligned out(row_count * panel_width, untouched);
      kernels::multiply_rows(row.data(), 0, row_count, panel.data(), depth, zeros.data(), out.data(), panel_width);
      for (Index at = 0; at < out.size(); ++at) {
        ASSERT_TRUE(same_bits(out[at], alone[at % panel_width])) << row_count << " rows, depth " << depth;
      }
    }
  }
}

TEST(row_tile, R22_sums_of_one_sign_stay_accurate_at_every_depth) {
  Random random(9);
  for (const Index depth : {64, 128, 256, 512}) {
    double worst = 0.0;
    for (int trial = 0; trial < 20; ++trial) {
      Unaligned rows(random.vector(4 * depth));
      Unaligned panel(random.vector(depth * panel_width));
      for (Index at = 0; at < rows.size(); ++at) rows[at] = std::abs(rows[at]);
      for (Index at = 0; at < panel.size(); ++at) panel[at] = std::abs(panel[at]);
      const std::vector<float> zeros(static_cast<std::size_t>(panel_width), 0.0F);
      std::vector<float> out(static_cast<std::size_t>(4 * panel_width));
      kernels::multiply_rows(rows.data(), depth, 4, panel.data(), depth, zeros.data(), out.data(), panel_width);
      for (Index at = 0; at < 4 * panel_width; ++at) {
        const Sum sum = sum_of(rows.data() + at / panel_width * depth, panel, depth, at % panel_width, 0.0F);
        worst = std::max(worst, std::abs(out[at] - sum.value) / sum.magnitude);
      }
    }
    EXPECT_LE(worst, 3 * 0x1p-23) << "depth " << depth;
  }
}

TEST(row_tile, NaN_stays_in_its_row) {
  Random random(4);
  Unaligned rows(random.vector(6 * 7));
  Unaligned panel(random.vector(7 * panel_width));
  rows[2 * 7 + 3] = not_a_number;
  Unaligned out(6 * panel_width);
  const std::vector<float> zeros(static_cast<std::size_t>(panel_width), 0.0F);
  kernels::multiply_rows(rows.data(), 7, 6, panel.data(), 7, zeros.data(), out.data(), panel_width);
  for (Index at = 0; at < 6 * panel_width; ++at) ASSERT_EQ(std::isnan(out[at]), at / panel_width == 2);
}

/// One block of probabilities and values, and the accumulators before it.
struct ValueBlock {
  Index key_count;
  Index out_stride = panel_width + 3;
  Unaligned probabilities, values, correction, out;

  ValueBlock(Index keys, Random& random)
      : key_count(keys),
        // The last key's row ends with the last query that is read.
        probabilities(random.vector(keys == 0 ? 0 : (keys - 1) * tile_queries + register_rows)),
        values(random.vector(keys * panel_width)),
        correction(random.vector(register_rows)),
        out(random.vector((register_rows - 1) * out_stride + panel_width)) {}

  [[nodiscard]] float expected(Index row, Index column) {
    float sum = 0.0F;
    for (Index key = 0; key < key_count; ++key) {
      sum = multiply_add(probabilities[key * tile_queries + row], values[key * panel_width + column], sum);
    }
    return multiply_add(out[row * out_stride + column], correction[row], sum);
  }
};

TEST(value_tile, each_element_is_a_corrected_sum_over_the_keys_for_every_length_and_number_of_rows) {
  Random random(5);
  for (const Index key_count : tail_lengths(panel_width)) {
    for (Index row_count = 0; row_count <= register_rows; ++row_count) {
      ValueBlock block(key_count, random);
      Unaligned out(block.out);
      kernels::accumulate_values(block.probabilities.data(), row_count, block.values.data(), key_count,
                                 block.correction.data(), out.data(), block.out_stride);
      for (Index at = 0; at < out.size(); ++at) {
        const Index row = at / block.out_stride;
        const Index column = at % block.out_stride;
        const bool written = row < row_count && column < panel_width;
        ASSERT_TRUE(same_bits(out[at], written ? block.expected(row, column) : block.out[at]))
            << key_count << " keys, row " << row << " of " << row_count << ", column " << column;
      }
    }
  }
}

TEST(value_tile, R10_the_careful_product_has_the_bits_of_the_plain_one_where_all_is_finite) {
  Random random(6);
  for (const Index key_count : tail_lengths(panel_width)) {
    ValueBlock block(key_count, random);
    std::vector<std::uint8_t> visible(static_cast<std::size_t>(key_count), 1);
    for (Index key = 0; key < key_count; ++key) {
      if (random.chance(70)) continue;
      visible[key] = 0;
      for (Index row = 0; row < register_rows; ++row) block.probabilities[key * tile_queries + row] = 0.0F;
    }
    Unaligned plain(block.out);
    Unaligned careful(block.out);
    kernels::accumulate_values(block.probabilities.data(), register_rows, block.values.data(), key_count,
                               block.correction.data(), plain.data(), block.out_stride);
    for (Index row = 0; row < register_rows; ++row) {
      kernels::accumulate_visible_values(block.probabilities.data() + row, visible.data(), block.values.data(),
                                         key_count, block.correction[row], careful.data() + row * block.out_stride);
    }
    ASSERT_TRUE(all_same_bits(careful.values(), plain.values())) << key_count << " keys";
  }
}

TEST(value_tile, R10_the_careful_product_does_not_look_at_hidden_values) {
  Random random(7);
  for (const float planted : {not_a_number, infinity, -infinity}) {
    ValueBlock block(11, random);
    std::vector<std::uint8_t> visible(11, 1);
    for (const Index key : {0, 6, 10}) {
      visible[key] = 0;
      block.probabilities[key * tile_queries] = 0.0F;
    }
    Unaligned clean(block.out);
    kernels::accumulate_visible_values(block.probabilities.data(), visible.data(), block.values.data(), 11,
                                       block.correction[0], clean.data());
    for (const Index key : {0, 6, 10}) {
      for (Index column = 0; column < panel_width; ++column) block.values[key * panel_width + column] = planted;
    }
    Unaligned poisoned(block.out);
    kernels::accumulate_visible_values(block.probabilities.data(), visible.data(), block.values.data(), 11,
                                       block.correction[0], poisoned.data());
    EXPECT_TRUE(all_same_bits(poisoned.values(), clean.values()));
  }
}

TEST(wide_tiles, R15_give_the_same_bits_as_narrow_ones) {
  Random random(21);
  constexpr Index most = 4 * kernels::wide_rows + 3;
  constexpr Index depth = 70;
  Unaligned rows(random.vector(most * depth));
  Unaligned panel(random.vector(depth * panel_width));
  Unaligned initial(random.vector(panel_width));
  Unaligned probabilities(random.vector(depth * tile_queries));
  Unaligned correction(random.vector(kernels::wide_rows));
  const auto products = [&](Index row_count, bool wide) {
    static_cast<void>(use_wide_tiles(wide));
    Unaligned out(row_count * panel_width, untouched);
    kernels::multiply_rows(rows.data(), depth, row_count, panel.data(), depth, initial.data(), out.data(), panel_width);
    return out.values();
  };
  const auto sums = [&](Index row_count) {
    Unaligned out(rows.values());
    kernels::accumulate_values(probabilities.data(), row_count, panel.data(), depth, correction.data(), out.data(),
                               panel_width);
    return out.values();
  };
  for (Index row_count = 0; row_count <= most; ++row_count) {
    const std::vector<float> narrow = products(row_count, false);
    const std::vector<float> wide = products(row_count, true);
    for (std::size_t at = 0; at < narrow.size(); ++at) ASSERT_TRUE(same_bits(narrow[at], wide[at])) << row_count;
  }
  const bool can_be_wide = use_wide_tiles(true);
  EXPECT_EQ(can_be_wide, simd::madd_is_one_instruction);
  const Index most_at_once = can_be_wide ? kernels::wide_rows : register_rows;
  EXPECT_EQ(kernels::rows_at_once(), most_at_once);
  const std::vector<float> all = sums(most_at_once);
  for (Index row_count = 1; row_count < most_at_once; ++row_count) {
    const std::vector<float> some = sums(row_count);
    for (std::size_t at = 0; at < static_cast<std::size_t>(row_count * panel_width); ++at) {
      ASSERT_TRUE(same_bits(some[at], all[at])) << row_count;
    }
  }
  static_cast<void>(use_wide_tiles(false));
}

}  // namespace
}  // namespace lookback::test
