// SPDX-License-Identifier: Apache-2.0
//
// Pace: how fast a member computes, as place() takes it: its speed, and what it has to do in a step whatever
// it holds. A member adds up what its steps have taken and tells it about once a second; its coordinator
// believes the median of what it was told last. So a single measurement that is far off counts for nothing,
// and who has become slower is known as that, not as something in between, as soon as half of them say so.
//
// Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/time.h"

namespace gossamer::cluster {

struct Pace {
  double speed = 0;     // units of work a second, > 0
  double own_work = 0;  // units a step, beside that of its things
  double step_s = 0;    // that a step takes in all, with what it waits for; 0: not measured
  bool operator==(const Pace&) const = default;
};

// What a step has taken.
struct StepWork {
  double work = 0;       // of the things that the member holds, units
  Duration took;         // computing for these alone, by the clock
  Duration cpu;          // of the threads that compute, for these alone; 0: not measured
  Duration process_cpu;  // of the whole process meanwhile: what it does on the side slows computing down
  Duration all_cpu;      // of the process, from the step before to this one
  Duration whole = {};   // from the step before to this one; 0: not measured
};

class PaceMeter {
 public:
  static constexpr Duration kPeriod{1'000'000'000};

  void add(const StepWork& step, Instant now);
  // Of the steps since it was last taken, once they span a period. A step takes all CPU that it needs, at the
  // rate at which the process got CPU while it computed; and own work is in the unit of that of the things
  // what it costs in CPU, at their price.
  [[nodiscard]] std::optional<Pace> take(Instant now);
  // The member holds other things from here on.
  void restart() { *this = {}; }

 private:
  std::optional<Instant> began_;
  std::uint64_t steps_ = 0;
  StepWork sum_;
};

class SmoothedPace {
 public:
  static constexpr std::size_t kWindow = 9;

  // What cannot be a pace, or would leave the range of numbers where paces are summed and shared, counts for
  // nothing.
  void add(const Pace& told);
  [[nodiscard]] std::optional<Pace> pace() const;

 private:
  std::deque<Pace> told_;
};

// Who holds nothing measures nothing. It may have become faster meanwhile, so it is given something for a
// trial 10 minutes after it had to give all away, though its last pace speaks against it; each time that it
// is soon left with nothing again it is left alone for twice as long.
class IdleTrial {
 public:
  static constexpr Duration kFirst{600'000'000'000};

  // With each placement: whether it holds something.
  void placed(bool holds, Instant now);
  [[nodiscard]] bool due(Instant now) const;

 private:
  bool holds_ = false;
  std::optional<Instant> since_;
  Duration pause_;
};

}  // namespace gossamer::cluster
