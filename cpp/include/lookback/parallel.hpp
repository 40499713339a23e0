#pragma once

#include "lookback/views.hpp"

namespace lookback {

inline constexpr Index most_threads = 64;

/// Brings the threads that share the work of every call to `wanted` (1 … most_threads), the calling one included, and returns how many
/// there are: fewer where the system gives no more, 1 in a build without threads. Not while a call runs. The threads sleep between
/// calls. No result depends on their number: they only choose who computes what. A workspace is for as many as there were when its size was
/// asked for, and so are sessions and trainers from their creation on: with more, their calls are refused (workspace_too_small).
Index set_threads(Index wanted) noexcept;

[[nodiscard]] Index thread_count() noexcept;

/// How many of them run by now: a thread may take a while to begin. Calls do not wait for it.
[[nodiscard]] Index running_threads() noexcept;

/// One item of work. `thread` is below thread_count(), and no two items run at once with the same one: it chooses scratch memory.
using WorkItem = void (*)(const void* context, Index item, Index thread) noexcept;

/// Runs the items [from, to), each exactly once, and returns when all are done. Every thread begins with a share of neighbouring items
/// and then helps the others. `cost` counts the multiply-adds of all items: few are not worth waking a thread for. If another call is
/// being shared already (an item of it may call this), the calling thread does all the work, as thread 0.
void run_items(Index from, Index to, double cost, WorkItem item, const void* context) noexcept;

/// The same with a body (Index item, Index thread) noexcept.
template <typename Body>
void parallel_for(Index from, Index to, double cost, const Body& body) noexcept {
  const auto item = [](const void* context, Index index, Index thread) noexcept {
    (*static_cast<const Body*>(context))(index, thread);
  };
  run_items(from, to, cost, item, &body);
}

}  // namespace lookback
