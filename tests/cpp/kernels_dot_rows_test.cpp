// One query against rows that are read where they lie, float32 and int8.

#include "kernels/dot_rows.hpp"

#include <algorithm>

#include "kernels/int8_tile.hpp"
#include "kernels/quantize.hpp"
#include "support.hpp"

namespace lookback::test {
namespace {

using kernels::int8_query_group;

struct Int8Rows {
  std::vector<std::int8_t> bytes;
  std::vector<float> scales;
  Index stride;

  Int8Rows(Index count, Index width, Random& random)
      : bytes(static_cast<std::size_t>(count * (width + 3))), scales(random.vector(count)), stride(width + 3) {
    for (std::int8_t& byte : bytes) byte = static_cast<std::int8_t>(random.below(255) - 127);
  }
  [[nodiscard]] double at(Index row, Index column) const {
    return static_cast<double>(bytes[static_cast<std::size_t>(row * stride + column)]) *
           scales[static_cast<std::size_t>(row)];
  }
};

struct QuantizedQuery {
  std::vector<std::int16_t> codes;
  std::vector<float> scales;

  QuantizedQuery(const float* query, Index depth)
      : codes(static_cast<std::size_t>(kernels::padded_pairs(depth))),
        scales(static_cast<std::size_t>(kernels::group_count(depth, int8_query_group))) {
    kernels::quantize_inputs(query, depth, int8_query_group, codes.data(), scales.data());
  }
};

void check_dots(Index row_count, Index depth, Random& random) {
  const Index stride = depth + 3;
  Unaligned rows(random.vector(row_count == 0 ? 0 : (row_count - 1) * stride + depth));
  Unaligned query(random.vector(depth));
  Unaligned out(row_count, untouched);
  kernels::dot_rows(rows.data(), stride, row_count, query.data(), depth, out.data());
  for (Index row = 0; row < row_count; ++row) {
    double sum = 0;
    double magnitude = 0;
    for (Index d = 0; d < depth; ++d) {
      const double term = static_cast<double>(rows[row * stride + d]) * query[d];
      sum += term;
      magnitude += std::abs(term);
    }
    ASSERT_NEAR(out[row], sum, 2 * 0x1p-23 * magnitude) << "row " << row << " of " << row_count << ", depth " << depth;
  }
}

void check_int8_dots(Index row_count, Index depth, Random& random) {
  const Int8Rows rows(row_count, depth, random);
  Unaligned query(random.vector(depth));
  const QuantizedQuery quantized(query.data(), depth);
  Unaligned out(row_count, untouched);
  kernels::dot_rows_int8(rows.bytes.data(), rows.scales.data(), rows.stride, row_count, quantized.codes.data(),
                         quantized.scales.data(), depth, out.data());
  for (Index row = 0; row < row_count; ++row) {
    double sum = 0;
    double magnitude = 0;
    for (Index d = 0; d < depth; ++d) {
      sum += rows.at(row, d) * query[d];
      magnitude += std::abs(rows.at(row, d));
    }
    // Half of the query's quantum for each element, and float32's roundings.
    ASSERT_NEAR(out[row], sum, (0.5 / 32767 + 4 * 0x1p-23) * magnitude) << row << " of " << row_count << ", " << depth;
  }
}

TEST(dot_rows, each_is_the_product_of_row_and_query_for_every_number_of_rows) {
  Random random(1);
  for (const Index row_count : tail_lengths(8)) {
    check_dots(row_count, 13, random);
    check_int8_dots(row_count, 13, random);
  }
  for (const Index row_count : {255, 256, 257, 521}) {
    check_dots(row_count, 8, random);
    check_int8_dots(row_count, 8, random);
  }
}

TEST(dot_rows, each_is_the_product_of_row_and_query_at_every_depth) {
  Random random(2);
  for (const Index depth : tail_lengths(4 * simd::lanes * 2)) {
    if (depth == 0) continue;
    check_dots(6, depth, random);
    check_int8_dots(6, depth, random);
  }
  for (const Index depth : {255, 256, 257, 263, 512, 1031}) {
    check_dots(5, depth, random);
    check_int8_dots(5, depth, random);
  }
}

TEST(dot_rows, R15_a_row_gives_the_same_bits_whichever_rows_are_beside_it) {
  Random random(7);
  constexpr Index depth = 130 * simd::lanes + 3;  // more than a part
  constexpr Index row_count = 35;
  Unaligned rows(random.vector(row_count * depth));
  const std::vector<float> query = random.vector(depth);
  float all[row_count];
  kernels::dot_rows(rows.data(), depth, row_count, query.data(), depth, all);
  for (Index first = 0; first < row_count; ++first) {
    for (Index count = 1; first + count <= row_count; ++count) {
      float some[row_count];
      kernels::dot_rows(rows.data() + first * depth, depth, count, query.data(), depth, some);
      for (Index row = 0; row < count; ++row) ASSERT_TRUE(same_bits(some[row], all[first + row]));
    }
  }
}

TEST(dot_rows, the_largest_int8_products_do_not_overflow) {
  for (const Index depth : {256, 2048}) {
    const std::vector<std::int8_t> row(static_cast<std::size_t>(depth), -127);
    const float scale = 1.0F;
    const std::vector<float> query(static_cast<std::size_t>(depth), 1.0F);
    const QuantizedQuery quantized(query.data(), depth);
    float out = 0.0F;
    kernels::dot_rows_int8(row.data(), &scale, depth, 1, quantized.codes.data(), quantized.scales.data(), depth, &out);
    EXPECT_NEAR(out, -127.0 * static_cast<double>(depth), 1e-6 * 127.0 * static_cast<double>(depth));
  }
}

TEST(dot_rows, R10_a_query_that_is_not_finite_gives_NaN_and_a_row_with_scale_NaN_too) {
  Random random(3);
  const Int8Rows rows(5, 16, random);
  std::vector<float> query = random.vector(16);
  std::vector<float> out(5);
  std::vector<float> scales = rows.scales;
  scales[2] = not_a_number;
  const QuantizedQuery finite(query.data(), 16);
  kernels::dot_rows_int8(rows.bytes.data(), scales.data(), rows.stride, 5, finite.codes.data(), finite.scales.data(),
                         16, out.data());
  for (std::size_t row = 0; row < 5; ++row) EXPECT_EQ(std::isnan(out[row]), row == 2) << row;
  query[7] = infinity;
  const QuantizedQuery infinite(query.data(), 16);
  kernels::dot_rows_int8(rows.bytes.data(), rows.scales.data(), rows.stride, 5, infinite.codes.data(),
                         infinite.scales.data(), 16, out.data());
  for (const float value : out) EXPECT_TRUE(std::isnan(value));
}

std::vector<std::uint8_t> some_visible(Index count, Random& random) {
  std::vector<std::uint8_t> visible(static_cast<std::size_t>(count));
  for (std::uint8_t& byte : visible) byte = random.chance(70) ? 1 : 0;
  return visible;
}

void check_sums(Index row_count, Index width, bool with_holes, Random& random) {
  const Index stride = width + 3;
  Unaligned rows(random.vector(row_count == 0 ? 0 : (row_count - 1) * stride + width));
  const std::vector<float> weights = random.vector(row_count);
  const std::vector<std::uint8_t> visible = some_visible(row_count, random);
  Unaligned sums(random.vector(width));
  const std::vector<float> before = sums.values();
  kernels::accumulate_rows(rows.data(), stride, row_count, weights.data(), with_holes ? visible.data() : nullptr, width,
                           sums.data());
  for (Index column = 0; column < width; ++column) {
    double sum = before[static_cast<std::size_t>(column)];
    double magnitude = std::abs(sum);
    for (Index row = 0; row < row_count; ++row) {
      if (with_holes && visible[static_cast<std::size_t>(row)] == 0) continue;
      const double term = static_cast<double>(weights[static_cast<std::size_t>(row)]) * rows[row * stride + column];
      sum += term;
      magnitude += std::abs(term);
    }
    ASSERT_NEAR(sums[column], sum, 2 * 0x1p-23 * magnitude) << column << " of " << width << ", " << row_count;
  }
}

void check_int8_sums(Index row_count, Index width, bool with_holes, Random& random) {
  const Int8Rows rows(row_count, width, random);
  const std::vector<float> weights = random.vector(row_count);
  const std::vector<std::uint8_t> visible = some_visible(row_count, random);
  Unaligned sums(random.vector(width));
  const std::vector<float> before = sums.values();
  kernels::accumulate_rows_int8(rows.bytes.data(), rows.scales.data(), rows.stride, row_count, weights.data(),
                                with_holes ? visible.data() : nullptr, width, sums.data());
  double largest = 0;
  for (std::size_t row = 0; row < weights.size(); ++row) {
    largest = std::max(largest, std::abs(static_cast<double>(weights[row]) * rows.scales[row]));
  }
  for (Index column = 0; column < width; ++column) {
    double sum = before[static_cast<std::size_t>(column)];
    double magnitude = std::abs(sum);
    double bytes = 0;
    for (Index row = 0; row < row_count; ++row) {
      if (with_holes && visible[static_cast<std::size_t>(row)] == 0) continue;
      const double term = weights[static_cast<std::size_t>(row)] * rows.at(row, column);
      sum += term;
      magnitude += std::abs(term);
      bytes += std::abs(static_cast<double>(rows.bytes[static_cast<std::size_t>(row * rows.stride + column)]));
    }
    const double bound = 0.5 / 32767 * largest * bytes + 4 * 0x1p-23 * magnitude;
    ASSERT_NEAR(sums[column], sum, bound) << column << " of " << width << ", " << row_count << " rows";
  }
}

TEST(accumulate_rows, sums_weighted_rows_for_every_number_of_rows_and_columns) {
  Random random(4);
  for (const bool with_holes : {false, true}) {
    for (const Index row_count : tail_lengths(8)) {
      check_sums(row_count, 24, with_holes, random);
      check_int8_sums(row_count, 24, with_holes, random);
    }
    for (const Index width : tail_lengths(8)) {
      check_sums(140, width, with_holes, random);
      check_int8_sums(11, width, with_holes, random);
    }
    check_sums(kernels::block_keys, 64, with_holes, random);
    for (const Index width : {63, 64, 65, 131}) check_int8_sums(300, width, with_holes, random);
  }
}

TEST(accumulate_rows, R15_a_row_that_weighs_0_and_one_that_is_not_there_give_the_same_bits) {
  Random random(6);
  constexpr Index width = 11;
  Unaligned rows(random.vector(kernels::block_keys * width));
  for (const Index first : {0, 3, 64, 201}) {
    for (const Index count : {1, 7, 55}) {
      std::vector<float> weights(static_cast<std::size_t>(kernels::block_keys));
      for (Index row = first; row < first + count; ++row) weights[static_cast<std::size_t>(row)] = random.within(1.0F);
      std::vector<float> all(width);
      kernels::accumulate_rows(rows.data(), width, kernels::block_keys, weights.data(), nullptr, width, all.data());
      std::vector<float> part(width);
      kernels::accumulate_rows(rows.data() + first * width, width, count, weights.data() + first, nullptr, width,
                               part.data());
      for (std::size_t column = 0; column < width; ++column) ASSERT_TRUE(same_bits(all[column], part[column]));
    }
  }
}

TEST(accumulate_rows, R10_hidden_rows_change_no_bit_whatever_they_hold) {
  Random random(5);
  for (const Index row_count : {3, 8, 61}) {
    constexpr Index width = 21;
    std::vector<float> rows = random.vector(row_count * width);
    const std::vector<float> weights = random.vector(row_count);
    const std::vector<std::uint8_t> visible = some_visible(row_count, random);
    std::vector<float> sums(width);
    kernels::accumulate_rows(rows.data(), width, row_count, weights.data(), visible.data(), width, sums.data());
    std::vector<std::int8_t> bytes(rows.size());
    std::vector<float> scales(static_cast<std::size_t>(row_count));
    const auto quantize = [&] {
      for (Index row = 0; row < row_count; ++row) {
        scales[static_cast<std::size_t>(row)] =
            kernels::quantize_row(rows.data() + row * width, width, bytes.data() + row * width);
      }
    };
    quantize();
    std::vector<float> int8_sums(width);
    kernels::accumulate_rows_int8(bytes.data(), scales.data(), width, row_count, weights.data(), visible.data(), width,
                                  int8_sums.data());
    for (Index row = 0; row < row_count; ++row) {
      if (visible[static_cast<std::size_t>(row)] != 0) continue;
      std::fill_n(rows.begin() + row * width, width, row % 2 == 0 ? not_a_number : infinity);
    }
    std::vector<float> again(width);
    kernels::accumulate_rows(rows.data(), width, row_count, weights.data(), visible.data(), width, again.data());
    quantize();
    std::vector<float> int8_again(width);
    kernels::accumulate_rows_int8(bytes.data(), scales.data(), width, row_count, weights.data(), visible.data(), width,
                                  int8_again.data());
    for (std::size_t column = 0; column < width; ++column) {
      ASSERT_TRUE(same_bits(again[column], sums[column]));
      ASSERT_TRUE(same_bits(int8_again[column], int8_sums[column]));
    }
  }
}

}  // namespace
}  // namespace lookback::test
