// SPDX-License-Identifier: Apache-2.0
//
// Coordinator: keeps a run's members, epochs, placement, leases and ledgers while it leads, by the protocol
// of docs/protocols/membership.md. A pure state machine over its links. Events come in. Messages go out
// through the outbox, each behind the changes of the store on which it rests. The driver carries out the
// outbox's commits.
//
// A Coordinator is made from the store's records, after begin_lead(), and ends with the lead. Thread rule:
// one owner, the loop thread.
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

// Facts about a member, for people.
struct MemberFacts {
  const membership::MemberRecord* record = nullptr;
  Pace pace;  // speed 0: not measured
  net::LinkStatistics link = {};
  std::optional<membership::StepFigures> steps = {};  // as the member says it: may be anything
  std::set<NodeId> relayed_to = {};                   // its partners over links through the coordinator
};

// Whether members stop before a new view is installed (kFrozen) or go on (kAnnounced).
enum class ViewChange { kFrozen, kAnnounced };

class Coordinator {
 public:
  struct Options {
    std::string run;
    std::string configuration;  // the run's, handed to members as it is
    membership::Listening listening;
    std::vector<membership::Address> coordinators;  // control addresses of all that may lead
    Generation generation;
    std::size_t first_members = 1;  // so many must serve before the first view is installed
    ViewChange view_change = ViewChange::kFrozen;
    Duration beat_every = from_milliseconds(100);
    std::vector<TrackId> tracks = {};  // tracks of the ledgers; empty: there are no ledgers
    std::uint64_t batch = 1;           // samples of a step
    placement::Options placement = {};
    Duration freeze_time = from_seconds(30);  // a member that does not rest within it is fenced
    Defect defect = Defect::kNone;
    ProbeCounts<ControlProbe>* probes = nullptr;
    Witness* witness = nullptr;
  };
  enum class Phase {
    kSettled,   // the view is installed, or nobody serves yet
    kFreezing,  // members come to rest
    kShort,     // they rest, but there are too few of them or too little memory
    kStopping,  // everybody is asked to leave
  };
  using Answer = std::function<void(Result<std::string>)>;

  static constexpr Duration kHereTime{10'000'000'000};  // from Begin, or a takeover, to Here
  static constexpr Duration kRebalanceEvery{10'000'000'000};
  static constexpr Duration kSettlesIn{30'000'000'000};  // time for new measurements after a change
  static constexpr Duration kMarksEvery{100'000'000};
  static constexpr Duration kMissingFor{1'000'000'000};  // a living member finds a new coordinator sooner
  static constexpr Duration kTogether{50'000'000};       // deaths so close are one change of the view
  static constexpr Duration kStopTime{600'000'000'000};
  static constexpr Duration kLastWord{
      5'000'000'000};  // a member fenced while the run ends may ask for so long how it ended
  static constexpr Duration kLossEvery{500'000'000};  // doubling, up to:
  static constexpr Duration kLossForgotten{60'000'000'000};
  static constexpr std::size_t kMostNames = 100'000;  // nodes that a beat may name
  static constexpr Duration kAllSilent{300'000'000};  // nobody is heard: then this process is cut off
  static constexpr std::size_t kHistory = 256;
  static constexpr std::string_view kUnreachable =
      "it and others cannot reach each other";  // why one is lost

  Coordinator(Options options, Records records, Workload& workload, net::Links& links, Instant now);

  // Answers the question Begin. `node`: from the asker's certificate. It is 0 without TLS, and then the node
  // gets a number.
  void begin(NodeId node, const std::string& bytes, Answer answer, Instant now);
  void lead(const std::string& bytes, const Answer& answer) const;
  // `use` is called with a number for a node that enrols, once the number is in the store.
  void give_node(const std::function<void(NodeId)>& use);
  // `durable` is called when the run will end whatever happens to this process.
  void stop(const std::string& reason, Instant now, std::function<void()> durable = {});

  // Tokens in the store, for the next coordinator to lead: id and record, both opaque here
  // (docs/protocols/admission.md). A record that is there already is not written again.
  [[nodiscard]] const std::map<std::string, std::string>& tokens() const { return tokens_; }
  void keep_token(const std::string& id, const std::string& text);
  void forget_token(const std::string& id);
  // Calls `use` once all earlier decisions are in the store; never, if the lead ends sooner.
  void once_durable(std::function<void()> use) { outbox_.then(std::move(use)); }

  void on(const net::LinkEvent& event, Instant now);
  void tick(Instant now);
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

  // The changes that the store should carry out now, if any. Then call committed() or commit_failed().
  [[nodiscard]] std::optional<std::vector<host::Change>> next_commit() { return outbox_.next_commit(); }
  [[nodiscard]] bool waits_for_store() const { return outbox_.waiting(); }
  void committed(Instant now);
  void commit_failed();

  [[nodiscard]] std::vector<RunEvent> take_events() { return std::exchange(events_, {}); }

  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] const std::string& shortage() const { return shortage_; }  // in kShort: what is missing
  // Everybody has left, and members fenced meanwhile have had time to ask.
  [[nodiscard]] bool stopped() const;
  // An error that the workload found in this lead, and stopped the run for.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  [[nodiscard]] const View& view() const { return view_; }
  [[nodiscard]] Generation generation() const { return options_.generation; }
  // The incarnation of the coordinator itself.
  [[nodiscard]] Incarnation incarnation() const { return Incarnation(lead_.incarnation()); }
  // All members, joining ones included; good until the next call.
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
    Instant deadline;                         // until then it must have said Here
    std::optional<Instant> wake;              // its entry in wakes_
    std::optional<Epoch> told;                // its view once it has read all that was sent
    bool wants_to_serve = false;
    bool wants_to_drain = false;
    bool leaves = false;
    SmoothedPace pace;
    IdleTrial trial;
    std::optional<membership::StepFigures> steps;
    // Its report of a loss counts again from here. After a report that counted, it does not count for
    // `disbelief`.
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
  FencedIncarnations fenced_;  // the view's, and those since
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
  std::vector<FencedIncarnations::Run> fenced_since_;  // since the view's epoch
  std::deque<membership::Change> history_;             // one for each epoch, the last leads to the view's
  std::map<NodeId, membership::Frozen> reports_;
  std::optional<Instant> next_rebalance_;
  std::optional<Instant> freeze_deadline_;
  std::optional<Instant> stop_deadline_;
  membership::StopAsked stop_;
  std::optional<Instant> last_word_;  // until then it answers members that were fenced while the run ends
  Instant last_heard_;                // when any member was
  bool cut_off_ = false;              // no member is heard: no verdict counts until one is again
  Instant spared_until_;              // and no verdict counts until here
  bool store_fails_ = false;

  const std::set<TrackId> tracks_;
  LeaseTable leases_;
  std::optional<ClaimLedger> claims_;
  std::optional<MarkLedger> marks_;
  // The rows in the store. The ledgers join neighbouring claims, and so do not know them.
  std::map<std::pair<TrackId, StepNumber>, std::vector<Claim>> claim_rows_;
  std::set<std::pair<Incarnation, TrackId>> mark_rows_;
  std::map<std::pair<TrackId, Incarnation>, StepNumber> unwritten_marks_;
  bool committed_unwritten_ = false;
  std::optional<Instant> marks_due_;
};

}  // namespace gossamer::cluster
