// R16 at its edges: truncated rolling caches, columns without a token, lengths near the end of 32 bits.

#include <cstring>

#include "lookback/attention.hpp"
#include "support.hpp"

namespace lookback::test {
namespace {

KvCacheShape small_shape(Index batch, Index capacity, CacheType type, bool rolling) {
  KvCacheShape shape;
  shape.batch = batch;
  shape.head_dim = 3;
  shape.value_dim = 2;
  shape.capacity = capacity;
  shape.type = type;
  shape.rolling = rolling;
  return shape;
}

/// A cache and one call on it with `count` new tokens per row.
struct CacheCall {
  Scratch memory;
  KvCache cache;
  Index batch;
  std::vector<float> queries, keys, values, output, weights;
  std::vector<std::int32_t> valid;
  AttentionCall call;

  explicit CacheCall(const KvCacheShape& shape) : memory(KvCache::bytes(shape)), batch(shape.batch) {
    EXPECT_EQ(KvCache::create(shape, memory.data()), Status::ok);
    cache = KvCache(memory.data());
  }
  CacheCall(const CacheCall&) = delete;
  CacheCall& operator=(const CacheCall&) = delete;

  Status attend(Index count, std::int32_t window_left, Index query_count) {
    Random random(7);
    queries = random.vector(batch * query_count * 3);
    keys = random.vector(batch * count * 3);
    values = random.vector(batch * count * 2);
    output.assign(static_cast<std::size_t>(batch * query_count * 2), untouched);
    call.shape = {batch, 1, 1, query_count, cache.columns() + count, 3, 2};
    call.inputs.queries = {queries.data(), query_count * 3, query_count * 3, 3};
    call.inputs.keys = {keys.data(), count * 3, count * 3, 3};
    call.inputs.values = {values.data(), count * 2, count * 2, 2};
    call.inputs.cache = cache;
    call.inputs.new_length = count;
    call.visibility.causal = true;
    call.visibility.window_left = window_left;
    call.visibility.key_lengths = valid.empty() ? nullptr : valid.data();
    call.outputs.output = {output.data(), query_count * 2, query_count * 2, 2};
    const Scratch scratch(attention_workspace_bytes(call));
    return attention_forward(call, scratch.data(), scratch.bytes());
  }
};

TEST(kv_cache_limits, R16_a_truncated_rolling_cache_refuses_windows_that_reach_evicted_tokens) {
  for (const CacheType type : {CacheType::float32, CacheType::int8}) {
    CacheCall step(small_shape(2, 8, type, true));
    ASSERT_EQ(step.attend(20, 7, 20), Status::ok);
    ASSERT_EQ(step.cache.truncate(15), Status::ok);  // positions 12, 13 and 14 are left
    EXPECT_EQ(step.attend(1, 4, 1), Status::evicted);
    EXPECT_EQ(step.cache.length(), 15);
    for (const float value : step.output) ASSERT_TRUE(same_bits(value, untouched));
    EXPECT_EQ(step.attend(1, 4, 0), Status::ok) << "no query, no window";
    EXPECT_EQ(step.attend(1, 4, 1), Status::ok) << "position 16 sees back to 12";
    EXPECT_EQ(step.attend(1, 7, 1), Status::evicted) << "position 17 would see back to 10";
    EXPECT_EQ(step.attend(2, 5, 2), Status::ok);
    EXPECT_EQ(step.attend(1, 7, 1), Status::ok) << "enough tokens have followed";
  }
}

TEST(kv_cache_limits, R16_one_row_with_too_few_tokens_is_enough_to_refuse) {
  CacheCall step(small_shape(2, 8, CacheType::float32, true));
  step.valid = {20, 9};
  ASSERT_EQ(step.attend(20, 7, 20), Status::ok);
  ASSERT_EQ(step.cache.truncate(13), Status::ok);  // row 0 has 12, row 1 has 1 … 8
  step.valid.clear();
  EXPECT_EQ(step.attend(1, 2, 1), Status::evicted);
  EXPECT_EQ(step.attend(1, 1, 1), Status::ok);
}

TEST(kv_cache_limits, R12_scores_of_columns_without_a_token_are_0) {
  for (const bool rolling : {false, true}) {
    for (const CacheType type : {CacheType::float32, CacheType::int8}) {
      for (const WeightsKind kind : {WeightsKind::scores, WeightsKind::capped}) {
        for (const Index queries : {1, 9}) {  // row by row, and packed
          CacheCall step(small_shape(2, 20, type, rolling));
          step.valid = {9, 2};
          ASSERT_EQ(step.attend(9, 19, 9), Status::ok);
          step.valid.clear();
          step.weights.assign(2 * 10, untouched);
          step.call.outputs.weights = {step.weights.data(), kind, nullptr, 1, 0, 1};
          ASSERT_EQ(step.attend(1, 19, queries), Status::ok);
          for (Index column = 0; column < 20; ++column) {
            const bool has_token = column < 10 + 3;  // row 1 has its tokens in columns 0, 1 and 2
            EXPECT_EQ(step.weights[column] != 0.0F, has_token) << "column " << column << ", " << queries << " queries";
          }
        }
      }
    }
  }
}

TEST(kv_cache_limits, R16_lengths_at_the_end_of_32_bits_are_full_and_not_negative) {
  const KvCacheShape shape = small_shape(1, 8, CacheType::float32, true);
  CacheCall step(shape);
  ASSERT_EQ(step.attend(8, 7, 8), Status::ok);
  std::vector<std::uint8_t> saved(static_cast<std::size_t>(step.cache.saved_bytes()));
  step.cache.save(saved.data());
  const std::int32_t rows[2] = {INT32_MAX - 1, INT32_MAX - 9};  // length and first position, after 10 numbers of header
  std::memcpy(saved.data() + 40, rows, sizeof rows);
  ASSERT_EQ(step.cache.load(saved.data(), static_cast<double>(saved.size())), Status::ok);
  for (const Index count : {1, 2, 8}) EXPECT_EQ(step.attend(count, 7, count), Status::cache_full) << count;
  EXPECT_EQ(step.cache.length(), INT32_MAX - 1);
}

TEST(kv_cache_limits, R23_sizes_beyond_every_memory_are_numbers_and_not_created) {
  KvCacheShape shape = small_shape(INT32_MAX, INT32_MAX, CacheType::float32, false);
  shape.kv_heads = shape.head_dim = shape.value_dim = INT32_MAX;
  EXPECT_GT(KvCache::bytes(shape), 1e37);
  if constexpr (sizeof(Index) > sizeof(std::int32_t)) {
    Scratch memory(1024);
    KvCacheShape beyond = small_shape(1, 1, CacheType::float32, false);
    beyond.capacity = static_cast<Index>(std::int64_t{1} << 32) + 1;  // 1 in 32 bits
    EXPECT_EQ(KvCache::create(beyond, memory.data()), Status::invalid_shape);
  }
}

}  // namespace
}  // namespace lookback::test
