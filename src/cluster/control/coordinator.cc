// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/printable.h"
#include "cluster/control/control_message.h"

namespace gossamer::cluster {
namespace {

constexpr std::size_t kMaxName = 255;

using membership::ToCoordinator;
using membership::ToMember;

std::map<NodeId, membership::MemberRecord> in_view(const Records& records) {
  std::map<NodeId, membership::MemberRecord> members = records.members;
  std::erase_if(members, [](const auto& one) { return one.second.state() == membership::JOINING; });
  return members;
}

// Whether a text can stand as a host. Others dial it, and it is shown to people. Empty for a node behind NAT.
bool is_host(const std::string& host) {
  return host.size() <= kMaxName && printable(host) == host && host.find(' ') == std::string::npos;
}

Error malformed(const char* what, std::size_t bytes) {
  return {.kind = ErrorKind::kBadData,
          .what = fmt::format("cannot read the question {}", what),
          .got = fmt::format("{} bytes", bytes),
          .expected = "a message of docs/protocols/membership.md",
          .fix = "look whether node and coordinator run the same version"};
}

// Not kRefused: a refusal would end the node, but the asker's own coordinator listens elsewhere.
Error other_run(const std::string& got, const std::string& expected) {
  return {.what = "this coordinator leads another run",
          .got = got,
          .expected = expected,
          .fix = "ask a coordinator of that run, or join this one with a token of it"};
}

}  // namespace

Coordinator::Coordinator(Options options, Records records, Workload& workload, net::Links& links, Instant now)
    : options_(std::move(options)),
      workload_(workload),
      links_(links),
      outbox_(options_.defect == Defect::kReplyBeforePersist ? DurableOutbox::Order::kBroken
                                                             : DurableOutbox::Order::kKept),
      now_(now),
      lead_(records.lead),
      fenced_(records.fenced),
      view_(records.epoch, in_view(records), records.fenced_in_view),
      installed_(records.installed),
      holdings_(records.holdings),
      tokens_(std::move(records.tokens)),
      disputes_(options_.defect == Defect::kShortMemory ? Disputes::Memory::kNone : Disputes::Memory::kKept),
      tracks_(options_.tracks.begin(), options_.tracks.end()),
      leases_(records.leases, records.fenced, now) {
  take_up_rows(records);
  for (const Lease& one : records.leases) {
    if (fenced_.contains(one.holder)) outbox_.put(remove_lease(one));  // fenced before it was freed
  }
  for (auto& [node, record] : records.members) {
    const Incarnation incarnation(record.incarnation());
    if (fenced_.contains(incarnation)) {  // its predecessor got only half-way
      outbox_.put(remove_member(incarnation));
      continue;
    }
    Member& member = members_[node];
    member.record = std::move(record);
    member.deadline = now + kHereTime;
    schedule(member);
  }
  if (fenced_ != records.fenced_in_view) fenced_since_ = fenced_.runs();
  if (installed() != Epoch()) see_who_is_idle(now);
  next_rebalance_ = now + kRebalanceEvery;
  last_heard_ = now;
  if (records.stopping) {
    reach(ControlProbe::kStopTakenUp);
    if (records.stopping->failed())
      failure_ = Error{.what = "the run has failed", .got = records.stopping->reason()};
    begin_stop(records.stopping->reason(), now);
  } else if (view_.epoch() > installed()) {
    reach(ControlProbe::kTakenUpInChange);
    begin_change(now);
  }
}

membership::LeadAnswer Coordinator::lead_answer() const {
  membership::LeadAnswer answer;
  answer.set_generation(options_.generation.value);
  answer.set_incarnation(lead_.incarnation());
  *answer.mutable_listening() = options_.listening;
  for (const membership::Address& address : options_.coordinators) *answer.add_coordinators() = address;
  return answer;
}

void Coordinator::lead(const std::string& bytes, const Answer& answer) const {
  membership::LeadAsk ask;
  if (!ask.ParseFromString(bytes)) return answer(malformed("Lead", bytes.size()));
  if (ask.run() != options_.run) return answer(other_run(ask.run(), options_.run));
  answer(lead_answer().SerializeAsString());
}

void Coordinator::give_node(const std::function<void(NodeId)>& use) {
  const NodeId node(lead_.next_node());
  lead_.set_next_node(node.value + 1);
  outbox_.put(put_lead(lead_));
  outbox_.then([use, node] { use(node); });
}

void Coordinator::keep_token(const std::string& id, const std::string& text) {
  const auto [kept, added] = tokens_.try_emplace(id, text);
  if (!added && kept->second == text) return;
  kept->second = text;
  outbox_.put(put_token(id, text));
}

void Coordinator::forget_token(const std::string& id) {
  if (tokens_.erase(id) != 0) outbox_.put(remove_token(id));
}

membership::MemberRecord Coordinator::new_record(NodeId node, const membership::BeginAsk& ask) {
  membership::MemberRecord record;
  record.set_node(node.value);
  record.set_incarnation(lead_.next_incarnation());
  lead_.set_next_incarnation(lead_.next_incarnation() + 1);
  record.set_state(membership::JOINING);
  record.set_name(ask.name());
  *record.mutable_listening() = ask.listening();
  record.set_memory_bytes(ask.memory_bytes());
  record.set_cores(ask.cores());
  record.set_machine(ask.machine());
  return record;
}

void Coordinator::begin(NodeId node, const std::string& bytes, Answer answer, Instant now) {
  now_ = now;
  membership::BeginAsk ask;
  if (!ask.ParseFromString(bytes)) return answer(malformed("Begin", bytes.size()));
  if (ask.run() != options_.run) return answer(other_run(ask.run(), options_.run));
  const membership::Listening& at = ask.listening();
  const bool long_texts = ask.name().size() > kMaxName || ask.machine().size() > kMaxName;
  if (long_texts || !is_host(at.control().host()) || !is_host(at.bulk().host()))
    return answer(malformed("Begin", bytes.size()));
  if (phase_ == Phase::kStopping) {
    membership::BeginAnswer ends;
    *ends.mutable_stop() = stop_;
    return outbox_.then(
        [answer = std::move(answer), ends = std::move(ends)] { answer(ends.SerializeAsString()); });
  }
  if (node.value == 0) {
    node = NodeId(lead_.next_node());
    lead_.set_next_node(node.value + 1);
  }
  if (members_.contains(node)) {
    reach(ControlProbe::kBeginAgain);
    fence(node, "it began a new life", now);
  }
  Member& member = members_[node];
  member.record = new_record(node, ask);
  member.deadline = now + kHereTime;
  schedule(member);
  outbox_.put(put_lead(lead_));
  if (options_.defect != Defect::kForgottenMember) outbox_.put(put_member(member.record));
  note("begun", peer_of(member.record), member.record.name());

  membership::BeginAnswer begun;
  begun.set_node(node.value);
  begun.set_incarnation(member.record.incarnation());
  *begun.mutable_lead() = lead_answer();
  begun.set_beat_ms(static_cast<std::uint32_t>(options_.beat_every.milliseconds()));
  begun.set_configuration(options_.configuration);
  outbox_.then([this, answer = std::move(answer), begun = std::move(begun)] {
    if (options_.witness != nullptr) options_.witness->began(begun);
    answer(begun.SerializeAsString());
  });
}

void Coordinator::stop(const std::string& reason, Instant now, std::function<void()> durable) {
  now_ = now;
  if (phase_ != Phase::kStopping) {
    membership::Stopping stopping;
    stopping.set_reason(reason);
    stopping.set_failed(failure_.has_value());
    outbox_.put(put_stopping(stopping));
    begin_stop(reason, now);
  }
  if (durable) outbox_.then(std::move(durable));
}

void Coordinator::begin_stop(const std::string& reason, Instant now) {
  phase_ = Phase::kStopping;
  stop_.set_reason(reason);
  stop_.set_failed(failure_.has_value());
  stop_deadline_ = now + kStopTime;
  freeze_deadline_.reset();
  note("stopping", {}, reason);
  for (auto& [node, member] : members_) {
    ToMember message;
    *message.mutable_stop() = stop_;
    tell(member, std::move(message));
  }
}

bool Coordinator::stopped() const {
  return phase_ == Phase::kStopping && members_.empty() && !outbox_.waiting() && !last_word_;
}

std::vector<MemberFacts> Coordinator::members() const {
  std::vector<MemberFacts> facts;
  auto relayed = links_.relayed();
  for (const auto& [node, member] : members_) {
    facts.push_back({.record = &member.record,
                     .pace = member.pace.pace().value_or(Pace{}),
                     .link = links_.statistics(node),
                     .steps = member.steps,
                     .relayed_to = std::move(relayed[node])});
  }
  return facts;
}

Coordinator::Member* Coordinator::find(net::PeerId peer) {
  const auto found = members_.find(peer.node);
  if (found == members_.end() || found->second.record.incarnation() != peer.incarnation.value) return nullptr;
  return &found->second;
}

void Coordinator::committed(Instant now) {
  now_ = now;
  store_fails_ = false;
  outbox_.committed();
}

void Coordinator::commit_failed() {
  reach(ControlProbe::kCommitRepeated);
  outbox_.failed();
  if (!store_fails_) note("store_fails", {}, "a commit failed; it is repeated");
  store_fails_ = true;
}

void Coordinator::on(const net::LinkEvent& event, Instant now) {
  now_ = now;
  if (const auto* const arrived = std::get_if<net::Arrived>(&event)) {
    if (arrived->message.channel == kControlChannel) on_message(arrived->from, arrived->message, now);
    // Consumed only once the consequences are durable. While the store fails, windows bound what waits here.
    return outbox_.then([this, receipt = arrived->receipt] { links_.consumed(receipt, now_); });
  }
  if (const auto* const up = std::get_if<net::LinkUp>(&event)) {
    Member* const member = find(up->peer);
    if (member == nullptr) return refuse(up->peer);
    if (member->detector) heard(*member, now);
    return schedule(*member);
  }
  if (const auto* const other = std::get_if<net::Incompatible>(&event)) {
    // The peer has heard the reason and will not come. It is fenced so that the others do not wait for it,
    // and people learn of it.
    if (find(other->peer) != nullptr) fence(other->peer.node, other->reason.message(), now);
    return;
  }
  std::optional<net::PeerId> gone;
  if (const auto* const broken = std::get_if<net::LinkBroken>(&event)) gone = broken->peer;
  if (const auto* const ended = std::get_if<net::LinkEnded>(&event)) gone = ended->peer;
  Member* const member = gone ? find(*gone) : nullptr;
  if (member == nullptr || !member->detector) return;
  closed(*member, now);
  if (std::holds_alternative<net::LinkEnded>(event)) member->told.reset();
  schedule(*member);
}

// Tells the peer that it is fenced, also if it was fenced before this coordinator led and comes only now.
void Coordinator::refuse(net::PeerId peer) {
  outbox_.then([this, peer] {
    net::LinkEvents nobody_asks;
    if (options_.defect != Defect::kNoFencing) links_.fence(peer, now_, nobody_asks);
  });
}

void Coordinator::on_message(net::PeerId from, const net::Message& message, Instant now) {
  Member* member = find(from);
  if (member == nullptr) return reach(ControlProbe::kFormerLife);  // or gone already
  const auto said = unpack_to_coordinator(message);
  if (!said.ok()) {
    reach(ControlProbe::kMalformed);
    return fence(from.node, said.error().message(), now);
  }
  if (options_.witness != nullptr) options_.witness->heard(from, *said);
  if (!member->here && !said->has_here())
    return reach(ControlProbe::kBeforeHere);  // sent before it knew of us
  heard(*member, now);
  dispatch(*member, *said, now);
  member = find(from);
  if (member != nullptr) schedule(*member);
}

void Coordinator::dispatch(Member& member, const ToCoordinator& said, Instant now) {
  switch (said.kind_case()) {
    case ToCoordinator::kHere: return here(member, said.here());
    case ToCoordinator::kBeat: return beat(member, said.beat(), now);
    case ToCoordinator::kReady:
      if (member.record.state() != membership::JOINING) return;
      member.wants_to_serve = true;
      return want_change(now);
    case ToCoordinator::kDrain:
      if (member.record.state() == membership::DRAINING) return;
      member.wants_to_drain = true;
      return want_change(now);
    case ToCoordinator::kLeave: return leave(member, said.leave(), now);
    case ToCoordinator::kFrozen: return frozen(member, said.frozen(), now);
    case ToCoordinator::kLease: return lease(member, said.lease(), now);
    case ToCoordinator::kClaim: return claim(member, said.claim());
    case ToCoordinator::kCommit: return commit(member, said.commit());
    case ToCoordinator::KIND_NOT_SET: break;
  }
  CHECK(false, static_cast<int>(said.kind_case()));
}

void Coordinator::say(net::PeerId to, ToMember message) const {
  message.set_generation(options_.generation.value);
  if (options_.witness != nullptr) options_.witness->said(to, message);
  // Nobody waits for the ticket: a peer asks again for what its link lost.
  (void)links_.send(to, host::Lane::kControl, pack(message), now_);
}

void Coordinator::tell(const Member& member, ToMember message) {
  outbox_.then([this, to = peer_of(member.record), message = std::move(message)]() mutable {
    say(to, std::move(message));
  });
}

void Coordinator::note(std::string kind, net::PeerId peer, std::string text) {
  events_.push_back({.kind = std::move(kind), .peer = peer, .epoch = view_.epoch(), .text = std::move(text)});
}

void Coordinator::tick(Instant now) {
  now_ = now;
  watch(now);
  const Instant lapsed_by = options_.defect == Defect::kStaleLease ? now + from_seconds(2) : now;
  for (const Lease& lapsed : leases_.expire(lapsed_by)) outbox_.put(remove_lease(lapsed));
  if (marks_due_ && *marks_due_ <= now) write_marks();
  if (next_rebalance_ && *next_rebalance_ <= now) rebalance(now);
  if (freeze_deadline_ && *freeze_deadline_ <= now) fence_the_restless(now);
  if (last_word_ && *last_word_ <= now) last_word_.reset();
  if (stop_deadline_ && *stop_deadline_ <= now) {
    stop_deadline_.reset();
    std::vector<NodeId> all;
    for (const auto& [node, member] : members_) all.push_back(node);
    fence_all(all, "it did not leave in time", now);
  }
}

std::optional<Instant> Coordinator::next_wakeup() const {
  std::optional<Instant> wake = leases_.next_wakeup();
  if (!wakes_.empty()) wake = sooner(wake, wakes_.begin()->first);
  for (const auto& due : {marks_due_, next_rebalance_, freeze_deadline_, stop_deadline_, last_word_}) {
    wake = sooner(wake, due);
  }
  return wake;
}

}  // namespace gossamer::cluster
