// R16: append-then-attend against attention without a cache, for chunks and rows of any length.

#include <algorithm>

#include "lookback/kv_cache.hpp"
#include "problem.hpp"

namespace lookback::test {
namespace {

/// A cache that owns exactly its bytes.
struct OwnedCache {
  Scratch memory;
  KvCache cache;

  explicit OwnedCache(const KvCacheShape& shape) : memory(KvCache::bytes(shape)) {
    EXPECT_EQ(KvCache::create(shape, memory.data()), Status::ok);
    cache = KvCache(memory.data());
  }
};

KvCacheShape cache_shape(const AttentionShape& shape, Index capacity) {
  KvCacheShape result;
  result.batch = shape.batch;
  result.kv_heads = shape.kv_heads;
  result.head_dim = shape.head_dim;
  result.value_dim = shape.value_dim;
  result.capacity = capacity;
  return result;
}

/// Tokens [from, to) of a causal problem as one call on a cache.
struct Step {
  Problem part;
  std::vector<float> output, log_sum_exp;
  AttentionCall call;

  Step(const Problem& whole, KvCache cache, Index from, Index to) {
    const AttentionShape& shape = whole.shape;
    part = whole;
    part.shape.query_length = to - from;
    part.shape.key_length = cache.columns() + to - from;
    part.offsets.clear();
    part.key_lengths.clear();
    const auto take = [&](const std::vector<float>& source, Index heads, Index width) {
      std::vector<float> result;
      for (Index head = 0; head < shape.batch * heads; ++head) {
        const auto first = source.begin() + (head * shape.key_length + from) * width;
        result.insert(result.end(), first, first + (to - from) * width);
      }
      return result;
    };
    part.queries = take(whole.queries, shape.heads, shape.head_dim);
    part.keys = take(whole.keys, shape.kv_heads, shape.head_dim);
    part.values = take(whole.values, shape.kv_heads, shape.value_dim);
    call = part.call();
    const Index count = to - from;
    call.inputs.keys = {part.keys.data(), shape.kv_heads * count * shape.head_dim, count * shape.head_dim,
                        shape.head_dim};
    call.inputs.values = {part.values.data(), shape.kv_heads * count * shape.value_dim, count * shape.value_dim,
                          shape.value_dim};
    call.inputs.cache = cache;
    call.inputs.new_length = count;
    output.assign(static_cast<std::size_t>(part.rows() * shape.value_dim), untouched);
    log_sum_exp.assign(static_cast<std::size_t>(part.rows()), untouched);
    call.outputs.output = {output.data(), shape.heads * count * shape.value_dim, count * shape.value_dim,
                           shape.value_dim};
    call.outputs.log_sum_exp = log_sum_exp.data();
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  [[nodiscard]] Status forward() const {
    const Scratch scratch(attention_workspace_bytes(call));
    return attention_forward(call, scratch.data(), scratch.bytes());
  }
};

Problem causal_problem(Index length, std::uint32_t seed) {
  AttentionShape shape;
  shape.batch = 2;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.query_length = length;
  shape.key_length = length;
  shape.head_dim = 5;
  shape.value_dim = 3;
  Problem problem = Problem::random(shape, seed);
  problem.rules.causal = true;
  return problem;
}

/// Feeds `whole` in chunks and compares each with the reference of the whole.
void check_chunks(const Problem& whole, KvCache cache, const std::vector<Index>& chunks, double extra) {
  const AttentionShape& shape = whole.shape;
  const reference::Attention expected = reference::attention(whole.call());
  Index from = 0;
  for (const Index chunk : chunks) {
    const Step step(whole, cache, from, from + chunk);
    ASSERT_EQ(step.forward(), Status::ok) << "from " << from;
    for (Index row = 0; row < step.part.rows(); ++row) {
      const Index at = row / chunk * shape.query_length + from + row % chunk;
      const double bound = expected.largest_value[at] * (2e-6 + 0x1p-23 * expected.magnitude[at] + extra);
      for (Index c = 0; c < shape.value_dim; ++c) {
        ASSERT_NEAR(step.output[row * shape.value_dim + c], expected.output[at * shape.value_dim + c], bound)
            << "chunk at " << from << ", row " << row;
      }
    }
    from += chunk;
    ASSERT_EQ(cache.length(), from);
  }
}

TEST(kv_cache, R16_append_then_attend_equals_attention_without_a_cache_for_any_chunks) {
  const Problem whole = causal_problem(290, 1);
  for (const std::vector<Index>& chunks :
       {std::vector<Index>{290}, std::vector<Index>{1, 1, 1, 287},
        std::vector<Index>{kernels::block_keys - 1, 1, 1, 289 - kernels::block_keys}, std::vector<Index>{100, 190}}) {
    OwnedCache owned(cache_shape(whole.shape, 290));
    check_chunks(whole, owned.cache, chunks, 1e-5);
  }
}

TEST(kv_cache, R16_softcap_alibi_sinks_and_windows_work_on_absolute_positions) {
  Problem whole = causal_problem(70, 2);
  whole.softcap = 3.0F;
  whole.slopes = {0.25F, 0.0625F, 0.015625F, 0.00390625F};
  whole.sinks = {0.5F, -1.0F, 1.0F, 0.0F};
  whole.rules.window_left = 20;
  OwnedCache owned(cache_shape(whole.shape, 100));
  check_chunks(whole, owned.cache, {30, 1, 9, 30}, 1e-5);
}

TEST(kv_cache, R16_a_rolling_cache_keeps_positions_and_serves_every_query_before_it_evicts) {
  Problem whole = causal_problem(90, 3);
  whole.rules.window_left = 15;
  for (const Index capacity : {16, 17, 40}) {
    KvCacheShape shape = cache_shape(whole.shape, capacity);
    shape.rolling = true;
    OwnedCache owned(shape);
    check_chunks(whole, owned.cache, {3, 30, 1, 1, 50, 5}, 1e-5);
    EXPECT_EQ(owned.cache.first_position(), 90 - capacity);
    EXPECT_EQ(owned.cache.columns(), capacity);
  }
}

TEST(kv_cache, R16_int8_is_close_and_new_tokens_are_attended_as_stored) {
  for (const bool rolling : {false, true}) {
    Problem whole = causal_problem(60, 4);
    whole.rules.window_left = 30;
    KvCacheShape shape = cache_shape(whole.shape, rolling ? 40 : 60);
    shape.type = CacheType::int8;
    shape.rolling = rolling;
    OwnedCache coarse(shape);
    // Keys are off by at most 1/254 of their largest element: scores by |q|·|k|/254·√D, weights accordingly.
    check_chunks(whole, coarse.cache, {20, 1, 1, 38}, 0.05);
  }
}

TEST(kv_cache, R16_int8_attends_exactly_what_read_gives_back) {
  Problem whole = causal_problem(40, 5);
  KvCacheShape shape = cache_shape(whole.shape, 40);
  shape.type = CacheType::int8;
  OwnedCache owned(shape);
  const Step step(whole, owned.cache, 0, 40);
  ASSERT_EQ(step.forward(), Status::ok);
  Problem stored = whole;
  owned.cache.read(stored.keys.data(), stored.values.data());
  for (std::size_t at = 0; at < stored.keys.size(); ++at) ASSERT_NEAR(stored.keys[at], whole.keys[at], 1.0 / 253.0);
  const Result result = run(stored);
  EXPECT_TRUE(all_same_bits(step.output, result.output));
  EXPECT_TRUE(all_same_bits(step.log_sum_exp, result.log_sum_exp));
}

TEST(kv_cache, R16_rows_of_different_length_are_as_if_alone) {
  const Problem whole = causal_problem(30, 6);
  OwnedCache owned(cache_shape(whole.shape, 64));
  const std::vector<std::int32_t> valid = {12, 5};
  Step first(whole, owned.cache, 0, 12);
  first.call.visibility.key_lengths = valid.data();
  ASSERT_EQ(first.forward(), Status::ok);
  EXPECT_EQ(owned.cache.lengths()[0], 12);
  EXPECT_EQ(owned.cache.lengths()[1], 5);
  Step second(whole, owned.cache, 12, 20);
  ASSERT_EQ(second.forward(), Status::ok);

  // Row 1 by itself: its tokens 0…4 and 12…19 at positions 0…12.
  Problem alone = whole;
  alone.shape.batch = 1;
  alone.shape.query_length = 8;
  alone.shape.key_length = 13;
  alone.offsets = {5};
  alone.queries.assign(second.part.queries.begin() + 4 * 8 * 5, second.part.queries.end());
  alone.keys.clear();
  alone.values.clear();
  for (Index head = 0; head < 2; ++head) {
    for (Index token = 0; token < 13; ++token) {
      const Index source = (2 + head) * 30 + (token < 5 ? token : token + 7);
      alone.keys.insert(alone.keys.end(), whole.keys.begin() + source * 5, whole.keys.begin() + (source + 1) * 5);
      alone.values.insert(alone.values.end(), whole.values.begin() + source * 3,
                          whole.values.begin() + (source + 1) * 3);
    }
  }
  Result result = run(alone);
  ASSERT_TRUE(matches(alone, result));
  for (Index at = 0; at < 4 * 8 * 3; ++at) ASSERT_NEAR(second.output[4 * 8 * 3 + at], result.output[at], 1e-5);
}

TEST(kv_cache, R16_a_key_mask_is_remembered) {
  const Problem whole = causal_problem(20, 7);
  OwnedCache owned(cache_shape(whole.shape, 20));
  std::vector<std::uint8_t> real(2 * 10, 1);
  real[0] = real[1] = real[10] = real[17] = 0;
  Step first(whole, owned.cache, 0, 10);
  first.call.visibility.key_mask = real.data();
  ASSERT_EQ(first.forward(), Status::ok);
  Step second(whole, owned.cache, 10, 20);
  ASSERT_EQ(second.forward(), Status::ok);
  Problem masked = whole;
  for (Index at = 0; at < 40; ++at) masked.key_mask.push_back(at % 20 < 10 ? real[at / 20 * 10 + at % 20] : 1);
  const Result result = run(masked);
  for (Index row = 0; row < second.part.rows(); ++row) {
    const Index at = row / 10 * 20 + 10 + row % 10;
    for (Index c = 0; c < 3; ++c) ASSERT_NEAR(second.output[row * 3 + c], result.output[at * 3 + c], 1e-5);
  }
}

TEST(kv_cache, R16_full_is_an_error_and_changes_nothing) {
  const Problem whole = causal_problem(20, 8);
  OwnedCache owned(cache_shape(whole.shape, 15));
  ASSERT_EQ(Step(whole, owned.cache, 0, 12).forward(), Status::ok);
  const Step too_much(whole, owned.cache, 12, 16);
  EXPECT_EQ(too_much.forward(), Status::cache_full);
  EXPECT_EQ(owned.cache.length(), 12);
  for (const float value : too_much.output) ASSERT_TRUE(same_bits(value, untouched));
  EXPECT_EQ(Step(whole, owned.cache, 12, 15).forward(), Status::ok) << "exactly full";
}

TEST(kv_cache, R16_a_rolling_cache_refuses_windows_that_it_cannot_serve_and_truncation_below_its_first_position) {
  Problem whole = causal_problem(20, 9);
  KvCacheShape shape = cache_shape(whole.shape, 8);
  shape.rolling = true;
  OwnedCache owned(shape);
  EXPECT_EQ(Step(whole, owned.cache, 0, 4).forward(), Status::evicted) << "no window at all";
  whole.rules.window_left = 8;
  EXPECT_EQ(Step(whole, owned.cache, 0, 4).forward(), Status::evicted);
  whole.rules.window_left = 7;
  EXPECT_EQ(Step(whole, owned.cache, 0, 20).forward(), Status::ok);
  EXPECT_EQ(owned.cache.truncate(11), Status::evicted);
  EXPECT_EQ(owned.cache.length(), 20);
  EXPECT_EQ(owned.cache.truncate(12), Status::ok);
  EXPECT_EQ(owned.cache.length(), 12);
}

TEST(kv_cache, R16_truncating_and_going_on_has_the_bits_of_never_having_gone_further) {
  const Problem whole = causal_problem(30, 10);
  OwnedCache truncated(cache_shape(whole.shape, 30));
  OwnedCache plain(cache_shape(whole.shape, 30));
  ASSERT_EQ(Step(whole, truncated.cache, 0, 25).forward(), Status::ok);
  ASSERT_EQ(truncated.cache.truncate(10), Status::ok);
  ASSERT_EQ(Step(whole, plain.cache, 0, 10).forward(), Status::ok);
  const Step a(whole, truncated.cache, 10, 30);
  const Step b(whole, plain.cache, 10, 30);
  ASSERT_EQ(a.forward(), Status::ok);
  ASSERT_EQ(b.forward(), Status::ok);
  EXPECT_TRUE(all_same_bits(a.output, b.output));
  truncated.cache.reset();
  EXPECT_EQ(truncated.cache.length(), 0);
}

TEST(kv_cache, R16_saved_bytes_come_back_and_others_are_refused) {
  const Problem whole = causal_problem(30, 11);
  for (const CacheType type : {CacheType::float32, CacheType::int8}) {
    KvCacheShape shape = cache_shape(whole.shape, 40);
    shape.type = type;
    OwnedCache original(shape);
    OwnedCache copy(shape);
    ASSERT_EQ(Step(whole, original.cache, 0, 17).forward(), Status::ok);
    std::vector<std::uint8_t> saved(static_cast<std::size_t>(original.cache.saved_bytes()));
    original.cache.save(saved.data());
    ASSERT_EQ(copy.cache.load(saved.data(), static_cast<double>(saved.size())), Status::ok);
    const Step a(whole, original.cache, 17, 30);
    const Step b(whole, copy.cache, 17, 30);
    ASSERT_EQ(a.forward(), Status::ok);
    ASSERT_EQ(b.forward(), Status::ok);
    EXPECT_TRUE(all_same_bits(a.output, b.output));

    OwnedCache target(shape);
    EXPECT_EQ(target.cache.load(saved.data(), static_cast<double>(saved.size() - 1)), Status::invalid_cache);
    EXPECT_EQ(target.cache.load(nullptr, static_cast<double>(saved.size())), Status::invalid_cache);
    for (std::size_t at = 0; at < 40 + 16; ++at) {
      if (at >= 32 && at < 36) continue;  // whether there is a key mask: both answers are possible
      std::vector<std::uint8_t> broken = saved;
      broken[at] ^= 0xc0;
      EXPECT_EQ(target.cache.load(broken.data(), static_cast<double>(broken.size())), Status::invalid_cache)
          << "byte " << at;
    }
    EXPECT_EQ(target.cache.length(), 0);
  }
}

TEST(kv_cache, R16_another_shape_is_a_mismatch) {
  const Problem whole = causal_problem(10, 12);
  for (Index KvCacheShape::* member :
       {&KvCacheShape::batch, &KvCacheShape::kv_heads, &KvCacheShape::head_dim, &KvCacheShape::value_dim}) {
    KvCacheShape shape = cache_shape(whole.shape, 10);
    shape.*member += 1;
    OwnedCache owned(shape);
    const Step step(whole, owned.cache, 0, 10);
    EXPECT_EQ(step.forward(), Status::cache_mismatch);
    for (const float value : step.output) ASSERT_TRUE(same_bits(value, untouched));
  }
}

}  // namespace
}  // namespace lookback::test
