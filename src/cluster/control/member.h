// SPDX-License-Identifier: Apache-2.0
//
// Member: one incarnation's part in a run, by docs/protocols/membership.md. It keeps the view, and repeats
// requests without an answer. Two parts of it follow the coordinator from life to life, and have the links to
// the other members. A pure state machine over the node's links; questions go out through a callback.
//
// The engine learns of events through MemberEvents, and calls ready(), frozen(), drain(), leave(), lease(),
// ... Thread rule: one owner, the loop thread.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "cluster/control/control_probe.h"
#include "cluster/control/defect.h"
#include "cluster/control/followed_coordinator.h"
#include "cluster/control/member_links.h"
#include "cluster/control/view.h"
#include "cluster/membership/claim_ledger.h"
#include "cluster/membership/lease_table.h"
#include "cluster/membership/pace.h"
#include "net/link/links.h"

namespace gossamer::cluster {

// The view has changed. With `freeze`: send nothing more, come to rest, then call Member::frozen().
// can_wait: take part in the step that is open until it has ended, and rest then.
struct ViewChanged {
  bool freeze = false;
  bool can_wait = false;
};
// Go on with these holdings and this decision (Member::installed()).
struct ViewInstalled {};
struct LeaseAnswered {
  std::uint64_t number = 0;
  Instant sent;  // of the request: what HeldLease counts from
  LeaseAnswer answer;
};
struct ClaimAnswered {
  std::uint64_t number = 0;
  ClaimAnswer answer;  // `taken` by this incarnation counts as granted: an earlier answer was lost
};
struct CommitAnswered {
  std::uint64_t number = 0;
  CommitOutcome outcome = CommitOutcome::kNoTrack;
};
// The run ends: save everything, then call leave().
struct StopRequested {
  std::string reason;
};
// The link with another living member ended, so messages under way between the two are lost. The coordinator
// is told. In a run whose members freeze, the view changes.
struct PeerLost {
  net::PeerId peer;
};
// This incarnation's part is over. It left (no error), was fenced (kRefused), or found no coordinator for too
// long. Nothing that it holds counts any more.
struct MembershipEnded {
  std::optional<Error> error;
  bool fenced = false;  // it may begin a new life
};
using MemberEvent = std::variant<ViewChanged, ViewInstalled, LeaseAnswered, ClaimAnswered, CommitAnswered,
                                 StopRequested, PeerLost, MembershipEnded>;

// Reports that a member tells its coordinator beside this protocol: how many so far, and how many of them
// need the member no more.
struct Told {
  std::uint64_t last = 0;
  std::uint64_t settled = 0;
};

class Member {
 public:
  struct Options {
    std::string run;
    net::PeerId self;
    membership::LeadAnswer lead;  // from the answer to Begin
    Duration beat_every = from_milliseconds(100);
    Duration patience = from_seconds(600);  // how long it goes on without a coordinator
    membership::Listening listening = {};   // as the coordinator was told with Begin
    std::string machine = {};
    std::uint64_t seed = 0;
    Defect defect = Defect::kNone;
    ProbeCounts<ControlProbe>* probes = nullptr;
    // Changes what it says to its coordinator: a liar in a simulation.
    std::function<void(membership::ToCoordinator&)> falsify = {};
    // CPU time that the engine's work has taken so far. It grows as long as the engine lives. Empty: the
    // engine does no work beside the loop.
    std::function<Duration()> work_time = {};
    // A member does not leave before what it has told by then is settled. Empty: it tells nothing.
    std::function<Told()> told = {};
  };
  // Asks a coordinator `Lead`; the answer comes to lead_answered().
  using AskLead = FollowedCoordinator::AskLead;
  static constexpr Duration kLeaveTime{5'000'000'000};
  // A member that leaves by itself waits for its reports as long as one of them is settled within this time.
  // One that was told to stop waits as long as its life lasts.
  static constexpr Duration kToldTime{30'000'000'000};
  // One that leaves by itself, and has heard no coordinator for so long, waits for nothing: nobody is there.
  static constexpr Duration kUnheard{10'000'000'000};

  Member(Options options, net::Links& links, AskLead ask_lead, Instant now);

  void on(const net::LinkEvent& event, Instant now);
  void lead_answered(const Result<std::string>& answer, Instant now);
  void tick(Instant now);
  [[nodiscard]] std::optional<Instant> next_wakeup() const;
  [[nodiscard]] std::vector<MemberEvent> take_events() { return std::exchange(events_, {}); }

  // The engine is prepared to hold things. The coordinator is told once both lanes to all members and to
  // itself are up, because a member without all links would stop the others.
  void ready(Instant now);
  // The engine has come to rest for the epoch of the view.
  void frozen(std::string report, const std::vector<std::uint64_t>& copies, Instant now);
  // What it keeps of checkpoints on its own disk, for the reports to come. At most kMostKept.
  void keeps(std::vector<membership::Kept> kept) { at_rest_.kept = std::move(kept); }
  // It was told to, or has, and nothing is installed since.
  [[nodiscard]] bool at_rest() const {
    return rests_ && view_.epoch().value > installed_.epoch() && !at_rest_.step_is_open;
  }
  // A step was open when it was told of the change. Said before frozen().
  void ended_step() { at_rest_.ended_step = true; }
  // It rests as a record of its last step wished so, and goes on with the next Install. Beats say so.
  void rests_by_wish() { at_rest_.by_wish = true; }
  void drain(const std::string& reason, Instant now);
  // Leaves, once its reports are settled.
  void leave(const std::string& reason, Instant now);
  // Leaves, and waits for nothing.
  void leave_now(const std::string& reason, Instant now);
  // Sends to another member of the view, over the link between the two. Messages are kept until there is a
  // link. False, and nothing is sent, for a peer outside the view. Messages kept for a peer that is fenced
  // are dropped.
  bool send(net::PeerId to, host::Lane lane, net::Message message, Instant now) {
    return peers_.send(to, lane, std::move(message), now);
  }
  // The peer broke a rule of a protocol: nothing of it counts, the link with it ends, and the coordinator is
  // told. A peer outside the view is refused from now on. Nothing happens for the coordinator.
  void blame(net::PeerId peer, const Error& error, Instant now);
  // Too much of the peer's would have to be kept: the link with it ends. It may come again, and has broken no
  // rule. Nothing happens for the coordinator.
  void part(net::PeerId peer, Instant now);
  // Requests. The number comes back with the answer.
  std::uint64_t lease(membership::LeaseAsk::Wish wish, const LeaseKeys& keys, Duration duration, Instant now);
  std::uint64_t claim(TrackId track, StepNumber step, SampleRange ids, Instant now);
  std::uint64_t commit(TrackId track, StepNumber step, Instant now);
  // The mark goes out with the next beat. A track that it holds no more is dropped() before the next
  // frozen().
  void applied(TrackId track, StepNumber next) { progress_[track] = next; }
  void dropped(TrackId track) {
    progress_.erase(track);
    reported_.erase(track);
  }
  // The measurement goes out with a beat about once a second (pace.h).
  void measured(const StepWork& step, Instant now) { meter_.add(step, now); }
  // The figures go out with beats, for people. Nothing: there are none any more.
  void tell_steps(std::optional<membership::StepFigures> figures) { figures_ = std::move(figures); }

  [[nodiscard]] net::PeerId self() const { return options_.self; }
  [[nodiscard]] const View& view() const { return view_; }
  // MemberLinks::moved_bytes().
  [[nodiscard]] std::uint64_t moved_bytes() const { return peers_.moved_bytes(); }
  [[nodiscard]] const membership::Install& installed() const { return installed_; }
  [[nodiscard]] bool serving() const { return view_.find(options_.self) != nullptr; }
  // Its coordinator was told that the engine is prepared and that it reaches all members.
  [[nodiscard]] bool said_ready() const { return said_ready_; }
  [[nodiscard]] Generation generation() const { return coordinator_.generation(); }
  [[nodiscard]] net::PeerId coordinator() const { return coordinator_.peer(); }
  [[nodiscard]] bool ended() const { return ended_; }
  // Set once it was told that the run ends.
  [[nodiscard]] const std::optional<membership::StopAsked>& stop() const { return stop_; }

 private:
  void on_message(const net::Message& message, Instant now);
  void on_change(const membership::Change& change, Instant now);
  void on_doubt(const membership::Doubt& doubt, Instant now);
  void on_gone(const membership::Gone& gone, Instant now);
  void on_install(const membership::Install& install);
  void on_lease(const membership::LeaseAnswer& said);
  void on_claim(const membership::ClaimAnswer& said);
  void on_commit(const membership::CommitAnswer& said);
  void on_link_up(net::PeerId peer, Instant now);
  void on_link_ended(const net::LinkEnded& ended, Instant now);
  void say_ready(Instant now);
  void say(membership::ToCoordinator said, Instant now);
  void say_here(Instant now);
  void say_beat(Instant now);
  std::uint64_t ask(membership::ToCoordinator request, Instant now);
  [[nodiscard]] bool leaves_alone(Instant now) const;
  [[nodiscard]] bool may_leave(Instant now);
  void say_leave(Instant now);
  void end(std::optional<Error> error, bool fenced = false);
  [[nodiscard]] bool guarded(Defect without) const { return options_.defect != without; }
  void reach(ControlProbe probe) const { reached(options_.probes, probe); }

  const Options options_;
  net::Links& links_;
  std::vector<MemberEvent> events_;
  bool ended_ = false;
  Instant next_beat_;

  View view_;
  // Members have come to rest for a view. So none sends to others before they have the view.
  bool rests_ = false;      // when the view changes
  bool told_view_ = false;  // by any coordinator; the view is empty while nobody serves
  FollowedCoordinator coordinator_;
  MemberLinks peers_;
  membership::Install installed_;
  struct AtRest {
    std::optional<membership::Frozen> report = {};  // for this epoch, until it is installed
    std::vector<membership::Kept> kept = {};
    bool step_is_open = false;  // the change can wait, and the report is not said
    bool ended_step = false;
    bool by_wish = false;
  };
  AtRest at_rest_;
  bool wants_to_serve_ = false;
  bool said_ready_ = false;         // to the coordinator that it follows
  bool said_ready_before_ = false;  // to any coordinator
  std::optional<std::string> drain_reason_;
  std::optional<membership::StopAsked> stop_;
  struct Leaving {
    std::string reason;
    std::uint64_t told = 0;                   // reports before it was to leave
    std::uint64_t settled = 0;                // of them
    std::optional<Instant> waits_until = {};  // for them; nothing: as long as this life lasts
    std::optional<Instant> deadline = {};     // set once it has said that it leaves
  };
  std::optional<Leaving> leaving_;

  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, membership::ToCoordinator> unanswered_;
  std::map<TrackId, StepNumber> progress_;  // not yet told to this coordinator
  std::map<TrackId, StepNumber> reported_;
  PaceMeter meter_;
  std::optional<membership::StepFigures> figures_;
  struct Broken {
    std::string rule;  // the first
    std::uint64_t times = 0;
  };
  std::map<net::PeerId, Broken> broke_;  // peers that broke a rule
};

}  // namespace gossamer::cluster
