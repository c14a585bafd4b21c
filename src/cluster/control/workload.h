// SPDX-License-Identifier: Apache-2.0
//
// Workload: what a run computes, as far as its coordinator must know. Each engine has one. Thread rule: one
// owner, the coordinator's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "cluster/control/records.h"
#include "cluster/control/view.h"
#include "cluster/membership/pace.h"
#include "cluster/membership/whole_checkpoint.h"
#include "cluster/placement/placement.h"

namespace gossamer::cluster {

// The state when all members have come to rest before a new view. What is not in the reports is in the store,
// or gets there with the decision (docs/protocols/membership.md, "What a decision rests on").
struct Rest {
  const View& view;
  const std::map<NodeId, membership::Frozen>& reports;
  const HoldingMap& before;
  const HoldingMap& after;
  std::optional<StepNumber> committed = {};  // by the mark ledger, if there is one
  std::string_view last = {};                // the bytes of the decision in force; empty: there is none yet
  // As they are believed of the members that are to go on, without the time of a step.
  std::map<NodeId, Pace> paces = {};
  std::optional<WholeCheckpoint> checkpoint = {};  // where checkpoint_parts() is not 0
  std::uint64_t lineage = 0;                       // of the decision before
};

inline constexpr std::size_t kMaxDecisionBytes = std::size_t{512} << 10;

struct Decision {
  std::string bytes = {};                    // for the members' engines; nobody else reads it
  std::optional<StepNumber> committed = {};  // all tracks will be restored to here: MarkLedger::correct()
  std::optional<Error> failure = {};         // why the run cannot go on: it is stopped
  std::uint64_t lineage = 0;                 // rises when a run goes back to a checkpoint
  bool lost = false;                         // it cannot, as all that had some part, or a copy, are gone
};

class Workload {
 public:
  virtual ~Workload() = default;
  // The things, the same for the life of the run. Copies are not known here: members report them.
  [[nodiscard]] virtual std::vector<placement::Thing> things() const = 0;
  // The thing whose holder alone marks the track. None: any member may mark it.
  [[nodiscard]] virtual std::optional<placement::ThingId> thing_of(TrackId) const { return std::nullopt; }
  // The parts of a whole checkpoint, which are numbered from 0. Members keep them on their own disks, and say
  // at rest what they have. 0: the run has none of this kind.
  [[nodiscard]] virtual std::uint64_t checkpoint_parts() const { return 0; }
  // Whether a member ends the step that is open before it rests, where a change of the view can wait.
  [[nodiscard]] virtual bool ends_open_steps() const { return false; }
  // Whether this engine can have sent such a report. A member may send any bytes.
  [[nodiscard]] virtual bool readable(const std::string& report) const = 0;
  // Members of the view whose reports cannot be true beside those of the others. They are fenced, and the
  // others report again. Every report is readable.
  [[nodiscard]] virtual std::set<NodeId> contradicting(
      const std::map<NodeId, membership::Frozen>& /*reports*/) const {
    return {};
  }
  // The same beside the decision in force, for engines whose reports mean something by it alone.
  [[nodiscard]] virtual std::set<NodeId> contradicting_by(
      std::string_view /*last*/, const std::map<NodeId, membership::Frozen>& reports) const {
    return contradicting(reports);
  }
  // Decides for the next view. Every report is readable. The decision has at most kMaxDecisionBytes. It must
  // rest on its argument alone, because a coordinator that takes over decides again.
  [[nodiscard]] virtual Decision decide(const Rest& rest) = 0;
  // The last decision is that of a view which is installed, or it ends the run for a loss. All others were
  // trials: nothing follows from them. Called before the store has the decision, and so before members are
  // told. A lead that begins anew then leaves them no word of a failure.
  virtual void installed(const Decision& /*decision*/) {}
};

}  // namespace gossamer::cluster
