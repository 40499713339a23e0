// libFuzzer: random shapes, options and masks, tiled against reference. Build with -DLOOKBACK_FUZZ=ON in the
// native-debug preset, run fuzz_attention -max_total_time=180. The bytes are the decisions; numbers come from a seed
// that they contain.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "problem.hpp"

// libFuzzer gives the name.
extern "C" int LLVMFuzzerTestOneInput(  // NOLINT(readability-identifier-naming)
    const std::uint8_t* data, std::size_t size) {
  using namespace lookback::test;
  Random random(data, size);
  const Problem problem = random_problem(random);
  if (const auto kept = keeps_every_rule(problem, random); !kept) {
    std::fprintf(stderr, "%s\n", kept.message());
    std::abort();
  }
  return 0;
}
