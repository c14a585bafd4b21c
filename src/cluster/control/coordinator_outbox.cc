// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/coordinator_outbox.h"

#include <utility>

#include "cluster/control/control_message.h"
#include "cluster/control/view.h"

namespace gossamer::cluster {

using membership::ToMember;

CoordinatorOutbox::CoordinatorOutbox(const CoordinatorOptions& options, const LedRun& run, net::Links& links,
                                     Instant now)
    : options_(options),
      run_(run),
      links_(links),
      outbox_(options.guarded(Defect::kReplyBeforePersist) ? DurableOutbox::Order::kKept
                                                           : DurableOutbox::Order::kBroken),
      now_(now) {}

void CoordinatorOutbox::say(net::PeerId to, ToMember message) const {
  message.set_generation(options_.generation.value);
  if (options_.witness != nullptr) options_.witness->said(to, message);
  // Nobody waits for the ticket: a peer asks again for what its link lost.
  (void)links_.send(to, host::Lane::kControl, pack(message), now_);
}

void CoordinatorOutbox::tell(const LedMember& member, ToMember message) {
  outbox_.then([this, to = peer_of(member.record), message = std::move(message)]() mutable {
    say(to, std::move(message));
  });
}

void CoordinatorOutbox::introduce(const LedMember& joins, const LedMember& to) {
  if (&joins == &to || !joins.here || !to.here || joins.record.state() != membership::JOINING) return;
  const bool opens = !reaches(joins.record, to.record) && reaches(to.record, joins.record);
  if (!opens && to.record.state() == membership::JOINING) return;
  ToMember message;
  *message.mutable_joining()->mutable_member() = joins.record;
  tell(to, std::move(message));
}

void CoordinatorOutbox::withdraw(net::PeerId joined) {
  ToMember message;
  message.mutable_gone()->set_node(joined.node.value);
  message.mutable_gone()->set_incarnation(joined.incarnation.value);
  for (const auto& [node, member] : run_.members) {
    if (member.here) tell(member, message);
  }
}

void CoordinatorOutbox::view_changed(const membership::Change& change) {
  set_serving(peers_of(run_.view));
  for (const membership::MemberRecord& changed : change.members()) {
    for (const auto& [node, joins] : run_.members) introduce(joins, run_.members.at(NodeId(changed.node())));
  }
}

void CoordinatorOutbox::refuse(net::PeerId peer) {
  outbox_.then([this, peer] {
    net::LinkEvents nobody_asks;
    if (options_.guarded(Defect::kNoFencing)) links_.fence(peer, now_, nobody_asks);
  });
}

void CoordinatorOutbox::consume(const net::Receipt& receipt) {
  outbox_.then([this, receipt] { links_.consumed(receipt, now_); });
}

void CoordinatorOutbox::note(std::string kind, net::PeerId peer, std::string text) {
  events_.push_back(
      {.kind = std::move(kind), .peer = peer, .epoch = run_.view.epoch(), .text = std::move(text)});
}

void CoordinatorOutbox::committed(Instant now) {
  now_ = now;
  store_fails_ = false;
  outbox_.committed();
}

void CoordinatorOutbox::commit_failed() {
  reached(options_.probes, ControlProbe::kCommitRepeated);
  outbox_.failed();
  if (!store_fails_) note("store_fails", {}, "a commit failed; it is repeated");
  store_fails_ = true;
}

}  // namespace gossamer::cluster
