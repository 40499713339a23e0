#include "kernels/dropout.hpp"

#include <functional>

#include "problem.hpp"

namespace lookback::test {
namespace {

using namespace kernels;

constexpr Index row_length = 1024;
constexpr Index row_total = 512;

/// kept or dropped, of many rows, which `key` numbers.
std::vector<std::vector<bool>> kept(float p, const std::function<DropoutKey(Index row)>& key) {
  const DropoutRule rule(p);
  std::vector<std::vector<bool>> rows;
  for (Index row = 0; row < row_total; ++row) {
    std::vector<float> ones(row_length, 1.0F);
    drop_row(ones.data(), row_length, key(row), rule);
    std::vector<bool> bits;
    for (const float value : ones) bits.push_back(value != 0.0F);
    rows.push_back(std::move(bits));
  }
  return rows;
}

const std::function<DropoutKey(Index)> ways[] = {
    [](Index row) { return dropout_key(7, 0, 0, row); },
    [](Index row) { return dropout_key(7, 0, row, 3); },
    [](Index row) { return dropout_key(7, row, 0, 3); },
    [](Index row) { return dropout_key(static_cast<std::uint64_t>(row), 0, 0, 0); },
    [](Index row) { return dropout_key(static_cast<std::uint64_t>(row) << 32, 0, 0, -row); },
};

/// The correlation of each element with the one `shift` elements and `distance` rows further.
double correlation(const std::vector<std::vector<bool>>& rows, double p, Index distance, Index shift) {
  double sum = 0.0;
  double count = 0.0;
  for (Index row = 0; row + distance < row_total; ++row) {
    for (Index at = 0; at + shift < row_length; ++at) {
      const double one = (rows[row][at] ? 1.0 : 0.0) - (1.0 - p);
      const double other = (rows[row + distance][at + shift] ? 1.0 : 0.0) - (1.0 - p);
      sum += one * other;
      count += 1.0;
    }
  }
  return sum / count / (p * (1.0 - p)) * std::sqrt(count);  // in standard deviations
}

TEST(dropout, R19_the_share_of_what_is_dropped_is_p) {
  for (const float p : {0.01F, 0.1F, 0.5F, 0.9F}) {
    for (const auto& way : ways) {
      double dropped = 0.0;
      for (const auto& row : kept(p, way)) {
        for (const bool bit : row) dropped += bit ? 0.0 : 1.0;
      }
      const double count = row_length * row_total;
      const double deviation = std::sqrt(count * static_cast<double>(p) * (1.0 - static_cast<double>(p)));
      EXPECT_NEAR(dropped, count * static_cast<double>(p), 5.0 * deviation) << "p " << p;
    }
  }
}

TEST(dropout, R19_neighbouring_keys_queries_heads_batch_rows_and_seeds_are_independent) {
  for (const auto& way : ways) {
    const auto rows = kept(0.25F, way);
    for (const Index distance : {0, 1, 2, 8}) {
      for (const Index shift : {0, 1, 2, 3, 4, 8, 64}) {
        if (distance == 0 && shift == 0) continue;
        EXPECT_LT(std::abs(correlation(rows, 0.25, distance, shift)), 5.0) << distance << " rows, " << shift << " keys";
      }
    }
  }
}

TEST(dropout, R19_hashes_fill_their_range_evenly_in_their_high_and_low_bits) {
  for (const int bits : {24, 0}) {
    std::vector<double> bins(256);
    const DropoutKey key = dropout_key(1, 2, 3, 4);
    constexpr std::uint32_t count = 1 << 20;
    for (std::uint32_t index = 0; index < count; ++index) bins[dropout_hash(key, index) >> bits & 255] += 1.0;
    double chi_square = 0.0;
    const double expected = count / 256.0;
    for (const double bin : bins) chi_square += (bin - expected) * (bin - expected) / expected;
    EXPECT_NEAR(chi_square, 255.0, 5.0 * std::sqrt(2.0 * 255.0));
  }
}

TEST(dropout, one_element_a_row_and_a_block_are_dropped_alike_at_every_length) {
  const DropoutRule rule(0.4F);
  for (const Index length : tail_lengths(panel_width)) {
    for (const Index first_key : {0, 77}) {
      DropoutLanes lanes;
      DropoutKey keys[panel_width];
      for (Index lane = 0; lane < panel_width; ++lane) {
        keys[lane] = dropout_key(5, 1, 2, lane);
        lanes.first[lane] = keys[lane].first;
        lanes.second[lane] = keys[lane].second;
      }
      Unaligned block(length * tile_queries, 3.0F);
      drop_weights(block.data(), length, first_key, lanes, rule);
      for (Index lane = 0; lane < panel_width; ++lane) {
        Unaligned row(first_key + length, 3.0F);
        drop_row(row.data(), row.size(), keys[lane], rule);
        for (Index key = 0; key < length; ++key) {
          const bool is_kept = dropout_hash(keys[lane], static_cast<std::uint32_t>(first_key + key)) >= rule.threshold;
          ASSERT_EQ(row[first_key + key], is_kept ? 3.0F * rule.factor : 0.0F);
          ASSERT_EQ(block[key * tile_queries + lane], row[first_key + key]);
        }
      }
    }
  }
}

/// V is the identity: the output is the weights that meet it.
Problem with_weights_as_output(Index query_length, std::int32_t offset) {
  constexpr Index keys = 40;
  Problem problem = Problem::random({1, 2, 2, query_length, keys, 4, keys}, 3);
  problem.offsets = {offset};
  for (Index h = 0; h < 2; ++h) {
    for (Index j = 0; j < keys; ++j) {
      for (Index c = 0; c < keys; ++c) problem.value(0, h, j, c) = j == c ? 1.0F : 0.0F;
    }
  }
  return problem;
}

TEST(dropout, R19_kept_weights_are_divided_by_1_minus_p_and_what_is_returned_is_that_before) {
  Problem problem = with_weights_as_output(30, 0);
  const Result plain = run_all_weights(problem, WeightsKind::softmax);
  problem.dropout = {0.3F, 11};
  const Result dropped = run_all_weights(problem, WeightsKind::softmax);
  EXPECT_TRUE(all_same_bits(plain.weights, dropped.weights));
  EXPECT_TRUE(all_same_bits(plain.log_sum_exp, dropped.log_sum_exp));
  Index zeros = 0;
  for (std::size_t at = 0; at < dropped.output.size(); ++at) {
    if (dropped.output[at] == 0.0F) {
      ++zeros;
    } else {
      ASSERT_NEAR(dropped.output[at], plain.weights[at] / 0.7F, 1e-6F);
    }
  }
  EXPECT_NEAR(static_cast<double>(zeros), 0.3 * 2400, 5.0 * std::sqrt(2400 * 0.3 * 0.7));
}

TEST(dropout, R19_a_query_has_one_mask_wherever_it_stands_in_its_call) {
  Problem whole = with_weights_as_output(30, 0);
  whole.dropout = {0.5F, 12};
  const Result all = run(whole);
  for (const Index from : {1, 7, 25}) {
    Problem rest = with_weights_as_output(30 - from, static_cast<std::int32_t>(from));
    rest.dropout = whole.dropout;
    const Result some = run(rest);
    for (Index h = 0; h < 2; ++h) {
      for (Index at = 0; at < (30 - from) * 40; ++at) {
        ASSERT_EQ(some.output[h * (30 - from) * 40 + at] == 0.0F, all.output[(h * 30 + from) * 40 + at] == 0.0F);
      }
    }
  }
}

TEST(dropout, R19_a_cache_is_refused) {
  const KvCacheShape shape{1, 1, 2, 2, 8, CacheType::float32, false};
  const Scratch memory(KvCache::bytes(shape));
  ASSERT_EQ(KvCache::create(shape, memory.data()), Status::ok);
  Problem problem = Problem::random({1, 1, 1, 1, 1, 2, 2}, 1);
  problem.dropout = {0.5F, 1};
  AttentionCall call = problem.call();
  call.inputs.cache = KvCache(memory.data());
  call.inputs.new_length = 1;
  std::vector<float> output(2);
  call.outputs.output = {output.data(), 2, 2, 2};
  EXPECT_EQ(validate_attention(call), Status::invalid_argument);
  call.scores.dropout.p = 0.0F;
  EXPECT_EQ(validate_attention(call), Status::ok);
}

}  // namespace
}  // namespace lookback::test
