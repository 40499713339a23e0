// The threads, and how they share items. pthreads, because std::thread reports failure by an exception.

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "lookback/parallel.hpp"

namespace lookback {
namespace {

/// Below this a thread is not worth waking: about 20 µs of work.
constexpr double least_cost_per_thread = 500000;
/// Looks at a counter before a thread goes to sleep: some 20 µs, in which the next step of a layer begins.
constexpr int spins = 10000;
/// Looks of the caller at unfinished items before it offers its processor: the others may wait for it.
constexpr int patience = 2000;

/// A thread's share of the items; others take from it, too, when theirs are done.
struct alignas(64) Share {
  std::atomic<Index> next{0};
  Index end = 0;
};

/// Who may take part in the running call: whether it is open, how many threads it is for, how many are inside. One number, so that a
/// thread that wakes up late never enters a call that is over.
class Gate {
public:
  void open(Index threads) noexcept {
    state_.store(open_bit | static_cast<std::uint32_t>(threads) << threads_shift, std::memory_order_release);
  }
  void close() noexcept { state_.fetch_and(~open_bit, std::memory_order_acq_rel); }
  [[nodiscard]] bool is_empty() const noexcept { return (state_.load(std::memory_order_acquire) & inside_mask) == 0; }
  /// Whether thread `index` takes part; then leave() is due. `threads` is how many the call is for.
  [[nodiscard]] bool enter(Index index, Index& threads) noexcept {
    std::uint32_t seen = state_.load(std::memory_order_relaxed);
    do {
      threads = (seen >> threads_shift) & inside_mask;
      if ((seen & open_bit) == 0 || index >= threads) return false;
    } while (!state_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed));
    return true;
  }
  void leave() noexcept { state_.fetch_sub(1, std::memory_order_release); }

private:
  static constexpr std::uint32_t open_bit = 1U << 31;
  static constexpr std::uint32_t threads_shift = 8;
  static constexpr std::uint32_t inside_mask = 0xff;
  std::atomic<std::uint32_t> state_{0};
};

struct Pool {
  std::atomic<bool> is_busy{false};
  Gate gate;
  // Of the running call; written before the gate opens.
  WorkItem item = nullptr;
  const void* context = nullptr;
  Share shares[most_threads];

  std::atomic<std::uint32_t> calls{0};  ///< counts them: a change is the news of one
  std::atomic<bool> is_over{false};
  std::atomic<int> sleepers{0};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t news = PTHREAD_COND_INITIALIZER;

  std::atomic<Index> running{0};
  Index count = 1;
  pthread_t threads[most_threads];
};

Pool pool;

void work_off(Share& share, Index thread) noexcept {
  for (;;) {
    const Index item = share.next.fetch_add(1, std::memory_order_relaxed);
    if (item >= share.end) return;
    pool.item(pool.context, item, thread);
  }
}

/// The own share first, then what the others have left.
void take_part(Index thread, Index threads) noexcept {
  for (Index other = 0; other < threads; ++other) work_off(pool.shares[(thread + other) % threads], thread);
}

/// Spins a little, then sleeps, until there is news after call `seen`; returns the number of the newest call.
std::uint32_t wait_for_news(std::uint32_t seen) noexcept {
  for (int spin = 0; spin < spins; ++spin) {
    if (pool.calls.load(std::memory_order_acquire) != seen) return pool.calls.load(std::memory_order_acquire);
  }
  pthread_mutex_lock(&pool.mutex);
  pool.sleepers.fetch_add(1);
  while (pool.calls.load() == seen) pthread_cond_wait(&pool.news, &pool.mutex);
  pool.sleepers.fetch_sub(1);
  pthread_mutex_unlock(&pool.mutex);
  return pool.calls.load(std::memory_order_acquire);
}

void tell_news() noexcept {
  pool.calls.fetch_add(1);
  if (pool.sleepers.load() == 0) return;  // in one order with wait_for_news: one of the two sees the other
  pthread_mutex_lock(&pool.mutex);
  pthread_cond_broadcast(&pool.news);
  pthread_mutex_unlock(&pool.mutex);
}

void* run_thread(void* argument) noexcept {
  const auto index = static_cast<Index>(reinterpret_cast<std::uintptr_t>(argument));
  std::uint32_t seen = 0;
  pool.running.fetch_add(1, std::memory_order_release);
  while (!pool.is_over.load(std::memory_order_acquire)) {
    Index threads = 0;
    if (pool.gate.enter(index, threads)) {
      take_part(index, threads);
      pool.gate.leave();
    }
    seen = wait_for_news(seen);
  }
  return nullptr;
}

void end_threads() noexcept {
  pool.is_over.store(true, std::memory_order_release);
  tell_news();
  for (Index index = 1; index < pool.count; ++index) pthread_join(pool.threads[index], nullptr);
  pool.is_over.store(false, std::memory_order_release);
  pool.running.store(0, std::memory_order_release);
  pool.count = 1;
}

/// Shares of neighbours: what a thread prepared for one item (the packed values of a head) serves the next.
void divide(Index from, Index to, Index threads) noexcept {
  const Index items = to - from;
  for (Index thread = 0; thread < threads; ++thread) {
    pool.shares[thread].next.store(from + items / threads * thread + std::min(thread, items % threads),
                                   std::memory_order_relaxed);
    pool.shares[thread].end = from + items / threads * (thread + 1) + std::min(thread + 1, items % threads);
  }
}

}  // namespace

Index set_threads(Index wanted) noexcept {
  wanted = std::clamp<Index>(wanted, 1, most_threads);
  if (wanted == pool.count) return wanted;
  if (wanted < pool.count) end_threads();
  for (; pool.count < wanted; ++pool.count) {
    void* index = reinterpret_cast<void*>(static_cast<std::uintptr_t>(pool.count));
    if (pthread_create(pool.threads + pool.count, nullptr, &run_thread, index) != 0) break;
  }
  return pool.count;
}

Index thread_count() noexcept { return pool.count; }

Index running_threads() noexcept { return 1 + pool.running.load(std::memory_order_acquire); }

void run_items(Index from, Index to, double cost, WorkItem item, const void* context) noexcept {
  const double worth = std::clamp(cost / least_cost_per_thread, 1.0, static_cast<double>(most_threads));
  const Index threads = std::min({pool.count, to - from, static_cast<Index>(worth)});
  if (threads <= 1 || pool.is_busy.exchange(true, std::memory_order_acquire)) {
    for (Index index = from; index < to; ++index) item(context, index, 0);
    return;
  }
  pool.item = item;
  pool.context = context;
  divide(from, to, threads);
  pool.gate.open(threads);
  tell_news();
  take_part(0, threads);
  pool.gate.close();
  // Nobody sleeps here: a page's main thread may not, and what is left is at most one item of each thread.
  for (int looks = 0; !pool.gate.is_empty(); ++looks) {
    if (looks >= patience) sched_yield();
  }
  pool.is_busy.store(false, std::memory_order_release);
}

}  // namespace lookback
