#include "lookback/sampling.hpp"

#include "support.hpp"

namespace lookback::test {
namespace {

/// A sampler of one row over `logits`.
class Drawer {
public:
  Drawer(SamplerOptions options, std::vector<float> logits, std::uint64_t seed)
      : logits_(std::move(logits)), memory_(Sampler::bytes(sized(options, logits_))), sampler_(memory_.data()) {
    EXPECT_EQ(Sampler::create(sized(options, logits_), memory_.data()), Status::ok);
    sampler_.restart(0, seed);
  }

  std::int32_t operator()() { return sampler_.sample(0, logits_.data()); }
  Sampler& sampler() { return sampler_; }

private:
  static SamplerOptions sized(SamplerOptions options, const std::vector<float>& logits) {
    options.vocab_size = static_cast<std::int32_t>(logits.size());
    return options;
  }

  std::vector<float> logits_;
  Scratch memory_;
  Sampler sampler_;
};

/// What may be drawn, by the filters as they are defined, in float64.
std::vector<double> filtered(const std::vector<float>& logits, const SamplerOptions& options) {
  std::vector<std::pair<double, std::size_t>> ranked;
  double total = 0;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    ranked.emplace_back(std::exp(static_cast<double>(logits[id]) / options.temperature), id);
  }
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  });
  if (options.top_k > 0) ranked.resize(std::min(ranked.size(), static_cast<std::size_t>(options.top_k)));
  for (const auto& [weight, id] : ranked) total += weight;
  double reached = 0;
  std::size_t kept = 0;
  while (kept < ranked.size() && (kept == 0 || options.top_p == 1.0F || reached < options.top_p * total)) {
    reached += ranked[kept++].first;
  }
  ranked.resize(kept);
  std::vector<double> result(logits.size(), 0.0);
  double left = 0;
  for (const auto& [weight, id] : ranked) {
    if (weight < static_cast<double>(options.min_p) * ranked.front().first) continue;
    result[id] = weight;
    left += weight;
  }
  for (double& p : result) p /= left;
  return result;
}

TEST(sampling, draws_follow_the_filtered_distribution_at_every_vocabulary_size) {
  Random random(1);
  for (const Index vocabulary : {1, 2, 3, 4, 5, 7, 8, 9, 31, 257}) {
    for (int variant = 0; variant < 8; ++variant) {
      SamplerOptions options;
      options.temperature = variant == 0 ? 1.0F : 0.7F;
      if ((variant & 1) != 0) options.top_k = 5;
      if ((variant & 2) != 0) options.top_p = 0.83F;
      if ((variant & 4) != 0) options.min_p = 0.11F;
      const std::vector<float> logits = random.vector(vocabulary, 3.0F);
      const std::vector<double> expected = filtered(logits, options);
      Drawer draw(options, logits, static_cast<std::uint64_t>(variant));
      constexpr int times = 2000;
      std::vector<int> counts(static_cast<std::size_t>(vocabulary));
      for (int n = 0; n < times; ++n) ++counts[static_cast<std::size_t>(draw())];
      for (std::size_t id = 0; id < counts.size(); ++id) {
        const double p = expected[id];
        const double spread =
            5 * std::sqrt(p * (1 - p) / times) + (p == 0 ? 0 : 4.0 / times);  // rare ones come in lumps
        ASSERT_NEAR(counts[id] / static_cast<double>(times), p, spread) << vocabulary << ", variant " << variant;
        if (p == 0) ASSERT_EQ(counts[id], 0);
      }
    }
  }
}

TEST(sampling, R15_the_nth_draw_depends_on_seed_and_n_only) {
  Random random(2);
  const std::vector<float> logits = random.vector(100, 1.0F);
  std::vector<std::int32_t> first;
  Drawer draw({}, logits, 42);
  for (int n = 0; n < 20; ++n) first.push_back(draw());
  draw.sampler().restart(0, 42);
  for (int n = 0; n < 20; ++n) ASSERT_EQ(draw(), first[static_cast<std::size_t>(n)]);
  Drawer other({}, logits, 43);
  int equal = 0;
  for (int n = 0; n < 20; ++n) equal += other() == first[static_cast<std::size_t>(n)] ? 1 : 0;
  EXPECT_LT(equal, 8);
}

std::uint64_t scrambled(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

TEST(sampling, R15_of_equal_logits_the_upper_bits_of_splitmix64_choose_on_every_machine) {
  Drawer draw({}, std::vector<float>(256, 1.5F), 0x123456789abcdefU);
  constexpr std::uint64_t step = 0x9e3779b97f4a7c15U;
  for (std::uint64_t n = 1; n <= 500; ++n) {
    const std::uint64_t bits = scrambled(scrambled(0x123456789abcdefU + step) + n * step);
    ASSERT_EQ(draw(), static_cast<std::int32_t>(bits >> 56)) << n;
  }
}

TEST(sampling, NaN_and_minus_infinity_are_never_drawn_and_infinity_always) {
  for (const float temperature : {0.0F, 1.0F}) {
    SamplerOptions options;
    options.temperature = temperature;
    Drawer some(options, {not_a_number, -infinity, 1.0F, not_a_number}, 1);
    for (int n = 0; n < 50; ++n) ASSERT_EQ(some(), 2);
    Drawer none(options, {not_a_number, -infinity}, 1);
    EXPECT_EQ(none(), -1);
    Drawer all(options, {1.0F, infinity, 3.0F}, 1);
    for (int n = 0; n < 50; ++n) ASSERT_EQ(all(), 1);
  }
}

TEST(sampling, the_report_has_as_many_candidates_as_there_are) {
  SamplerOptions options;
  options.temperature = 0.0F;
  options.candidates = 4;
  Drawer draw(options, {0.0F, std::log(3.0F)}, 1);
  EXPECT_EQ(draw(), 1);
  const std::int32_t ids[] = {1, 0, -1, -1};
  const float probabilities[] = {0.75F, 0.25F, 0.0F, 0.0F};
  for (int n = 0; n < 4; ++n) {
    EXPECT_EQ(draw.sampler().candidate_ids(0)[n], ids[n]);
    EXPECT_NEAR(draw.sampler().candidate_probabilities(0)[n], probabilities[n], 1e-6);
  }
  EXPECT_NEAR(draw.sampler().entropy(0), -0.75 * std::log(0.75) - 0.25 * std::log(0.25), 1e-6);
}

TEST(sampling, refuses_options_outside_of_their_range_and_tokens_outside_of_the_vocabulary) {
  const auto status = [](auto change) {
    SamplerOptions options;
    options.vocab_size = 4;
    change(options);
    Scratch memory(Sampler::bytes(options));
    return Sampler::create(options, memory.data());
  };
  EXPECT_EQ(status([](auto&) {}), Status::ok);
  EXPECT_EQ(status([](auto& o) { o.temperature = -1.0F; }), Status::invalid_argument);
  EXPECT_EQ(status([](auto& o) { o.temperature = infinity; }), Status::invalid_argument);
  EXPECT_EQ(status([](auto& o) { o.top_p = 0.0F; }), Status::invalid_argument);
  EXPECT_EQ(status([](auto& o) { o.top_p = 1.5F; }), Status::invalid_argument);
  EXPECT_EQ(status([](auto& o) { o.min_p = -0.1F; }), Status::invalid_argument);
  EXPECT_EQ(status([](auto& o) { o.top_k = -1; }), Status::invalid_argument);
  EXPECT_EQ(status([](auto& o) { o.repetition_penalty = 0.0F; }), Status::invalid_argument);
  EXPECT_EQ(status([](auto& o) { o.vocab_size = 0; }), Status::invalid_shape);
  Drawer draw({}, {1.0F, 2.0F}, 1);
  const std::int32_t tokens[] = {0, 2};
  EXPECT_EQ(draw.sampler().observe(0, tokens, 2), Status::token_out_of_range);
  EXPECT_EQ(draw.sampler().observe(1, tokens, 1), Status::invalid_range);
  EXPECT_EQ(draw.sampler().observe(0, nullptr, 1), Status::null_pointer);
}

}  // namespace
}  // namespace lookback::test
