// SPDX-License-Identifier: Apache-2.0
#include "node/event_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <thread>

#include "host/posix/clock.h"

namespace gossamer::node {
namespace {

// Claim: work that is due is called again at once, without a wait of the loop between.
TEST(EventLoop, WhatIsDueIsDoneAtOnce) {
  const host::PosixClock clock;
  EventLoop loop(clock);
  const Instant begun = clock.now();
  int calls = 0;
  loop.run(
      [&]() -> std::optional<Instant> {
        ++calls;
        return begun;
      },
      [&calls] { return calls == 200; });
  // 200 waits of kLookEvery are ten seconds.
  EXPECT_LT((clock.now() - begun).seconds(), 5);
}

// Claim: a loop with nothing to do for an hour, or for ever, looks again and again whether it is over.
TEST(EventLoop, LooksWhetherItIsOver) {
  for (const bool due : {true, false}) {
    const host::PosixClock clock;
    EventLoop loop(clock);
    std::atomic<bool> rescued = false;
    std::promise<void> ended;
    // Only a failure waits so long.
    std::thread rescuer([&, end = ended.get_future()] {
      if (end.wait_for(std::chrono::seconds(20)) == std::future_status::ready) return;
      rescued = true;
      loop.post({}, [] {});
    });
    int asked = 0;
    loop.run(
        [&]() -> std::optional<Instant> {
          if (!due) return std::nullopt;
          return clock.now() + from_seconds(3600);
        },
        [&] { return ++asked == 4 || rescued; });
    ended.set_value();
    rescuer.join();
    EXPECT_FALSE(rescued) << (due ? "work in an hour" : "no work");
  }
}

}  // namespace
}  // namespace gossamer::node
