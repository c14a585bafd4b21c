// SPDX-License-Identifier: Apache-2.0
//
// Coordinator: keeps a run's members, epochs, placement, leases and ledgers while it leads, by the protocol
// of docs/protocols/membership.md. A pure state machine over its links: events come in, messages go out
// through the outbox, behind the changes of the store on which they rest. The driver carries out the outbox's
// commits.
//
// It is made from what the store holds, after begin_lead(), and ends with the lead.
// Thread rule: one owner, the loop thread.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "cluster/control/control_probe.h"
#include "cluster/control/defect.h"
#include "cluster/control/durable_outbox.h"
#include "cluster/control/pace.h"
#include "cluster/control/records.h"
#include "cluster/control/run_event.h"
#include "cluster/control/view.h"
#include "cluster/control/witness.h"
#include "cluster/control/workload.h"
#include "cluster/membership/claim_ledger.h"
#include "cluster/membership/disputes.h"
#include "cluster/membership/failure_detector.h"
#include "cluster/membership/lease_table.h"
#include "cluster/membership/mark_ledger.h"
#include "net/link/links.h"

namespace gossamer::cluster {

// What is known of a member, for people.
struct MemberFacts {
  const membership::MemberRecord* record = nullptr;
  Pace pace;  // speed 0: not measured
  net::LinkStatistics link = {};
  std::optional<membership::StepFigures> steps = {};  // as it says: anything
  std::set<NodeId> relayed_to = {};                   // whom it speaks to through the coordinator
};

// Members stop before a new view is installed, or they need not.
enum class ViewChange { kFrozen, kAnnounced };

class Coordinator {
 public:
  struct Options {
    std::string run;
    std::string configuration;  // of the run, handed to members as it is
    membership::Listening listening;
    std::vector<membership::Address> coordinators;  // control addresses of all that may lead
    Generation generation;
    std::size_t first_members = 1;  // so many must serve before the first view is installed
    ViewChange view_change = ViewChange::kFrozen;
    Duration beat_every = from_milliseconds(100);
    std::vector<TrackId> tracks = {};  // of the ledgers; none: there are no ledgers
    std::uint64_t batch = 1;           // samples of a step
    placement::Options placement = {};
    Duration freeze_time = from_seconds(30);  // who does not come to rest within it is fenced
    Defect defect = Defect::kNone;
    ProbeCounts<ControlProbe>* probes = nullptr;
    Witness* witness = nullptr;
  };
  enum class Phase {
    kSettled,   // the view is installed, or nobody serves yet
    kFreezing,  // members come to rest
    kShort,     // they rest, and there are too few of them or too little memory
    kStopping,  // everybody is asked to leave
  };
  using Answer = std::function<void(Result<std::string>)>;

  static constexpr Duration kHereTime{10'000'000'000};  // from Begin, or a takeover, to Here
  static constexpr Duration kRebalanceEvery{10'000'000'000};
  static constexpr Duration kSettlesIn{30'000'000'000};  // what members measure after a change
  static constexpr Duration kMarksEvery{100'000'000};
  static constexpr Duration kMissingFor{1'000'000'000};  // who lives finds a new coordinator sooner
  static constexpr Duration kTogether{50'000'000};       // deaths so close are one change of the view
  static constexpr Duration kStopTime{600'000'000'000};
  static constexpr Duration kLastWord{
      5'000'000'000};  // who was fenced while the run ends may ask how it ended
  static constexpr Duration kLossEvery{500'000'000};  // doubling, up to:
  static constexpr Duration kLossForgotten{60'000'000'000};
  static constexpr std::size_t kMostNames = 100'000;  // of nodes in a beat
  static constexpr Duration kAllSilent{300'000'000};  // nobody is heard: it is this process that is cut off
  static constexpr std::size_t kHistory = 256;
  static constexpr std::string_view kUnreachable =
      "it and others cannot reach each other";  // why one is lost

  Coordinator(Options options, Records records, Workload& workload, net::Links& links, Instant now);

  // Questions. `node`: of the asker's certificate; 0 without TLS, and then it gets a number.
  void begin(NodeId node, const std::string& bytes, Answer answer, Instant now);
  void lead(const std::string& bytes, const Answer& answer) const;
  // A number for a node that enrols.
  void give_node(const std::function<void(NodeId)>& use);
  // `durable`: called when the run will end whatever happens to this process.
  void stop(const std::string& reason, Instant now, std::function<void()> durable = {});

  // Tokens that lie in the store, for whoever leads next: id and record, both opaque here
  // (docs/protocols/admission.md). What is there already is not written again.
  [[nodiscard]] const std::map<std::string, std::string>& tokens() const { return tokens_; }
  void keep_token(const std::string& id, const std::string& text);
  void forget_token(const std::string& id);
  // Called once all that was decided before is in the store; never, if the lead ends sooner.
  void once_durable(std::function<void()> use) { outbox_.then(std::move(use)); }

  void on(const net::LinkEvent& event, Instant now);
  void tick(Instant now);
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

  // What the store should carry out now, if anything; then either of the next two.
  [[nodiscard]] std::optional<std::vector<host::Change>> next_commit() { return outbox_.next_commit(); }
  [[nodiscard]] bool waits_for_store() const { return outbox_.waiting(); }
  void committed(Instant now);
  void commit_failed();

  [[nodiscard]] std::vector<RunEvent> take_events() { return std::exchange(events_, {}); }

  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] const std::string& shortage() const { return shortage_; }  // in kShort: what is missing
  // Everybody has left, and who was fenced meanwhile has had time to ask.
  [[nodiscard]] bool stopped() const;
  // What the workload found in this lead: why it stopped the run.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  [[nodiscard]] const View& view() const { return view_; }
  [[nodiscard]] Generation generation() const { return options_.generation; }
  // Its own.
  [[nodiscard]] Incarnation incarnation() const { return Incarnation(lead_.incarnation()); }
  // Those that are joining too; good until the next call.
  [[nodiscard]] std::vector<MemberFacts> members() const;
  [[nodiscard]] Epoch installed() const { return Epoch(installed_.epoch()); }
  [[nodiscard]] const HoldingMap& holdings() const { return holdings_; }
  [[nodiscard]] const FencedIncarnations& fenced() const { return fenced_; }
  [[nodiscard]] const std::optional<MarkLedger>& marks() const { return marks_; }

 private:
  struct Member {
    membership::MemberRecord record;
    bool here = false;                        // said Here to this coordinator
    std::optional<FailureDetector> detector;  // once it was heard
    std::optional<Instant> died;              // since then it is dead, and waits for others that are due
    Instant deadline;                         // until then it must be
    std::optional<Instant> wake;              // its entry in wakes_
    std::optional<Epoch> told;                // the view it has when it has read all that was sent
    bool wants_to_serve = false;
    bool wants_to_drain = false;
    bool leaves = false;
    SmoothedPace pace;
    IdleTrial trial;
    std::optional<membership::StepFigures> steps;
    // Its word that something was lost counts again from here, and then not for so long.
    Instant believed_from;
    Duration disbelief;
  };

  // coordinator.cc
  void begin_stop(const std::string& reason, Instant now);
  [[nodiscard]] membership::LeadAnswer lead_answer() const;
  [[nodiscard]] membership::MemberRecord new_record(NodeId node, const membership::BeginAsk& ask);
  [[nodiscard]] Member* find(net::PeerId peer);
  void refuse(net::PeerId peer);
  void on_message(net::PeerId from, const net::Message& message, Instant now);
  void dispatch(Member& member, const membership::ToCoordinator& said, Instant now);
  void tell(const Member& member, membership::ToMember message);
  void say(net::PeerId to, membership::ToMember message) const;
  void reach(ControlProbe probe) const { reached(options_.probes, probe); }
  void note(std::string kind, net::PeerId peer, std::string text);

  // coordinator_members.cc
  void here(Member& member, const membership::Here& said);
  void introduce(const Member& member);
  void beat(Member& member, const membership::Beat& said, Instant now);
  void leave(Member& member, const membership::Leave& said, Instant now);
  void schedule(Member& member);
  void wake(Member& member, std::optional<Instant> when);
  void watch(Instant now);
  void heard(Member& member, Instant now);
  void closed(Member& member, Instant now);
  [[nodiscard]] std::optional<Instant> nobody_fenced_until(Instant now);
  [[nodiscard]] Instant last_due(Instant with, Instant now) const;
  [[nodiscard]] bool is_heard(NodeId node, Instant now) const;
  void fence_the_restless(Instant now);
  void judge_unreachable(Instant now);
  void judge_missing(Instant now);
  void fence(NodeId node, const std::string& why, Instant now) { fence_all({node}, why, now); }
  void fence_all(const std::vector<NodeId>& nodes, const std::string& why, Instant now);
  void bury(NodeId node, const std::string& why);

  // coordinator_view.cc
  void want_change(Instant now);
  void reserve_epoch();
  [[nodiscard]] membership::Change next_difference();
  [[nodiscard]] bool all_rest() const;
  void begin_change(Instant now);
  void send_view(Member& member, Epoch has);
  void send_install(const Member& member);
  void frozen(Member& member, const membership::Frozen& said, Instant now);
  void decide(Instant now);
  void fall_short(std::string what);
  void release(const Member& member);
  void release_the_leaving();
  [[nodiscard]] std::vector<placement::Thing> things_with_copies() const;
  [[nodiscard]] std::map<NodeId, Pace> known_paces() const;
  [[nodiscard]] std::vector<placement::Member> placeable() const;
  [[nodiscard]] placement::Placement current_placement() const;
  void install(const HoldingMap& after, const placement::Placement& placed, Instant now);
  void see_who_is_idle(Instant now);
  void rebalance(Instant now);
  [[nodiscard]] double step_seconds() const;
  [[nodiscard]] membership::Install install_message() const;

  // coordinator_ledgers.cc
  void lease(Member& member, const membership::LeaseAsk& said, Instant now);
  void claim(Member& member, const membership::ClaimAsk& said);
  void commit(Member& member, const membership::CommitAsk& said);
  using Progress = google::protobuf::RepeatedPtrField<membership::Progress>;
  // False: the member was fenced for it.
  bool applied(const Member& member, const Progress& progress, Instant now);
  [[nodiscard]] bool may_mark(NodeId node, TrackId track) const;
  void forget_others(Incarnation by, const Progress& progress);
  void write_marks();
  [[nodiscard]] bool known(TrackId track) const { return tracks_.contains(track); }
  void take_up_rows(const Records& records);
  void free_everything_of(Incarnation incarnation);

  const Options options_;
  Workload& workload_;
  net::Links& links_;
  DurableOutbox outbox_;
  std::vector<RunEvent> events_;
  Instant now_;  // of the last call

  membership::Lead lead_;
  FencedIncarnations fenced_;  // those of the view, and since
  View view_;                  // of the last epoch begun
  membership::Installed installed_;
  HoldingMap holdings_;
  std::map<std::string, std::string> tokens_;
  std::map<NodeId, Member> members_;
  Disputes disputes_;
  std::set<std::pair<Instant, NodeId>> wakes_;

  Phase phase_ = Phase::kSettled;
  std::string shortage_;
  std::optional<Error> failure_;
  bool change_wanted_ = false;
  bool epoch_reserved_ = false;
  std::vector<FencedIncarnations::Run> fenced_since_;  // the view's epoch
  std::deque<membership::Change> history_;             // one for each epoch, the last to the view's
  std::map<NodeId, membership::Frozen> reports_;
  std::optional<Instant> next_rebalance_;
  std::optional<Instant> freeze_deadline_;
  std::optional<Instant> stop_deadline_;
  membership::StopAsked stop_;
  std::optional<Instant> last_word_;  // until then it waits for questions of who was fenced while it stops
  Instant last_heard_;                // anybody
  bool cut_off_ = false;              // nobody is: no verdict counts until somebody is again
  Instant spared_until_;              // nor for a while then
  bool store_fails_ = false;

  const std::set<TrackId> tracks_;
  LeaseTable leases_;
  std::optional<ClaimLedger> claims_;
  std::optional<MarkLedger> marks_;
  // What the store holds, because ledgers join neighbouring claims.
  std::map<std::pair<TrackId, StepNumber>, std::vector<Claim>> claim_rows_;
  std::set<std::pair<Incarnation, TrackId>> mark_rows_;
  std::map<std::pair<TrackId, Incarnation>, StepNumber> unwritten_marks_;
  bool committed_unwritten_ = false;
  std::optional<Instant> marks_due_;
};

}  // namespace gossamer::cluster
