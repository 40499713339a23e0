// One thread, for builds without others.

#include "lookback/parallel.hpp"

namespace lookback {

Index set_threads(Index) noexcept { return 1; }

Index thread_count() noexcept { return 1; }

Index running_threads() noexcept { return 1; }

void run_items(Index from, Index to, double, WorkItem item, const void* context) noexcept {
  for (Index index = from; index < to; ++index) item(context, index, 0);
}

}  // namespace lookback
