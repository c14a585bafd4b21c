// SPDX-License-Identifier: Apache-2.0
//
// Leadership: what the parts of a coordinator share during one leadership: what it was given, the run as it
// knows it, and the way out. All parts read all of the run. Each field names the part that writes it.
//
// Thread rule: plain values, one owner.
#pragma once

#include <gossamer/membership.pb.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "cluster/control/control_probe.h"
#include "cluster/control/defect.h"
#include "cluster/control/records.h"
#include "cluster/control/view.h"
#include "cluster/control/workload.h"
#include "cluster/membership/departures.h"
#include "cluster/membership/failure_detector.h"
#include "cluster/membership/fenced_incarnations.h"
#include "cluster/membership/pace.h"
#include "cluster/membership/request_budget.h"
#include "cluster/membership/word_budget.h"
#include "cluster/placement/placement.h"
#include "net/link/peer_id.h"

namespace gossamer::cluster {

// Hears what a coordinator hears, and what it says when that leaves. So a simulation can compare both with
// the store. Never set outside a simulation.
class Witness {
 public:
  virtual ~Witness() = default;
  virtual void heard(net::PeerId from, const membership::ToCoordinator& said) = 0;
  virtual void said(net::PeerId to, const membership::ToMember& said) = 0;
  virtual void began(const membership::BeginAnswer& answer) = 0;
};

// Whether members stop before a new view is installed (kFrozen) or go on (kAnnounced).
enum class ViewChange { kFrozen, kAnnounced };

struct CoordinatorOptions {
  std::string run;
  std::string configuration;  // the run's, handed to members as it is
  membership::Listening listening;
  std::vector<membership::Address> coordinators;  // control addresses of all that may lead
  Generation generation;
  std::size_t first_members = 1;  // so many must serve before the first view is installed
  // Asked once that many serve: why the first view still waits for others; "": it does not. May be empty.
  std::function<std::string(const View& view)> waits_for = {};
  ViewChange view_change = ViewChange::kFrozen;
  Duration beat_every = from_milliseconds(100);
  std::vector<TrackId> tracks = {};  // tracks of the ledgers; empty: there are no ledgers
  std::uint64_t batch = 1;           // samples of a step
  placement::Options placement = {};
  Duration freeze_time = from_seconds(30);  // an engine without a sign of work is late then (rest_clock.h)
  Duration patience = from_seconds(600);    // a member without a coordinator ends after it (Member::Options)
  std::string machine = {};  // as in a member's record: which members share this one's network stack
  Defect defect = Defect::kNone;
  ProbeCounts<ControlProbe>* probes = nullptr;
  Witness* witness = nullptr;

  // Whether the protection is in place that the defect would switch off.
  [[nodiscard]] bool guarded(Defect without) const { return defect != without; }
};

// What happens in a run, for people.
struct RunEvent {
  std::string kind = {};  // "begun", "serving", "lost", "installed", "rebalances", "short", ...
  net::PeerId peer = {};  // the member that it is about, if any
  Epoch epoch = {};
  std::string text = {};
};

// Reports of a member that it has lost messages of another. Each that counts is a rest for all. So a member
// that loses something after each change of the view would keep all others from a step.
class BelievedLosses {
 public:
  static constexpr Duration kEvery{500'000'000};  // doubling, up to:
  static constexpr Duration kForgotten{60'000'000'000};

  // Whether the report counts. After one that counted, others do not for a while.
  [[nodiscard]] bool take(Instant now) {
    if (from_ && now < *from_) return false;
    const bool long_ago = !from_ || now - *from_ > kForgotten;
    disbelief_ = long_ago ? kEvery : Duration{std::min(2 * disbelief_.ns, kForgotten.ns)};
    from_ = now + disbelief_;
    return true;
  }

 private:
  std::optional<Instant> from_;  // it counts again; none: nothing was reported yet
  Duration disbelief_;
};

// A member, also one that is joining.
struct LedMember {
  // Coordinator. Changes sets the state, and begins the pace anew.
  membership::MemberRecord record;
  bool leaves = false;
  std::optional<Instant> began;  // this life, if it began with this coordinator
  SmoothedPace pace;
  std::optional<membership::StepFigures> steps;
  WordBudget words;

  // Watch.
  bool here = false;                        // said Here to this coordinator
  std::optional<FailureDetector> detector;  // once it was heard
  bool down = false;                        // its connection has closed, and it was not heard since
  bool hung_up = false;                     // it closed while it was still heard
  std::optional<Instant> died;              // since then it seems dead
  Instant deadline;                         // until then it must have said Here
  Instant last_sign;                        // of life; before it came: when it was expected
  // It seems dead, and is not fenced. kAlone, kWithOthers: Doubts says so; kAlone: because others hear it.
  // kNeeded: the others may lack what it holds.
  enum class Spared { kNo, kAlone, kWithOthers, kNeeded };
  Spared spared = Spared::kNo;
  std::optional<Instant> wake;  // its entry among the wakes

  // Books.
  RequestBudget requests;

  // Changes.
  std::optional<Epoch> told;    // its view once it has read all that was sent
  bool wants_to_serve = false;  // the coordinator sets it for all that arrive together
  bool wants_to_drain = false;
  IdleTrial trial;
  BelievedLosses losses;

  // It has come, and is not suspected.
  [[nodiscard]] bool is_heard(Instant now) const {
    if (!here || !detector) return false;
    FailureDetector judged = *detector;  // a copy: a verdict may be for good
    return judged.verdict(now) == Verdict::kAlive;
  }
  // What counts against its patience begins here: the time that this process stood still is not its silence.
  [[nodiscard]] Instant silent_since() const {
    const auto resumed = detector ? detector->last_pause() : std::nullopt;
    return resumed ? std::max(last_sign, *resumed) : last_sign;
  }
};

struct LedRun {
  std::map<NodeId, LedMember> members;  // Coordinator
  std::set<NodeId> expelled;            // Coordinator: the view's, and those since
  Departures departures = {};           // Watch; Changes says when all rest, and go on
  // Changes.
  FencedIncarnations fenced;  // the view's, and those since
  View view;                  // of the last epoch begun
  membership::Installed installed;
  HoldingMap holdings;

  [[nodiscard]] bool hears(NodeId node, Instant now) const {
    const auto member = members.find(node);
    return member != members.end() && member->second.is_heard(now);
  }
};

// Members that are to be fenced together, and why.
struct Fencing {
  std::vector<NodeId> nodes;
  std::string_view why;
};

class CoordinatorOutbox;

// All of it outlives the parts.
struct Leadership {
  const CoordinatorOptions& options;
  Workload& workload;
  LedRun& run;
  CoordinatorOutbox& outbox;
};

}  // namespace gossamer::cluster
