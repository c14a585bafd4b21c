// SPDX-License-Identifier: Apache-2.0
//
// StepWishes: what the members of a layout have asked for in its steps. It finds those that break the rules
// of asking (docs/protocols/sparse-step.md, "The byte behind GRADIENT"). An honest member breaks none,
// however late its messages come.
//
// Thread rule: the loop thread. Pure: no messages. Time is a parameter.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "base/time.h"
#include "engines/sparse/fleet/step/fleet_learner.h"

namespace gossamer::sparse_engine {

class StepWishes {
 public:
  // A member that lies, and its rule.
  struct Broken {
    std::size_t rank;
    Error error;
  };
  // So long a member may stay that has asked for the end. One that was told to go has left after 120 s.
  static constexpr Duration kStays{150'000'000'000};

  // A layout begins, in which this member has the rank. It does not judge itself.
  void restart(std::size_t rank);

  struct Applied {
    StepNumber step;
    StepNumber next;  // the first step that has not begun
    Duration every;   // between two checkpoints by time; 0: there are none
    Instant now;
  };
  // A step is applied. Members asked for these things with it, by rank. Returns one that may not ask.
  [[nodiscard]] std::optional<Broken> asked(std::span<const StepWish> wishes, const Applied& applied);
  // The first step in which a member takes no part that has asked for the end.
  [[nodiscard]] std::optional<StepNumber> end() const { return end_; }
  // All members have given this in a round of a step, by rank. Returns one that had asked for the end before.
  [[nodiscard]] std::optional<Broken> given(StepNumber step, std::span<const Slices> got) const;
  // Returns a member that has asked for the end, and stays. Called now and then. `led`: this member hears its
  // coordinator. Time without one does not count.
  [[nodiscard]] std::optional<Broken> staying(bool led, Instant now);

 private:
  struct Member {
    bool ends = false;
    StepNumber asks_until = {};        // it asks for the same checkpoint in the steps below
    std::optional<Instant> last = {};  // when it began to ask for a checkpoint
    std::optional<Instant> before = {};
  };
  std::size_t self_ = 0;
  std::vector<Member> members_;  // by rank
  std::optional<StepNumber> end_;
  Instant since_;  // the end was asked for, or there was no coordinator
};

}  // namespace gossamer::sparse_engine
