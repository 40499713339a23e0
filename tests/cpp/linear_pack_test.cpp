#include <cstring>

#include "packed_weight.hpp"

namespace lookback::test {
namespace {

using kernels::panel_width;

TEST(linear_pack, unpacking_is_the_exact_inverse_of_packing) {
  Random random(1);
  for (const Index inputs : {1, 2, 7, 8, 9, 31, 255, 256, 257, 600}) {
    for (const Index outputs : {Index{1}, Index{3}, panel_width - 1, panel_width, panel_width + 1, 3 * panel_width}) {
      const std::vector<float> weight = random.vector(inputs * outputs);
      const PackedWeight packed(weight, inputs, outputs, f32);
      ASSERT_TRUE(all_same_bits(packed.stored(), weight)) << inputs << " → " << outputs;
    }
  }
}

TEST(linear_pack, packing_keeps_every_bit_NaN_and_infinities_included) {
  const std::vector<float> weight{not_a_number, infinity, -infinity, -0.0F, 1e-42F, 3.4e38F};
  EXPECT_TRUE(all_same_bits(PackedWeight(weight, 2, 3, f32).stored(), weight));
}

TEST(linear_pack, int8_is_off_by_at_most_half_of_the_scale_at_every_length_and_magnitude) {
  Random random(2);
  for (const Index group : {16, 64, 256}) {
    for (const Index inputs : {1, 2, 15, 16, 17, 63, 65, 300}) {
      for (const float bound : {1.0F, 1e-30F, 3e38F}) {
        const Index outputs = panel_width + 1;
        const std::vector<float> weight = random.vector(inputs * outputs, bound);
        const std::vector<float> stored = PackedWeight(weight, inputs, outputs, {WeightType::int8, group}).stored();
        for (Index n = 0; n < inputs * outputs; ++n) {
          const Index first = n % inputs / group * group;
          float largest = 0.0F;
          for (Index i = first; i < std::min(first + group, inputs); ++i)
            largest = std::max(largest, std::abs(weight[n / inputs * inputs + i]));
          ASSERT_NEAR(stored[n], weight[n], 0.5001F * (largest / 127.0F)) << group << ", " << inputs << ": " << n;
        }
      }
    }
  }
}

TEST(linear_pack, the_relative_error_of_normal_weights_is_what_the_types_promise) {
  std::mt19937 engine(3);
  const Index inputs = 768;
  const Index outputs = 64;
  std::vector<float> weight(static_cast<std::size_t>(inputs * outputs));
  for (float& value : weight) {  // a sum of 12 uniform numbers is close to normal
    double sum = -6.0;
    for (int n = 0; n < 12; ++n) sum += static_cast<double>(engine()) / 4294967296.0;
    value = static_cast<float>(0.02 * sum);
  }
  const auto relative_rms = [&](LinearFormat format) {
    const std::vector<float> stored = PackedWeight(weight, inputs, outputs, format).stored();
    double error = 0.0;
    double size = 0.0;
    for (std::size_t n = 0; n < weight.size(); ++n) {
      error += std::pow(static_cast<double>(stored[n]) - weight[n], 2.0);
      size += std::pow(static_cast<double>(weight[n]), 2.0);
    }
    return std::sqrt(error / size);
  };
  EXPECT_EQ(relative_rms(f32), 0.0);
  EXPECT_LT(relative_rms(f16), 0.00025);
  EXPECT_LT(relative_rms(bf16), 0.002);
  EXPECT_LT(relative_rms({WeightType::int8, 32}), 0.0053);
  EXPECT_LT(relative_rms({WeightType::int8, 64}), 0.0059);
  EXPECT_LT(relative_rms({WeightType::int8, 256}), 0.0072);
}

TEST(linear_pack, int8_groups_of_zeros_or_of_numbers_that_vanish_are_zeros) {
  const std::vector<float> weight{0.0F, -0.0F, 1e-40F, 0.0F, 1.0F, 0.0F};
  const std::vector<float> stored = PackedWeight(weight, 2, 3, {WeightType::int8, 16}).stored();
  EXPECT_EQ(stored, (std::vector<float>{0.0F, 0.0F, 0.0F, 0.0F, 1.0F, 0.0F}));
}

TEST(linear_pack, a_non_finite_weight_spoils_its_int8_group_and_no_other) {
  Random random(4);
  for (const float planted : {not_a_number, infinity, -infinity}) {
    std::vector<float> weight = random.vector(40 * 3);
    const std::vector<float> clean = PackedWeight(weight, 40, 3, {WeightType::int8, 16}).stored();
    weight[40 + 20] = planted;
    const std::vector<float> stored = PackedWeight(weight, 40, 3, {WeightType::int8, 16}).stored();
    for (Index n = 0; n < 120; ++n) {
      if (n / 40 == 1 && n % 40 / 16 == 1)
        EXPECT_TRUE(std::isnan(stored[n]));
      else
        EXPECT_EQ(stored[n], clean[n]);
    }
  }
}

/// The same weight's bytes in each type that packing takes.
std::vector<std::uint8_t> source_of(const std::vector<float>& weight, WeightType type) {
  std::vector<std::uint8_t> bytes(weight.size() * (type == WeightType::f32 ? 4 : 2));
  for (std::size_t n = 0; n < weight.size(); ++n) {
    const std::uint32_t bits = bits_of(weight[n]);
    if (type == WeightType::f32) {
      std::memcpy(bytes.data() + 4 * n, &bits, 4);
      continue;
    }
    // The weights below have 7 bits after the point and exponents that a half has.
    const std::uint32_t half =
        type == WeightType::bf16
            ? bits >> 16
            : (bits >> 16 & 0x8000U) | (((bits >> 23 & 0xffU) - 112U) << 10) | (bits >> 13 & 0x3ffU);
    bytes[2 * n] = static_cast<std::uint8_t>(half);
    bytes[2 * n + 1] = static_cast<std::uint8_t>(half >> 8);
  }
  return bytes;
}

/// Numbers that f32, f16 and bf16 hold alike.
std::vector<float> short_numbers(Index count, Random& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    const std::uint32_t bits = (random.bits() & 0x807f0000U) | (120U + random.bits() % 8U) << 23;
    std::memcpy(&value, &bits, 4);
  }
  return values;
}

std::vector<float> transpose(const std::vector<float>& rows, Index row_count) {
  const Index width = static_cast<Index>(rows.size()) / row_count;
  std::vector<float> result(rows.size());
  for (Index row = 0; row < row_count; ++row) {
    for (Index column = 0; column < width; ++column) result[column * row_count + row] = rows[row * width + column];
  }
  return result;
}

TEST(linear_pack, chunks_of_any_source_give_the_bytes_of_the_whole) {
  Random random(5);
  for (const LinearFormat format : all_formats()) {
    for (const Index inputs : {1, 17, 64, 300}) {
      for (const Index outputs : {Index{1}, panel_width, 2 * panel_width + 3}) {
        const std::vector<float> weight = short_numbers(inputs * outputs, random);
        const PackedWeight whole(weight, inputs, outputs, format);
        for (const WeightType type : {WeightType::f32, WeightType::f16, WeightType::bf16}) {
          for (const bool transposed : {false, true}) {
            const std::vector<std::uint8_t> source = source_of(transposed ? transpose(weight, outputs) : weight, type);
            const Index rows = transposed ? inputs : outputs;
            const Index row_bytes = static_cast<Index>(source.size()) / rows;
            const Index step = transposed && format.type == WeightType::int8 ? format.group : 1;
            PackedWeight packed(inputs, outputs, format);
            // From the last chunk to the first, of 1, 2, 3 … steps.
            Index end = rows;
            for (Index steps = 1; end > 0; ++steps) {
              const Index first = std::max(kernels::round_up(end, step) - steps * step, Index{0});
              ASSERT_EQ(packed.pack({source.data() + first * row_bytes, type, transposed, first, end - first}),
                        Status::ok);
              end = first;
            }
            ASSERT_EQ(packed.bytes(), whole.bytes())
                << name_of(format) << " from " << static_cast<int>(type) << (transposed ? ", transposed, " : ", ")
                << inputs << " → " << outputs;
          }
        }
      }
    }
  }
}

TEST(linear_pack, rows_may_lie_apart) {
  Random random(6);
  const std::vector<float> stacked = random.vector(12 * 21);  // GPT-2's c_attn: three weights [12, 7] side by side
  const std::vector<float> weight = transpose(stacked, 12);
  for (Index part = 0; part < 3; ++part) {
    PackedWeight packed(12, 7, f32);
    ASSERT_EQ(packed.pack({stacked.data() + 7 * part, WeightType::f32, true, 0, 12, 21}), Status::ok);
    const auto first = weight.begin() + part * 7 * 12;
    EXPECT_TRUE(all_same_bits(packed.stored(), std::vector<float>(first, first + 7 * 12)));
  }
}

TEST(linear_pack, single_rows_come_back_alone) {
  Random random(7);
  for (const LinearFormat format : all_formats()) {
    const PackedWeight packed(random.vector(83 * 21), 83, 21, format);
    const std::vector<float> stored = packed.stored();
    for (Index row = 0; row < 21; ++row) {
      Unaligned alone(83, untouched);
      ASSERT_EQ(unpack_linear(packed.layer(), row, 1, alone.data()), Status::ok);
      ASSERT_TRUE(all_same_bits(alone.values(), {stored.begin() + row * 83, stored.begin() + (row + 1) * 83}));
    }
  }
}

TEST(linear_pack, refuses_what_it_cannot_pack_and_writes_nothing) {
  const std::vector<float> numbers(40 * 9, 1.0F);
  PackedWeight packed(40, 9, {WeightType::int8, 16});
  const auto status = [&](WeightType type, bool transposed, Index first, Index count, Index stride = 0) {
    return packed.pack({numbers.data(), type, transposed, first, count, stride});
  };
  EXPECT_EQ(status(WeightType::int8, false, 0, 9), Status::invalid_argument);
  EXPECT_EQ(status(WeightType::f32, false, 0, -1), Status::invalid_shape);
  EXPECT_EQ(status(WeightType::f32, false, 0, 10), Status::invalid_range);
  EXPECT_EQ(status(WeightType::f32, false, 10, 0), Status::invalid_range);
  EXPECT_EQ(status(WeightType::f32, false, -1, 2), Status::invalid_range);
  EXPECT_EQ(status(WeightType::f32, true, 16, 25), Status::invalid_range);
  EXPECT_EQ(status(WeightType::f32, true, 0, 15), Status::invalid_range) << "no whole group";
  EXPECT_EQ(status(WeightType::f32, true, 8, 16), Status::invalid_range) << "groups begin at multiples";
  EXPECT_EQ(status(WeightType::f32, false, 0, 9, 39), Status::invalid_shape);
  EXPECT_EQ(status(WeightType::f32, true, 0, 40, 8), Status::invalid_shape);
  EXPECT_EQ(packed.pack({nullptr, WeightType::f32, false, 0, 9}), Status::null_pointer);
  for (const std::uint8_t byte : packed.bytes()) ASSERT_EQ(byte, 0xff);
  EXPECT_EQ(status(WeightType::f32, true, 32, 8), Status::ok) << "the last group is shorter";
  EXPECT_EQ(packed.pack({nullptr, WeightType::f32, false, 0, 0}), Status::ok) << "no rows, no operands";
  EXPECT_EQ(pack_linear({numbers.data(), WeightType::f32, false, 0, 1}, 4, 4, {}, nullptr), Status::null_pointer);
  EXPECT_EQ(pack_linear({numbers.data(), WeightType::f32, false, 0, 0}, 0, 4, {}, nullptr), Status::invalid_shape);

  std::vector<float> rows(40, untouched);
  EXPECT_EQ(unpack_linear(packed.layer(), 9, 1, rows.data()), Status::invalid_range);
  EXPECT_EQ(unpack_linear(packed.layer(), -1, 1, rows.data()), Status::invalid_range);
  EXPECT_EQ(unpack_linear(packed.layer(), 0, 1, nullptr), Status::null_pointer);
  EXPECT_EQ(unpack_linear({numbers.data(), nullptr, 4, -4, {}}, 0, 1, rows.data()), Status::invalid_shape);
  for (const float value : rows) EXPECT_TRUE(same_bits(value, untouched));
}

}  // namespace
}  // namespace lookback::test
