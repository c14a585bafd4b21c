// SPDX-License-Identifier: Apache-2.0
//
// Coordinator: keeps a run's members, epochs, placement, leases and ledgers while it leads, by the protocol
// of docs/protocols/membership.md. A pure state machine over its links. Events come in. Messages go out
// through the outbox, each behind the changes of the store on which it rests. The driver carries out the
// outbox's commits.
//
// The coordinator answers questions and fences members. For the rest it asks its parts: Watch, Books and
// Changes. Arrivals says when joining members may serve.
//
// A Coordinator is made from the store's records, after begin_lead(), and ends with the lead. Thread rule:
// one owner, the loop thread.
#pragma once

#include <gossamer/membership.pb.h>

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
#include "cluster/admission/admitted_nodes.h"
#include "cluster/control/books.h"
#include "cluster/control/changes.h"
#include "cluster/control/coordinator_outbox.h"
#include "cluster/control/leadership.h"
#include "cluster/control/records.h"
#include "cluster/control/view.h"
#include "cluster/control/watch.h"
#include "cluster/control/workload.h"
#include "cluster/membership/arrivals.h"
#include "cluster/membership/mark_ledger.h"
#include "cluster/membership/pace.h"
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

class Coordinator {
 public:
  using Options = CoordinatorOptions;
  using Phase = CoordinatorPhase;
  using Answer = std::function<void(Result<std::string>)>;

  static constexpr Duration kStopTime = RunEnd::kLeaveTime;
  // Members that join have so long to leave, once all others have left. They have nothing to save.
  static constexpr Duration kJoiningLeaveTime{10'000'000'000};
  // A member that is fenced while the run ends may ask for so long how it ended.
  static constexpr Duration kLastWord{5'000'000'000};
  // A silent member that was told that the run ends saves on its own disk, and brings that to the next fleet.
  static constexpr Duration kEndingPatience{20'000'000'000};
  // The same while the view changes once more. It may wait for a common step and rest for a minute before it
  // saves. Fenced earlier, it would end without that.
  static constexpr Duration kToldPatience{120'000'000'000};
  static constexpr std::size_t kMostNames = 100'000;  // nodes that a beat may name
  // Why a member is lost.
  static constexpr std::string_view kUnreachable = Departures::kWhy;
  static constexpr std::string_view kRestless = "it did not come to rest in time";

  Coordinator(Options options, Records records, Workload& workload, net::Links& links, Instant now);

  // Answers the question Begin. `node`: from the asker's certificate. It is 0 without TLS, and then the node
  // gets a number.
  void begin(NodeId node, const std::string& bytes, Answer answer, Instant now);
  void lead(const std::string& bytes, const Answer& answer) const;
  // A stranger that enrols with the token of this id, `now` in seconds since 1970-01-01 UTC. `use` is called
  // with its number, once the store has the number and the node's record.
  void give_node(const std::string& token, std::int64_t now, const std::function<void(NodeId)>& use);
  [[nodiscard]] const AdmittedNodes& admitted() const { return admitted_; }
  // Expels nodes for ever: those that are members are fenced, every question and link of theirs is refused,
  // and the view tells all members. `done` is called once the store has it.
  void expel(const std::vector<NodeId>& nodes, Instant now, const std::function<void()>& done);
  [[nodiscard]] bool expelled(NodeId node) const { return run_.expelled.contains(node); }
  // Whether the peer is a member, joining ones included.
  [[nodiscard]] bool lives(net::PeerId peer) const {
    const auto found = run_.members.find(peer.node);
    return found != run_.members.end() && found->second.record.incarnation() == peer.incarnation.value;
  }
  // Whether a node has this number: it was given to one, or a member has it.
  [[nodiscard]] bool knows(NodeId node) const {
    return run_.members.contains(node) || (node > kCoordinatorNode && node.value < lead_.next_node());
  }
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
  // The member broke a rule towards this node: it is fenced. Later lives of its node are left alone.
  void blame(net::PeerId peer, const Error& error, Instant now);
  void tick(Instant now);
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

  // The changes that the store should carry out now, if any. Then call committed() or commit_failed().
  [[nodiscard]] std::optional<std::vector<host::Change>> next_commit() { return outbox_.next_commit(); }
  [[nodiscard]] bool waits_for_store() const { return outbox_.waiting(); }
  void committed(Instant now) { outbox_.committed(now); }
  void commit_failed() { outbox_.commit_failed(); }

  [[nodiscard]] std::vector<RunEvent> take_events() { return outbox_.take_events(); }

  [[nodiscard]] Phase phase() const { return changes_.phase(); }
  // What it waits for, for people: what is missing, and near the end which members are not heard.
  [[nodiscard]] std::string shortage(Instant now) const;
  // Whether the run is told to end. Members may not know yet.
  [[nodiscard]] bool ending() const { return changes_.ending(); }
  // Everybody has left, and members fenced meanwhile have had time to ask.
  [[nodiscard]] bool stopped() const;
  [[nodiscard]] Hearing hears_elsewhere(Instant now) const { return watch_.hears_elsewhere(now); }
  // Whether members that are heard come to rest.
  [[nodiscard]] bool awaits_rest(Instant now) const;
  // An error that the workload found in this lead, and stopped the run for.
  [[nodiscard]] const std::optional<Error>& failure() const { return changes_.failure(); }
  [[nodiscard]] const View& view() const { return run_.view; }
  [[nodiscard]] Generation generation() const { return options_.generation; }
  // The incarnation of the coordinator itself.
  [[nodiscard]] Incarnation incarnation() const { return Incarnation(lead_.incarnation()); }
  // All members, joining ones included; good until the next call.
  [[nodiscard]] std::vector<MemberFacts> members() const;
  [[nodiscard]] Epoch installed() const { return Epoch(run_.installed.epoch()); }
  [[nodiscard]] const HoldingMap& holdings() const { return run_.holdings; }
  // What the workload decided for the view that is installed, for the members' engines.
  [[nodiscard]] const std::string& decision() const { return run_.installed.decision(); }
  [[nodiscard]] const FencedIncarnations& fenced() const { return run_.fenced; }
  [[nodiscard]] const std::optional<MarkLedger>& marks() const { return books_.marks(); }

 private:
  // Whether all members of the view are there.
  [[nodiscard]] bool all_heard(Instant now) const;
  [[nodiscard]] bool joining_ones_stay(Instant now);
  [[nodiscard]] Leadership leadership() { return {options_, workload_, run_, outbox_}; }
  [[nodiscard]] LedMember* find(net::PeerId peer);
  void on_message(net::PeerId from, const net::Message& message, Instant now);
  void dispatch(LedMember& member, const membership::ToCoordinator& said, Instant now);
  void here(LedMember& member, const membership::Here& said, Instant now);
  void introduce(const LedMember& member);
  void beat(LedMember& member, const membership::Beat& said, Instant now);
  void accuse(NodeId by, const membership::Beat& said, Instant now);
  void ready(const LedMember& member, Instant now);
  void let_serve(Instant now);
  void leave(LedMember& member, const membership::Leave& said, Instant now);
  void frozen(LedMember& member, const membership::Frozen& said, Instant now);
  [[nodiscard]] bool applied(const LedMember& member, const Books::Progress& progress, Instant now);
  void fence(NodeId node, std::string_view why, Instant now) { fence_all({node}, why, now); }
  void fence_all(const std::vector<NodeId>& nodes, std::string_view why, Instant now);
  void fence_reported(Instant now);
  void let_go(const std::vector<NodeId>& losers, Instant now);
  void look_at_departures(Instant now);
  void bury(NodeId node, std::string_view why, Instant now);
  void tell_expelled(Instant now);
  void refuse_for_ever(NodeId node);
  void reach(ControlProbe probe) const { reached(options_.probes, probe); }

  const Options options_;
  Workload& workload_;
  net::Links& links_;
  membership::Lead lead_;
  std::map<std::string, std::string> tokens_;
  AdmittedNodes admitted_;
  LedRun run_;
  CoordinatorOutbox outbox_;
  Watch watch_;
  Books books_;
  Changes changes_;
  Arrivals arrivals_;
  bool arrivals_wait_ = false;  // for members that are missed here alone
  std::optional<Instant> joining_leave_until_;
  std::optional<Instant> last_word_;  // until then it answers members that were fenced while the run ends
};

}  // namespace gossamer::cluster
