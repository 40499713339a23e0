// Refusals, the workspace, and that a refused call has written nothing.

#include <algorithm>
#include <functional>
#include <string_view>

#include "problem.hpp"

namespace lookback::test {
namespace {

AttentionShape small_shape() {
  AttentionShape shape;
  shape.batch = 2;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.query_length = 5;
  shape.key_length = 7;
  shape.head_dim = 3;
  shape.value_dim = 2;
  return shape;
}

/// A valid call whose outputs are watched.
struct Watched {
  Problem problem = Problem::random(small_shape(), 1);
  AttentionCall call = problem.call();
  std::vector<float> output = std::vector<float>(2 * 4 * 5 * 2, untouched);
  std::vector<float> log_sum_exp = std::vector<float>(2 * 4 * 5, untouched);
  std::vector<float> weights = std::vector<float>(2 * 4 * 5 * 7, untouched);
  std::vector<std::int32_t> heads = {0, 1, 2, 3};

  Watched() {
    call.outputs.output = {output.data(), 4 * 5 * 2, 5 * 2, 2};
    call.outputs.log_sum_exp = log_sum_exp.data();
    call.outputs.weights.data = weights.data();
    call.outputs.weights.heads = heads.data();
    call.outputs.weights.head_count = 4;
    call.outputs.weights.query_to = 5;
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  [[nodiscard]] Status forward() const {
    const Scratch scratch(1 << 20);
    return attention_forward(call, scratch.data(), scratch.bytes());
  }

  [[nodiscard]] bool nothing_is_written() const {
    const auto is_untouched = [](float value) { return same_bits(value, untouched); };
    return std::all_of(output.begin(), output.end(), is_untouched) &&
           std::all_of(log_sum_exp.begin(), log_sum_exp.end(), is_untouched) &&
           std::all_of(weights.begin(), weights.end(), is_untouched);
  }
};

void expect_refusal(Status expected, const std::function<void(Watched&)>& spoil) {
  Watched watched;
  spoil(watched);
  EXPECT_EQ(validate_attention(watched.call), expected);
  EXPECT_EQ(watched.forward(), expected);
  EXPECT_TRUE(watched.nothing_is_written());
}

TEST(attention_status, a_valid_call_is_ok_and_writes_everything) {
  Watched watched;
  EXPECT_EQ(validate_attention(watched.call), Status::ok);
  EXPECT_EQ(watched.forward(), Status::ok);
  for (const auto* values : {&watched.output, &watched.log_sum_exp, &watched.weights}) {
    for (const float value : *values) EXPECT_TRUE(std::isfinite(value) && value != untouched);
  }
}

TEST(attention_status, dimensions_below_their_least_are_invalid_shapes) {
  for (Index AttentionShape::* dimension : {&AttentionShape::batch, &AttentionShape::heads, &AttentionShape::kv_heads,
                                            &AttentionShape::head_dim, &AttentionShape::value_dim}) {
    for (const Index extent : {0, -1}) {
      expect_refusal(Status::invalid_shape, [=](Watched& watched) { watched.call.shape.*dimension = extent; });
    }
  }
  for (Index AttentionShape::* length : {&AttentionShape::query_length, &AttentionShape::key_length}) {
    for (const Index extent : {Index{-1}, Index{unlimited}}) {
      expect_refusal(Status::invalid_shape, [=](Watched& watched) { watched.call.shape.*length = extent; });
    }
  }
}

TEST(attention_status, R11_heads_that_are_no_multiple_of_kv_heads_are_invalid) {
  expect_refusal(Status::invalid_heads, [](Watched& watched) { watched.call.shape.kv_heads = 3; });
  expect_refusal(Status::invalid_heads, [](Watched& watched) { watched.call.shape.kv_heads = 8; });
}

TEST(attention_status, R2_scale_and_softcap_must_be_finite_and_the_cap_not_negative) {
  for (const float value : {not_a_number, infinity, -infinity}) {
    expect_refusal(Status::invalid_argument, [=](Watched& watched) { watched.call.scores.scale = value; });
    expect_refusal(Status::invalid_argument, [=](Watched& watched) { watched.call.scores.softcap = value; });
  }
  expect_refusal(Status::invalid_argument, [](Watched& watched) { watched.call.scores.softcap = -1.0F; });
}

TEST(attention_status, absent_operands_are_null_pointers) {
  expect_refusal(Status::null_pointer, [](Watched& watched) { watched.call.inputs.queries.data = nullptr; });
  expect_refusal(Status::null_pointer, [](Watched& watched) { watched.call.inputs.keys.data = nullptr; });
  expect_refusal(Status::null_pointer, [](Watched& watched) { watched.call.inputs.values.data = nullptr; });
  expect_refusal(Status::null_pointer, [](Watched& watched) { watched.call.outputs.output.data = nullptr; });
}

TEST(attention_status, R21_operands_without_elements_may_be_absent) {
  Watched no_keys;
  no_keys.call.shape.key_length = 0;
  no_keys.call.inputs.keys.data = nullptr;
  no_keys.call.inputs.values.data = nullptr;
  EXPECT_EQ(no_keys.forward(), Status::ok);
  Watched no_queries;
  no_queries.call.shape.query_length = 0;
  no_queries.call.inputs.queries.data = nullptr;
  no_queries.call.outputs.output.data = nullptr;
  no_queries.call.outputs.weights.query_to = 0;
  EXPECT_EQ(no_queries.forward(), Status::ok);
  EXPECT_TRUE(no_queries.nothing_is_written());
}

TEST(attention_status, R12_heads_and_rows_outside_of_the_result_are_invalid_ranges) {
  const auto expect_range = [](const std::function<void(Watched&)>& spoil) {
    expect_refusal(Status::invalid_range, spoil);
  };
  expect_range([](Watched& watched) { watched.heads[2] = 4; });
  expect_range([](Watched& watched) { watched.heads[0] = -1; });
  expect_range([](Watched& watched) { watched.call.outputs.weights.query_from = -1; });
  expect_range([](Watched& watched) { watched.call.outputs.weights.query_to = 6; });
  expect_range([](Watched& watched) { watched.call.outputs.weights.query_from = 6; });
  expect_range([](Watched& watched) {
    watched.call.outputs.weights.query_from = 3;
    watched.call.outputs.weights.query_to = 2;
  });
  expect_range([](Watched& watched) {
    watched.call.outputs.weights.heads = nullptr;
    watched.call.outputs.weights.head_count = 3;
  });
}

TEST(attention_status, a_workspace_one_byte_too_small_or_absent_is_refused) {
  Watched watched;
  const Scratch scratch(attention_workspace_bytes(watched.call));
  EXPECT_EQ(attention_forward(watched.call, scratch.data(), scratch.bytes() - 1), Status::workspace_too_small);
  EXPECT_EQ(attention_forward(watched.call, nullptr, scratch.bytes()), Status::workspace_too_small);
  EXPECT_EQ(attention_forward(watched.call, scratch.data(), 0), Status::workspace_too_small);
  EXPECT_TRUE(watched.nothing_is_written());
  EXPECT_EQ(attention_forward(watched.call, scratch.data(), scratch.bytes()), Status::ok);
}

TEST(attention_status, no_byte_outside_of_the_planned_workspace_is_written) {
  Random random(2);
  for (int trial = 0; trial < 40; ++trial) {
    const Problem problem = random_problem(random);
    AttentionCall call = problem.call();
    std::vector<float> output(static_cast<std::size_t>(problem.rows() * problem.shape.value_dim));
    call.outputs.output = {output.data(), problem.shape.heads * problem.shape.query_length * problem.shape.value_dim,
                           problem.shape.query_length * problem.shape.value_dim, problem.shape.value_dim};
    if (output.empty()) call.outputs.output.data = nullptr;
    const auto bytes = static_cast<std::size_t>(attention_workspace_bytes(call));
    const Scratch scratch(static_cast<double>(bytes + 256));
    auto* memory = static_cast<unsigned char*>(scratch.data());
    std::memset(memory, 0xa5, bytes + 256);
    ASSERT_EQ(attention_forward(call, memory + 64, bytes), Status::ok);
    for (std::size_t at = 0; at < 64; ++at) ASSERT_EQ(memory[at], 0xa5) << "before";
    for (std::size_t at = 64 + bytes; at < bytes + 256; ++at) ASSERT_EQ(memory[at], 0xa5) << "behind";
  }
}

TEST(attention_status, R23_the_workspace_grows_with_keys_times_width_and_not_with_queries_times_keys) {
  Watched watched;
  watched.call.outputs.weights = {};
  watched.call.shape.key_length = 1 << 20;
  watched.call.shape.query_length = kernels::tile_queries;
  const double one_tile = attention_workspace_bytes(watched.call);
  watched.call.shape.query_length = 1 << 20;
  EXPECT_EQ(attention_workspace_bytes(watched.call), one_tile);
  EXPECT_LT(one_tile, static_cast<double>(2 * kernels::panel_width * (1 << 20)) * sizeof(float));
  watched.call.shape.query_length = 1;
  EXPECT_LT(attention_workspace_bytes(watched.call), one_tile / 10) << "a single query reads values where they lie";
}

TEST(attention_status, R23_sizes_beyond_the_address_space_are_numbers) {
  Watched watched;
  watched.call.shape.query_length = kernels::tile_queries;
  watched.call.shape.key_length = unlimited - 1;
  EXPECT_GT(attention_workspace_bytes(watched.call), 0x1p33);
  watched.call.shape.key_length = 1;
  watched.call.shape.value_dim = 1 << 30;
  EXPECT_GT(attention_workspace_bytes(watched.call), 0x1p32 * static_cast<double>(kernels::tile_queries));
  EXPECT_EQ(watched.forward(), Status::workspace_too_small);
  watched.call.shape.value_dim = 2;
  watched.call.shape.head_dim = 1 << 30;
  EXPECT_GT(attention_workspace_bytes(watched.call), 0x1p32 * static_cast<double>(kernels::tile_queries) * 0.999);
}

TEST(attention_status, every_status_has_a_sentence_of_its_own) {
  std::vector<std::string> sentences;
  for (int code = 0; std::string_view(status_message(static_cast<Status>(code))) != "unknown status"; ++code) {
    sentences.emplace_back(status_message(static_cast<Status>(code)));
  }
  EXPECT_GT(sentences.size(), static_cast<std::size_t>(Status::workspace_too_small));
  for (std::size_t a = 0; a < sentences.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(sentences[a], sentences[b]);
  }
}

}  // namespace
}  // namespace lookback::test
