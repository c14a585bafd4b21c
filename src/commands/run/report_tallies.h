// SPDX-License-Identifier: Apache-2.0
//
// StepTally and RecoveryTally add up what the members of a run tell of their steps and recoveries. A member
// tells in order.
//
// Thread rule: one owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "engines/run/fleet_recovery.h"
#include "engines/run/member_step.h"

namespace gossamer::commands {

struct StepLoss {
  StepNumber step;
  double loss = 0;
};

// A step counts once all members that did it have told of it. A step that was done again counts once. Reports
// that cannot be, or that contradict earlier ones, count for nothing.
class StepTally {
 public:
  // The run goes on at step `start`.
  explicit StepTally(StepNumber start = {}) : next_(start) {}

  void add(NodeId from, const engine::MemberStep& step);
  // The steps before `limit` that all have told of since the last call, in order. Without a limit all of
  // them. Steps that are not whole by then are passed over.
  [[nodiscard]] std::vector<StepLoss> take(std::optional<StepNumber> limit = {});
  // The first step behind all that are whole, given out or not.
  [[nodiscard]] StepNumber told_end() const {
    return whole_.empty() ? next_ : std::max(next_, StepNumber(whole_.rbegin()->first.value + 1));
  }
  // The first step that was passed over and is whole by now, if there is one: a member told of it late.
  [[nodiscard]] std::optional<StepNumber> late() const { return late_; }

  // Bytes that a member has sent for a step, and otherwise during one: means over all steps of all members.
  struct BytesOfStep {
    double steps = 0;
    double background = 0;
  };
  [[nodiscard]] BytesOfStep bytes_of_step() const;

 private:
  struct Told {
    struct Share {
      std::size_t rank = 0;
      double loss = 0;
    };
    std::map<NodeId, Share> shares;
    std::size_t members = 0;
  };
  // What one member has sent.
  struct Sender {
    engine::SentBytes before;  // bytes of earlier lives
    engine::SentBytes life;
    std::uint64_t steps = 0;
  };

  static void add_sent(Sender& sender, const engine::SentBytes& sent);
  // Whether it is one of those that take() has passed over.
  [[nodiscard]] bool passed_over(StepNumber step) const;

  std::map<NodeId, Sender> senders_;
  std::map<std::pair<StepNumber, Epoch>, Told> told_;  // told, but not by all members yet
  std::map<StepNumber, double> whole_;                 // not given out yet
  StepNumber next_;                                    // all steps before it are given out, or passed over
  std::map<StepNumber, StepNumber> gaps_;              // passed over: from the first to the one behind
  std::optional<StepNumber> late_;
};

// All members tell of the same recovery. It counts once, with the figures of the member that it cost most.
class RecoveryTally {
 public:
  void add(engine::FleetRecovery recovery);
  // Those that ended before step `before`, in order; each is given out once. Members tell of a recovery
  // before they do the step after the next.
  [[nodiscard]] std::vector<engine::FleetRecovery> take(StepNumber before);

 private:
  std::map<Epoch, engine::FleetRecovery> told_;  // not given out yet
  std::set<Epoch> given_;
};

}  // namespace gossamer::commands
