// SPDX-License-Identifier: Apache-2.0
//
// Member: one incarnation's part in a run, by docs/protocols/membership.md. It keeps the view, follows the
// coordinator from life to life, and opens links to the other members. It refuses fenced ones, and repeats
// requests without an answer. A pure state machine over the node's links; questions go out through a
// callback.
//
// The engine learns of events through MemberEvents, and calls ready(), frozen(), drain(), leave(), lease(),
// ... Thread rule: one owner, the loop thread.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "cluster/control/control_probe.h"
#include "cluster/control/defect.h"
#include "cluster/control/pace.h"
#include "cluster/control/view.h"
#include "cluster/membership/claim_ledger.h"
#include "cluster/membership/failure_detector.h"
#include "cluster/membership/lease_table.h"
#include "cluster/membership/silences.h"
#include "net/link/links.h"

namespace gossamer::cluster {

// The view has changed. With `freeze`: send nothing more, come to rest, then call Member::frozen().
struct ViewChanged {
  bool freeze = false;
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
    Defect defect = Defect::kNone;
    ProbeCounts<ControlProbe>* probes = nullptr;
    // Changes what it says to its coordinator: a liar in a simulation.
    std::function<void(membership::ToCoordinator&)> falsify = {};
  };
  // Asks a coordinator `Lead`; the answer comes to lead_answered().
  using AskLead = std::function<void(const host::Endpoint& control, std::string bytes)>;
  static constexpr Duration kSearchEvery{250'000'000};
  static constexpr Duration kLeaveTime{5'000'000'000};
  static constexpr Duration kUnreachableAfter{3'000'000'000};  // links are pinged every second
  static constexpr Duration kReopenAfter{500'000'000};         // doubling, up to:
  static constexpr Duration kReopenAtMost{10'000'000'000};
  static constexpr Duration kRedialAfter{2'000'000'000};
  static constexpr Duration kIntroducedIn{1'000'000'000};  // by the coordinator, if the other does not listen

  Member(Options options, net::Links& links, AskLead ask_lead, Instant now);

  void on(const net::LinkEvent& event, Instant now);
  void lead_answered(const Result<std::string>& answer, Instant now);
  void tick(Instant now);
  [[nodiscard]] std::optional<Instant> next_wakeup() const;
  [[nodiscard]] std::vector<MemberEvent> take_events() { return std::exchange(events_, {}); }

  // The engine is prepared to hold things. The coordinator is told once links to all members are up, because
  // a member without all links would stop the others.
  void ready(Instant now);
  // The engine has come to rest for the epoch of the view.
  void frozen(std::string report, std::vector<std::uint64_t> copies, Instant now);
  void drain(const std::string& reason, Instant now);
  void leave(const std::string& reason, Instant now);
  // Sends to another member of the view, over the link between the two. Messages are kept until there is a
  // link. False, and nothing is sent, for a peer outside the view. Messages kept for a peer that is fenced
  // are dropped.
  bool send(net::PeerId to, host::Lane lane, net::Message message, Instant now);
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
  void tell_steps(std::optional<membership::StepFigures> figures) { figures_ = figures; }

  [[nodiscard]] net::PeerId self() const { return options_.self; }
  [[nodiscard]] const View& view() const { return view_; }
  [[nodiscard]] const membership::Install& installed() const { return installed_; }
  [[nodiscard]] bool serving() const { return view_.find(options_.self) != nullptr; }
  // Its coordinator was told that the engine is prepared and that it reaches all members.
  [[nodiscard]] bool said_ready() const { return said_ready_; }
  [[nodiscard]] Generation generation() const { return generation_; }
  [[nodiscard]] net::PeerId coordinator() const { return {kCoordinatorNode, coordinator_}; }
  [[nodiscard]] bool ended() const { return ended_; }
  // Set once it was told that the run ends.
  [[nodiscard]] const std::optional<membership::StopAsked>& stop() const { return stop_; }

 private:
  void on_message(const net::Message& message, Instant now);
  void on_change(const membership::Change& change, Instant now);
  void on_install(const membership::Install& install);
  void on_lease(const membership::LeaseAnswer& said);
  void on_claim(const membership::ClaimAnswer& said);
  void connect_to_peers(Instant now);
  void connect_to(const membership::MemberRecord& record, Instant now);
  void on_link_ended(const net::LinkEnded& ended, Instant now);
  void on_open_failed(NodeId node, Instant now);
  void refuse_fenced(Instant now);
  void say_ready(Instant now);
  [[nodiscard]] bool reaches_all() const;
  void is_down(NodeId node, Instant now);
  void watch_peers(Instant now);
  [[nodiscard]] Instant last_sign(NodeId node, Instant now) const;
  void relay_is_back(Instant now);
  void send_kept(net::PeerId to, Instant now);
  void say(membership::ToCoordinator said, Instant now);
  void say_here(Instant now);
  void say_beat(Instant now);
  void follow(const membership::LeadAnswer& lead, Instant now);
  void search(Instant now);
  std::uint64_t ask(membership::ToCoordinator request, Instant now);
  void end(std::optional<Error> error, bool fenced = false);
  void reach(ControlProbe probe) const { reached(options_.probes, probe); }

  const Options options_;
  const membership::MemberRecord own_;  // where it listens, and on which machine
  net::Links& links_;
  AskLead ask_lead_;
  std::vector<MemberEvent> events_;
  bool ended_ = false;

  // The coordinator that it follows.
  membership::LeadAnswer lead_;
  Generation generation_;
  Incarnation coordinator_;
  bool linked_ = false;  // the control connection is up
  bool heard_ = false;   // the coordinator said something in this life of the link
  FailureDetector detector_;
  Instant last_heard_;
  std::optional<Instant> next_search_;
  std::optional<Instant> redialed_;
  std::size_t next_coordinator_ = 0;
  Instant next_beat_;

  View view_;
  bool told_view_ = false;  // by any coordinator; the view is empty while nobody serves
  membership::Install installed_;
  std::optional<membership::Frozen> frozen_;  // the report for this epoch, until it is installed
  bool wants_to_serve_ = false;
  bool said_ready_ = false;         // to the coordinator that it follows
  bool said_ready_before_ = false;  // to any coordinator
  std::optional<std::string> drain_reason_;
  std::optional<std::string> leave_reason_;
  std::optional<membership::StopAsked> stop_;
  std::optional<Instant> leave_deadline_;

  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, membership::ToCoordinator> unanswered_;
  std::map<TrackId, StepNumber> progress_;  // not yet told to this coordinator
  std::map<TrackId, StepNumber> reported_;
  PaceMeter meter_;
  std::optional<membership::StepFigures> figures_;
  std::map<net::PeerId, std::vector<std::pair<host::Lane, net::Message>>> kept_;  // until there is a link
  std::map<NodeId, Instant> down_since_;                 // links to members that are not up
  std::set<NodeId> by_relay_;                            // peers whose links go through the coordinator
  std::map<NodeId, Incarnation> met_;                    // peers with a link now or before
  Silences silences_{kUnreachableAfter};                 // of the view's members
  std::set<NodeId> lost_;                                // said with each beat until the view changes
  std::map<NodeId, membership::MemberRecord> expected_;  // joining members that cannot open a link to us
  // When to open a link again that ended or never came up.
  struct Reopening {
    Instant when;
    Duration wait = kReopenAfter;
    int failures = 0;  // since it was last up
  };
  std::map<NodeId, Reopening> reopening_;
};

}  // namespace gossamer::cluster
