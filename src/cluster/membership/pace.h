// SPDX-License-Identifier: Apache-2.0
//
// Pace: how fast a member computes, as place() takes it. It is the member's speed, and its own work: the work
// that it does in a step whatever it holds. A member adds up the times of its steps and tells the pace about
// once a second. Its coordinator believes the median of the last ones it was told. So a single measurement
// that is far off counts for nothing. A change is believed in full, with no value in between, once half of
// them show it.
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
  double own_work = 0;  // units a step, beside the work of its things
  double step_s = 0;    // seconds of a whole step, waiting included; 0: not measured
  bool operator==(const Pace&) const = default;
};

// The work and times of a step.
struct StepWork {
  double work = 0;       // of the things that the member holds, units
  Duration took;         // by the clock, computing for these things alone
  Duration cpu;          // of the computing threads, for these things alone; 0: not measured
  Duration process_cpu;  // of the whole process in `took`: side work slows computing down
  Duration all_cpu;      // of the process, from the step before to this one
  Duration whole = {};   // from the step before to this one; 0: not measured
};

class PaceMeter {
 public:
  static constexpr Duration kPeriod{1'000'000'000};

  void add(const StepWork& step, Instant now);
  // The pace over the steps since the last take(), once they span a period:
  //
  //   speed    = work / took * max(1, process_cpu / cpu)
  //   own_work = work * (all_cpu - cpu) / cpu, for each step
  //
  // So own work is the other CPU time, at the price of the things' work. The factor counts side work once. A
  // step is predicted to take all its CPU time, at the rate at which the process got it while it computed.
  [[nodiscard]] std::optional<Pace> take(Instant now);
  // Forgets all: the member holds other things from here on.
  void restart() { *this = {}; }

 private:
  std::optional<Instant> began_;
  std::uint64_t steps_ = 0;
  StepWork sum_;
};

class SmoothedPace {
 public:
  static constexpr std::size_t kWindow = 9;

  // Adds a pace that a member told. Values that cannot be a pace count for nothing. So do values that would
  // leave the range of numbers where paces are summed and divided.
  void add(const Pace& told);
  [[nodiscard]] std::optional<Pace> pace() const;

 private:
  std::deque<Pace> told_;
};

// When a member without things is tried again. It measures nothing, and may have become faster meanwhile. So
// it is given something for a trial 10 minutes after it had to give all away, though its last pace speaks
// against it. Each time that it is soon left with nothing again, the pause is twice as long.
class IdleTrial {
 public:
  static constexpr Duration kFirst{600'000'000'000};

  // Called with each placement: whether the member holds something.
  void placed(bool holds, Instant now);
  [[nodiscard]] bool due(Instant now) const;

 private:
  bool holds_ = false;
  std::optional<Instant> since_;
  Duration pause_;
};

}  // namespace gossamer::cluster
