#include "lookback/decoder.hpp"

#include "decoder_models.hpp"
#include "lookback/parallel.hpp"
#include "lookback/sampling.hpp"
#include "packed_weight.hpp"

namespace lookback::test {
namespace {

class Session {
public:
  Session(Model& model, const DecoderSessionShape& shape)
      : memory_(DecoderSession::bytes(model.config(), shape)), session_(memory_.data()), model_(model) {
    EXPECT_EQ(DecoderSession::create(model.config(), shape, memory_.data()), Status::ok);
  }

  /// All logits of one sequence's next tokens.
  std::vector<float> forward(const std::vector<std::int32_t>& tokens) {
    std::vector<float> logits(tokens.size() * static_cast<std::size_t>(model_.config().vocab_size), untouched);
    DecoderCall call;
    call.tokens = tokens.data();
    call.length = static_cast<Index>(tokens.size());
    call.logits_of = LogitsOf::all;
    call.logits = logits.data();
    EXPECT_EQ(decoder_forward(model_.decoder(), session_, call), Status::ok);
    return logits;
  }

  DecoderSession& session() { return session_; }

private:
  Scratch memory_;
  DecoderSession session_;
  Model& model_;
};

TEST(decoder, each_family_gives_the_logits_weights_and_readings_of_the_reference) {
  for (const DecoderConfig& config : {llama(), gpt2(), gemma()}) {
    for (const Index length : {1, 2, 8, 9, 17}) {
      Model model(config, 1);
      const std::vector<std::int32_t> tokens = tokens_of(2, length);
      const reference::DecoderResult expected = reference::decoder(config, model.tensors(), tokens);
      Session session(model, {1, 20, 17});
      std::vector<float> logits(static_cast<std::size_t>(length * config.vocab_size), untouched);
      std::vector<float> weights(static_cast<std::size_t>(2 * 2 * length * length), untouched);
      std::vector<float> lens(2 * logits.size(), untouched);
      const std::int32_t layers[] = {0, 2};
      const std::int32_t heads[] = {5, 1};
      const DecoderCall call{tokens.data(), length, nullptr, nullptr, LogitsOf::all, logits.data(), weights.data(),
                             layers,        2,      heads,   2,       lens.data(),   layers,        2};
      ASSERT_EQ(decoder_forward(model.decoder(), session.session(), call), Status::ok);
      EXPECT_TRUE(all_near(logits, expected.logits, 2e-5 * largest(expected.logits)));
      const float* last = session.session().step_logits();
      EXPECT_TRUE(all_same_bits({last, last + config.vocab_size}, {logits.end() - config.vocab_size, logits.end()}));
      std::vector<double> shown, read;
      for (const std::int32_t layer : layers) {
        for (const std::int32_t head : heads) {
          const auto from = expected.weights[static_cast<std::size_t>(layer)].begin() + head * length * length;
          shown.insert(shown.end(), from, from + length * length);
        }
        const std::vector<double>& own = expected.lens[static_cast<std::size_t>(layer)];
        read.insert(read.end(), own.begin(), own.end());
      }
      EXPECT_TRUE(all_near(weights, shown, 2e-5));
      EXPECT_TRUE(all_near(lens, read, 2e-5 * largest(read)));
    }
  }
}

TEST(decoder, R16_steps_and_chunks_give_the_logits_of_one_pass_with_each_kind_of_cache) {
  for (const DecoderConfig& config : {llama(), gpt2(), gemma()}) {
    Model model(config, 3);
    const std::vector<std::int32_t> tokens = tokens_of(4, 19);
    const std::vector<double> expected = reference::decoder(config, model.tensors(), tokens).logits;
    for (const bool rolling : {false, true}) {
      for (const CacheType type : {CacheType::float32, CacheType::int8}) {
        for (const Index chunk : {1, 3, 10}) {
          Session session(model, {1, 20, static_cast<std::int32_t>(chunk), type, rolling});
          std::vector<float> found;
          for (std::size_t from = 0; from < tokens.size(); from += static_cast<std::size_t>(chunk)) {
            const std::size_t to = std::min(tokens.size(), from + static_cast<std::size_t>(chunk));
            const std::vector<float> part =
                session.forward({tokens.begin() + static_cast<Index>(from), tokens.begin() + static_cast<Index>(to)});
            found.insert(found.end(), part.begin(), part.end());
          }
          const double bound = type == CacheType::int8 ? 0.05 : 2e-5;
          EXPECT_TRUE(all_near(found, expected, bound * largest(expected)))
              << "chunk " << chunk << (rolling ? ", rolling" : "") << (type == CacheType::int8 ? ", int8" : "");
        }
      }
    }
  }
}

TEST(decoder, a_model_of_windows_goes_on_beyond_its_capacity_if_it_rolls) {
  DecoderConfig config = llama();
  config.window = 4;
  Model model(config, 5);
  const std::vector<std::int32_t> tokens = tokens_of(6, 30);
  const std::vector<double> expected = reference::decoder(config, model.tensors(), tokens).logits;
  Session session(model, {1, 6, 5, CacheType::float32, true});
  std::vector<float> found;
  for (std::size_t from = 0; from < tokens.size(); from += 5) {
    const std::vector<float> part =
        session.forward({tokens.begin() + static_cast<Index>(from), tokens.begin() + static_cast<Index>(from) + 5});
    found.insert(found.end(), part.begin(), part.end());
  }
  EXPECT_TRUE(all_near(found, expected, 2e-5 * largest(expected)));
  EXPECT_EQ(session.session().truncate(20), Status::evicted);
}

TEST(decoder, truncated_it_goes_on_as_if_the_rest_had_not_been) {
  Model model(llama(), 7);
  const std::vector<std::int32_t> tokens = tokens_of(8, 12);
  Session whole(model, {1, 12, 12});
  Session cut(model, {1, 12, 12});
  static_cast<void>(whole.forward({tokens.begin(), tokens.begin() + 5}));
  static_cast<void>(cut.forward({tokens.begin(), tokens.begin() + 5}));
  static_cast<void>(cut.forward({tokens.begin() + 2, tokens.begin() + 9}));
  ASSERT_EQ(cut.session().truncate(5), Status::ok);
  const std::vector<std::int32_t> rest(tokens.begin() + 5, tokens.end());
  EXPECT_TRUE(all_same_bits(cut.forward(rest), whole.forward(rest)));
  cut.session().reset();
  whole.session().reset();
  EXPECT_TRUE(all_same_bits(cut.forward(rest), whole.forward(rest)));
}

TEST(decoder, rows_of_a_batch_may_be_shorter_and_R15_have_the_bits_they_have_alone) {
  Model model(gpt2(), 9);
  Session batch(model, {3, 12, 4});
  const std::int32_t lengths[] = {4, 2, 3};
  const std::vector<std::int32_t> tokens = tokens_of(10, 12);
  DecoderCall call;
  call.tokens = tokens.data();
  call.length = 4;
  call.token_lengths = lengths;
  ASSERT_EQ(decoder_forward(model.decoder(), batch.session(), call), Status::ok);
  for (Index row = 0; row < 3; ++row) {
    Session alone(model, {3, 12, 4});
    std::vector<std::int32_t> same;
    for (Index copy = 0; copy < 3; ++copy)
      same.insert(same.end(), tokens.begin() + row * 4, tokens.begin() + row * 4 + 4);
    const std::int32_t own[] = {lengths[row], lengths[row], lengths[row]};
    DecoderCall single = call;
    single.tokens = same.data();
    single.token_lengths = own;
    ASSERT_EQ(decoder_forward(model.decoder(), alone.session(), single), Status::ok);
    const Index width = model.config().vocab_size;
    const float* expected = alone.session().step_logits();
    const float* found = batch.session().step_logits() + row * width;
    EXPECT_TRUE(all_same_bits({found, found + width}, {expected, expected + width}));
    const std::vector<double> exact =
        reference::decoder(model.config(), model.tensors(),
                           {tokens.begin() + row * 4, tokens.begin() + row * 4 + lengths[row]})
            .logits;
    EXPECT_TRUE(all_near({found, found + width}, {exact.end() - width, exact.end()}, 2e-5 * largest(exact)));
    EXPECT_EQ(batch.session().cache(0).lengths()[row], lengths[row]);
  }
}

TEST(decoder, each_format_of_weights_calculates_with_what_it_stores) {
  for (const LinearFormat format : all_formats()) {
    for (const bool transposed : {false, true}) {
      DecoderConfig config = llama();
      config.format = format;
      config.tied_head = true;
      Model model(config, 11, format.type == WeightType::int8 ? format.group : 5, transposed);
      reference::DecoderTensors stored = model.tensors();
      for (auto& [key, values] : stored) {
        const SlotShape shape = decoder_slot(config, key.first);
        if (shape.columns == 1) continue;
        values = PackedWeight(values, shape.columns, shape.rows, format).stored();
      }
      const std::vector<std::int32_t> tokens = tokens_of(12, 11);
      const std::vector<double> expected = reference::decoder(config, stored, tokens).logits;
      Session session(model, {1, 11, 11});
      const double bound = format.type == WeightType::int8 ? 2e-3 : 2e-5;  // inputs are rounded to 16 bits
      EXPECT_TRUE(all_near(session.forward(tokens), expected, bound * largest(expected))) << name_of(format);
    }
  }
}

TEST(decoder, a_step_draws_what_a_pass_and_a_draw_give) {
  Model model(llama(), 13);
  Session one(model, {2, 20, 3});
  Session other(model, {2, 20, 3});
  SamplerOptions options;
  options.batch = 2;
  options.vocab_size = 37;
  options.top_k = 10;
  Scratch memory(Sampler::bytes(options));
  Scratch second(Sampler::bytes(options));
  ASSERT_EQ(Sampler::create(options, memory.data()), Status::ok);
  ASSERT_EQ(Sampler::create(options, second.data()), Status::ok);
  Sampler sampler(memory.data());
  Sampler drawer(second.data());
  one.session().step_tokens()[0] = other.session().step_tokens()[0] = 3;
  one.session().step_tokens()[1] = other.session().step_tokens()[1] = 4;
  for (int step = 0; step < 15; ++step) {
    ASSERT_EQ(decoder_step(model.decoder(), one.session(), sampler), Status::ok);
    DecoderCall call;
    call.tokens = other.session().step_tokens();
    call.length = 1;
    ASSERT_EQ(decoder_forward(model.decoder(), other.session(), call), Status::ok);
    ASSERT_EQ(decoder_sample(other.session(), drawer), Status::ok);
    for (int row = 0; row < 2; ++row) {
      ASSERT_EQ(one.session().step_tokens()[row], other.session().step_tokens()[row]) << step;
    }
  }
}

TEST(decoder, refuses_before_anything_is_changed) {
  Model model(gpt2(), 15);
  Session session(model, {2, 10, 4});
  const std::int32_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8};
  DecoderCall call;
  call.tokens = tokens;
  call.length = 4;
  ASSERT_EQ(decoder_forward(model.decoder(), session.session(), call), Status::ok);
  const auto status = [&](auto change) {
    DecoderCall other = call;
    change(other);
    return decoder_forward(model.decoder(), session.session(), other);
  };
  const std::int32_t outside[] = {1, 2, 3, 37, 5, 6, 7, 8};
  const std::int32_t negative[] = {1, 2, 3, 4, -1, 6, 7, 8};
  const std::int32_t unordered[] = {1, 0};
  const std::int32_t absent[] = {3};
  const std::int32_t lengths[] = {5, 1};
  const std::uint8_t late_padding[] = {0, 1, 1, 1, 1, 1, 1, 1};
  float numbers[4096];
  EXPECT_EQ(status([&](auto& c) { c.tokens = outside; }), Status::token_out_of_range);
  EXPECT_EQ(status([&](auto& c) { c.tokens = negative; }), Status::token_out_of_range);
  EXPECT_EQ(status([&](auto& c) { c.tokens = nullptr; }), Status::null_pointer);
  EXPECT_EQ(status([&](auto& c) { c.length = 5; }), Status::invalid_shape);
  EXPECT_EQ(status([&](auto& c) { c.token_lengths = lengths; }), Status::invalid_range);
  EXPECT_EQ(status([&](auto& c) { c.token_mask = late_padding; }), Status::invalid_argument);
  EXPECT_EQ(status([&](auto& c) { c.logits_of = LogitsOf::all; }), Status::null_pointer);
  for (const auto& [layers, count] : {std::pair(unordered, 2), std::pair(absent, 1)}) {
    EXPECT_EQ(status([&, l = layers, n = count](auto& c) {
                c.weights = numbers, c.weight_layers = l, c.weight_layer_count = n;
              }),
              Status::invalid_range);
    EXPECT_EQ(
        status([&, l = layers, n = count](auto& c) { c.lens = numbers, c.lens_layers = l, c.lens_layer_count = n; }),
        Status::invalid_range);
  }
  ASSERT_EQ(decoder_forward(model.decoder(), session.session(), call), Status::ok);
  EXPECT_EQ(status([](auto& c) { c.length = 3; }), Status::cache_full);
  EXPECT_EQ(session.session().cache(0).length(), 8);
  EXPECT_EQ(session.session().cache(2).length(), 8);
  DecoderConfig shorter = gpt2();
  shorter.context_length = 6;
  Model small(shorter, 15);
  Session inside(small, {2, 10, 4});
  ASSERT_EQ(decoder_forward(small.decoder(), inside.session(), call), Status::ok);
  EXPECT_EQ(decoder_forward(small.decoder(), inside.session(), call), Status::context_exceeded);
}

TEST(decoder, more_threads_than_a_session_was_made_for_are_refused_before_anything_is_changed) {
  Model model(gpt2(), 16);
  Session session(model, {1, 10, 4});
  const std::int32_t tokens[] = {1, 2, 3, 4};
  DecoderCall call;
  call.tokens = tokens;
  call.length = 4;
  if (set_threads(2) == 1) GTEST_SKIP() << "a build without threads";
  EXPECT_EQ(decoder_forward(model.decoder(), session.session(), call), Status::workspace_too_small);
  EXPECT_EQ(session.session().cache(0).length(), 0);
  set_threads(1);
  EXPECT_EQ(decoder_forward(model.decoder(), session.session(), call), Status::ok);
}

TEST(decoder, a_config_or_piece_that_cannot_be_is_refused) {
  const auto status = [](auto change) {
    DecoderConfig config = llama();
    change(config);
    return validate_decoder(config);
  };
  EXPECT_EQ(status([](auto&) {}), Status::ok);
  EXPECT_EQ(status([](auto& c) { c.layers = 0; }), Status::invalid_shape);
  EXPECT_EQ(status([](auto& c) { c.kv_heads = 4; }), Status::invalid_heads);
  EXPECT_EQ(status([](auto& c) { c.norm_epsilon = -1.0F; }), Status::invalid_argument);
  EXPECT_EQ(status([](auto& c) { c.logit_softcap = not_a_number; }), Status::invalid_argument);
  EXPECT_EQ(status([](auto& c) { c.rotary.dims = 8; }), Status::invalid_shape);
  EXPECT_EQ(status([](auto& c) { c.rotary.scaling = RotaryScaling::yarn; }), Status::invalid_argument);
  EXPECT_EQ(status([](auto& c) { c.format = {WeightType::int8, 17}; }), Status::invalid_argument);
  Model model(llama(), 1);
  std::vector<float> numbers(4096, 1.0F);
  const auto written = [&](const DecoderRows& rows) { return model.decoder().write(rows); };
  const DecoderSlot query = DecoderSlot::query_weight;
  EXPECT_EQ(written({query, 3, 0, 1, numbers.data(), WeightType::f32, 20}), Status::invalid_range);
  EXPECT_EQ(written({query, 0, 36, 1, numbers.data(), WeightType::f32, 20}), Status::invalid_range);
  EXPECT_EQ(written({query, 0, 0, 1, numbers.data(), WeightType::f32, 19}), Status::invalid_range);
  EXPECT_EQ(written({query, 0, 0, 1, numbers.data(), WeightType::int8, 20}), Status::invalid_argument);
  EXPECT_EQ(written({query, 0, 0, 1, nullptr, WeightType::f32, 20}), Status::null_pointer);
  EXPECT_EQ(written({DecoderSlot::query_bias, 0, 0, 1, numbers.data(), WeightType::f32, 1}), Status::invalid_range);
}

}  // namespace
}  // namespace lookback::test
