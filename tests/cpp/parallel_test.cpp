// How items are shared among threads, apart from what they calculate.

#include "lookback/parallel.hpp"

#include <atomic>
#include <cmath>
#include <thread>

#include "support.hpp"

namespace lookback::test {
namespace {

constexpr double worth_sharing = 1e12;

/// So many threads while it lives.
struct Threads {
  Index count;
  explicit Threads(Index wanted) : count(set_threads(wanted)) {}
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() { set_threads(1); }
};

/// Some work that takes a little while and gives a number.
double churn(Index item) {
  double sum = 0;
  for (int step = 0; step < 200; ++step) sum += std::sin(static_cast<double>(item + step));
  return sum;
}

TEST(parallel, every_item_runs_once_whatever_the_number_of_threads_and_items) {
  for (const Index wanted : {1, 2, 3, 4, 7}) {
    const Threads threads(wanted);
    ASSERT_EQ(thread_count(), threads.count);
    for (const Index items : {0, 1, 2, 3, 5, 64, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(items));
      std::vector<double> results(static_cast<std::size_t>(items));
      parallel_for(10, 10 + items, worth_sharing, [&](Index item, Index) noexcept {
        runs[static_cast<std::size_t>(item - 10)].fetch_add(1);
        results[static_cast<std::size_t>(item - 10)] = churn(item);
      });
      for (Index item = 0; item < items; ++item) {
        ASSERT_EQ(runs[static_cast<std::size_t>(item)].load(), 1) << "item " << item << " of " << items;
        ASSERT_EQ(results[static_cast<std::size_t>(item)], churn(item + 10));
      }
    }
  }
}

TEST(parallel, no_two_items_share_a_thread_number_at_the_same_time) {
  const Threads threads(4);
  std::vector<std::atomic<int>> users(static_cast<std::size_t>(most_threads));
  std::atomic<int> clashes{0};
  for (int call = 0; call < 50; ++call) {
    parallel_for(0, 200, worth_sharing, [&](Index item, Index thread) noexcept {
      if (thread >= threads.count || users[static_cast<std::size_t>(thread)].exchange(1) != 0) ++clashes;
      static_cast<void>(churn(item));
      users[static_cast<std::size_t>(thread)].store(0);
    });
  }
  EXPECT_EQ(clashes.load(), 0);
}

TEST(parallel, a_sleeping_thread_is_woken_and_takes_part) {
  const Threads threads(2);
  if (threads.count == 1) GTEST_SKIP() << "a build without threads";
  for (int call = 0; call < 20; ++call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than a thread spins
    std::atomic<int> waiting{0};
    // Item 0 and item 1 wait for each other: no thread can run both.
    parallel_for(0, 2, worth_sharing, [&](Index, Index) noexcept {
      ++waiting;
      while (waiting.load() < 2) std::this_thread::yield();
    });
    ASSERT_EQ(waiting.load(), 2);
  }
}

TEST(parallel, little_work_wakes_nobody) {
  const Threads threads(4);
  parallel_for(0, 100, 1000.0, [&](Index, Index thread) noexcept { EXPECT_EQ(thread, 0); });
}

TEST(parallel, an_item_may_share_work_itself_and_does_it_alone) {
  const Threads threads(3);
  std::atomic<Index> sum{0};
  parallel_for(0, 20, worth_sharing, [&](Index outer, Index) noexcept {
    parallel_for(0, 10, worth_sharing, [&](Index inner, Index thread) noexcept {
      EXPECT_EQ(thread, 0);
      sum += outer * 10 + inner;
    });
  });
  EXPECT_EQ(sum.load(), 199 * 200 / 2);
}

TEST(parallel, callers_on_threads_of_their_own_do_not_disturb_each_other) {
  const Threads threads(3);
  if (threads.count == 1) GTEST_SKIP() << "a build without threads";
  std::atomic<Index> sum{0};
  const auto call = [&] {
    for (int round = 0; round < 100; ++round) {
      parallel_for(0, 50, worth_sharing, [&](Index item, Index) noexcept {
        static_cast<void>(churn(item));
        sum += item;
      });
    }
  };
  std::thread other(call);
  call();
  other.join();
  EXPECT_EQ(sum.load(), 2 * 100 * (49 * 50 / 2));
}

TEST(parallel, threads_can_be_ended_and_started_again) {
  for (int round = 0; round < 30; ++round) {
    const Threads threads(1 + round % 4);
    std::atomic<int> runs{0};
    parallel_for(0, 8, worth_sharing, [&](Index, Index) noexcept { ++runs; });
    ASSERT_EQ(runs.load(), 8);
  }
  EXPECT_EQ(thread_count(), 1);
}

}  // namespace
}  // namespace lookback::test
