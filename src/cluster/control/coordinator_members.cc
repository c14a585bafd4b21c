// SPDX-License-Identifier: Apache-2.0
//
// Coordinator, the part that knows who is alive.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "cluster/control/coordinator.h"

namespace gossamer::cluster {

using membership::ToMember;

void Coordinator::here(Member& member, const membership::Here& said, Instant now) {
  if (!member.detector) member.detector.emplace(now);
  const bool knows_view = said.epoch() == view_.epoch().value;
  if (!knows_view || said.epoch() == 0) send_view(member, Epoch(said.epoch()));
  member.told = view_.epoch();
  const bool in_force = phase_ == Phase::kSettled || phase_ == Phase::kStopping;
  if (in_force && installed_.epoch() > said.installed() && said.epoch() != 0) {
    reach(ControlProbe::kInstallAgain);
    send_install(member);
  }
  if (phase_ == Phase::kStopping) {
    ToMember message;
    message.mutable_stop()->set_reason("the run is ending");
    tell(member, std::move(message));
  }
}

void Coordinator::beat(Member& member, const membership::Beat& said, Instant now) {
  const net::PeerId peer = peer_of(member.record);
  ToMember seen;
  seen.mutable_beat_seen()->set_sent_ns(said.sent_ns());
  say(peer, std::move(seen));  // rests on nothing that was decided
  if (said.speed() > 0 && said.speed() < std::numeric_limits<double>::max()) {
    // A time constant of 100 beats: single measurements are noise.
    member.speed = member.speed == 0 ? said.speed() : member.speed + (said.speed() - member.speed) * 0.01;
  }
  std::map<NodeId, Instant> unreachable;
  for (const std::uint64_t node : said.unreachable()) {
    const auto before = member.unreachable.find(NodeId(node));
    unreachable[NodeId(node)] = before == member.unreachable.end() ? now : before->second;
  }
  member.unreachable = std::move(unreachable);
  if (!member.unreachable.empty()) judge_unreachable(now);
  if (Member* const still = find(peer)) applied(*still, said, now);
}

void Coordinator::judge_unreachable(Instant now) {
  // Who has how many partners that it does not reach, counting what either side says for long enough.
  std::map<NodeId, std::size_t> partners;
  for (const auto& [node, member] : members_) {
    for (const auto& [other, since] : member.unreachable) {
      if (!members_.contains(other) || now - since < kUnreachableFor) continue;
      ++partners[node];
      ++partners[other];
    }
  }
  if (partners.empty()) return;
  const auto worse = [&](const auto& a, const auto& b) {
    const auto incarnation = [&](NodeId node) { return members_.at(node).record.incarnation(); };
    return std::pair(a.second, incarnation(a.first)) < std::pair(b.second, incarnation(b.first));
  };
  const NodeId worst = std::max_element(partners.begin(), partners.end(), worse)->first;
  reach(ControlProbe::kUnreachable);
  fence(worst, "it and others cannot reach each other", now);
}

void Coordinator::leave(Member& member, const membership::Leave& said, Instant now) {
  const net::PeerId peer = peer_of(member.record);
  note("leaving", peer, said.reason());
  fence(peer.node, "it left", now);  // the end of its link tells it that it may go
}

void Coordinator::schedule(Member& member) {
  const NodeId node(member.record.node());
  if (member.wake) wakes_.erase({*member.wake, node});
  member.wake = member.detector ? member.detector->next_wakeup() : std::optional(member.deadline);
  if (member.wake) wakes_.insert({*member.wake, node});
}

void Coordinator::watch(Instant now) {
  while (!wakes_.empty() && wakes_.begin()->first <= now) {
    const NodeId node = wakes_.begin()->second;
    Member& member = members_.at(node);
    if (!member.detector) {
      reach(ControlProbe::kNotHereInTime);
      fence(node, "it did not come in time", now);
    } else if (member.detector->verdict(now) == Verdict::kDead) {
      reach(ControlProbe::kSilent);
      fence(node, "it is silent", now);
    } else {
      schedule(member);
      if (member.wake && *member.wake <= now) break;  // cannot be; but never go round for ever
    }
  }
}

void Coordinator::fence(NodeId node, const std::string& why, Instant now) {
  const auto found = members_.find(node);
  CHECK(found != members_.end(), node.value);
  const net::PeerId peer = peer_of(found->second.record);
  const bool in_view = found->second.record.state() != membership::JOINING;
  note("lost", peer, why);
  if (found->second.wake) wakes_.erase({*found->second.wake, node});
  members_.erase(found);
  reports_.erase(node);
  if (in_view) reserve_epoch();
  if (fenced_.fence(peer.incarnation)) {
    outbox_.put(put_fenced(fenced_));
    fenced_since_.push_back({peer.incarnation, peer.incarnation});
  }
  outbox_.put(remove_member(peer.incarnation));
  free_everything_of(peer.incarnation);
  refuse(peer);
  if (in_view && phase_ != Phase::kStopping) begin_change(now);
}

}  // namespace gossamer::cluster
