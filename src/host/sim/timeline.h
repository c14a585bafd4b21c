// SPDX-License-Identifier: Apache-2.0
//
// Timeline: the events of a simulated world, in order of time. Virtual time jumps from one event to the next.
// Events due at the same instant run in an order drawn from the seed: the same seed gives the same order. So
// no code comes to depend on an order that a real machine does not promise.
//
// Thread rule: one thread. The clock that it moves may be read by any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "host/sim/clock.h"

namespace gossamer::host {

class Timeline {
 public:
  using Action = std::function<void()>;

  explicit Timeline(std::uint64_t seed) : rng_(seed, Purpose::kFault, kOrderStream) {}

  [[nodiscard]] const SimClock& clock() const { return clock_; }
  [[nodiscard]] Instant now() const { return clock_.now(); }

  // Requires `when` not to be past.
  void at(Instant when, Action action);
  void after(Duration delay, Action action) { at(now() + delay, std::move(action)); }

  // Runs the next event; false if there is none.
  bool step();
  // Runs everything due up to `end`, then lets the clock stand there.
  void run_until(Instant end);

  [[nodiscard]] std::uint64_t events_run() const { return run_; }

 private:
  static constexpr std::uint64_t kOrderStream = 1ULL
                                                << 63;  // the rest of kFault belongs to disks and networks

  // What the queue moves about; the action stays in its slot.
  struct Event {
    Instant when;
    std::uint64_t order;   // drawn
    std::uint64_t number;  // breaks ties of `order`
    std::size_t slot;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const;
  };

  SimClock clock_;
  Rng rng_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::vector<Action> actions_;
  std::vector<std::size_t> free_slots_;
  std::uint64_t added_ = 0;
  std::uint64_t run_ = 0;
};

}  // namespace gossamer::host
