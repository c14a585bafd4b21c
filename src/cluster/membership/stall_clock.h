// SPDX-License-Identifier: Apache-2.0
//
// StallClock: has a run stopped though all of its members are heard? An engine may hang while its process
// beats on. Members that take steps together then all wait for it. Nobody sees which one hangs until all are
// asked to come to rest: only that one does not (rest_clock.h).
//
// A run stands still once none of these has happened for the time:
// - a step was committed;
// - the engine of a member has worked, or a member has sent or received data. A step may be long, and a way
//   slow. An engine that waits does a little work, too, so less than kLeastWorkMs and kLeastBytes count as
//   none.
//
// A rest that finds nothing would be asked for again and again, as when all engines wait for the same disk.
// So the time doubles until a step is committed.
//
// Cost: a beat costs one look-up. Thread rule: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/ids.h"
#include "base/time.h"

namespace gossamer::cluster {

class StallClock {
 public:
  // Work may wait two minutes for a bulk lane that is blocked, and a dispute about that takes seconds more.
  static constexpr Duration kStalled{180'000'000'000};
  static constexpr Duration kLongest{3600'000'000'000};
  static constexpr Duration kLookAgain{1'000'000'000};  // once it was put off
  // In kStalled or less; in a longer time as many times more.
  static constexpr double kLeastWorkMs = 1000;
  static constexpr double kLeastBytes = 65536;

  // What a member has done in its life so far.
  struct Done {
    std::uint64_t work_ms = 0;  // CPU time of its engine
    std::uint64_t bytes = 0;    // sent to others and acknowledged, or received from them
  };

  // Whether a step is expected from now on. It is not while members rest or the run ends.
  void expects(bool step, Instant now);
  // A step was committed.
  void stepped(Instant now);
  void beat(NodeId node, const Done& done, Instant now);
  // The node has lost its life.
  void gone(NodeId node) { members_.erase(node); }
  // Whether a step is expected, and the run has stood still for the time and for three steps of so many
  // seconds. The caller then says what it does: all are asked to rest, or somebody is not heard anyway.
  [[nodiscard]] bool is_due(double step_seconds, Instant now);
  void asked(Instant now);
  void put_off(Instant now) { look_ = now + kLookAgain; }
  // When is_due() may say so; nothing: no step is expected.
  [[nodiscard]] std::optional<Instant> next_look() const { return look_; }

 private:
  struct Member {
    Done then;                // when the time began, or at the first beat since
    std::uint64_t times = 0;  // that had begun by then
  };
  void begin(Instant now);

  bool expects_ = false;
  Instant since_;
  std::optional<Instant> look_;
  Duration time_ = kStalled;
  std::uint64_t times_ = 1;  // that have begun
  std::map<NodeId, Member> members_;
};

}  // namespace gossamer::cluster
