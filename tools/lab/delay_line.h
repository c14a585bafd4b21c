// SPDX-License-Identifier: Apache-2.0
//
// DelayLine holds the packets on their way to one node, each until its time has come. The kernel numbers the
// packets of a queue in the order of their arrival and releases them by "all up to number n". Every packet
// waits for the same time, so the first to come is the first to go.
//
// DelayLine is a pure state machine: time is an argument and never runs backwards. Numbers wrap at
// 2^32, which nothing here looks at. It takes 16 bytes for each packet held. Owner: the program's only
// loop. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/time.h"

namespace gossamer::lab {

class DelayLine {
 public:
  // `delay` >= 0: how long every packet waits.
  explicit DelayLine(Duration delay) : delay_(delay) {}

  void hold(std::uint32_t packet, Instant now) { held_.push_back({.due = now + delay_, .packet = packet}); }

  // Lets go of all packets due at `now` or before. Returns the number of the last of
  // them; nothing when there is none.
  [[nodiscard]] std::optional<std::uint32_t> release(Instant now) {
    std::optional<std::uint32_t> last;
    while (!held_.empty() && held_.front().due <= now) {
      last = held_.front().packet;
      held_.pop_front();
    }
    return last;
  }

  // When release() will next have something to give; nothing while no packet is held.
  [[nodiscard]] std::optional<Instant> next_due() const {
    return held_.empty() ? std::nullopt : std::optional(held_.front().due);
  }

 private:
  struct Held {
    Instant due;
    std::uint32_t packet = 0;
  };

  Duration delay_;
  std::deque<Held> held_;
};

}  // namespace gossamer::lab
