// SPDX-License-Identifier: Apache-2.0
#include "node/aside_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <semaphore>
#include <vector>

#include "host/posix/clock.h"

namespace gossamer::node {
namespace {

// Pieces are done in order, and the loop hears of each after it is done.
TEST(AsideThread, OneAfterTheOther) {
  const host::PosixClock clock;
  EventLoop loop(clock);
  std::vector<int> done;   // by the thread
  std::vector<int> heard;  // by the loop
  AsideThread thread(loop);
  for (int i = 0; i < 100; ++i) {
    thread.give([&done, i] { done.push_back(i); },
                [&, i](Instant) {
                  EXPECT_EQ(static_cast<int>(heard.size()), i);
                  heard.push_back(i);
                });
  }
  loop.run([]() -> std::optional<Instant> { return std::nullopt; }, [&] { return heard.size() == 100; });
  EXPECT_EQ(done, heard);
}

// An end waits for the piece under way alone. The others are dropped, with what they hold.
TEST(AsideThread, EndsSoon) {
  const host::PosixClock clock;
  EventLoop loop(clock);
  std::atomic<int> done = 0;
  std::binary_semaphore begun{0};
  std::binary_semaphore go_on{0};
  const auto held = std::make_shared<int>();
  auto thread = std::make_unique<AsideThread>(loop);
  thread->give(
      [&] {
        begun.release();
        go_on.acquire();
        ++done;
      },
      [](Instant) { ADD_FAILURE(); });
  for (int i = 0; i < 10; ++i) thread->give([&, held] { ++done; }, [](Instant) { ADD_FAILURE(); });
  begun.acquire();
  thread->end();
  go_on.release();
  thread.reset();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace gossamer::node
