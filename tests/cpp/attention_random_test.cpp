#include "problem.hpp"

namespace lookback::test {
namespace {

TEST(attention_random, R8_R10_R12_R14_R22_hold_for_any_shape_mask_and_option) {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const Problem problem = random_problem(random);
    ASSERT_TRUE(keeps_every_rule(problem, random)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace lookback::test
