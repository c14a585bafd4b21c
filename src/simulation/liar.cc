// SPDX-License-Identifier: Apache-2.0
#include "simulation/liar.h"

#include <algorithm>
#include <string>

#include "simulation/counting_engine.h"

namespace gossamer::simulation {

using membership::ToCoordinator;

namespace {

// The installed placement gives things to the member's node: to this life, or to the one before.
bool was_given_things(const cluster::Member& member) {
  return std::ranges::any_of(member.installed().holdings(), [&](const membership::Holding& holding) {
    return NodeId(holding.node()) == member.self().node;
  });
}

}  // namespace

Liar::Liar(Lies lies, std::uint64_t seed, std::uint64_t things)
    : lies_(lies),
      rng_(seed, Purpose::kFault, 13),
      things_(things),
      last_number_((std::uint64_t{1} << 63) | (seed >> 2)) {}

// The member to accuse: the youngest of the others, until it is gone. Without other differences a dispute
// would cost the life of the younger one.
std::optional<NodeId> Liar::victim(const cluster::Member& member) {
  if (victim_ && member.view().find(*victim_) != nullptr) return victim_->node;
  victim_.reset();
  for (const auto& [node, record] : member.view().members()) {
    const net::PeerId peer = cluster::peer_of(record);
    if (peer.node != member.self().node && (!victim_ || victim_->incarnation < peer.incarnation))
      victim_ = peer;
  }
  return victim_ ? std::optional(victim_->node) : std::nullopt;
}

// Adds marks for things that others hold, and whose progress only their holders know.
void Liar::claim_progress(google::protobuf::RepeatedPtrField<membership::Progress>& progress,
                          const cluster::Member& member, StepNumber steps) {
  for (const membership::Holding& holding : member.installed().holdings()) {
    if (NodeId(holding.node()) == member.self().node || rng_.below(2) == 0) continue;
    membership::Progress& one = *progress.Add();
    one.set_track(holding.thing());
    one.set_next(steps.value + 1 + rng_.below(1000));
  }
}

// Says that it hears all others, or that all are quiet.
void Liar::tell_of_others(membership::Beat& beat, const cluster::Member& member) {
  beat.clear_hears();
  beat.clear_quiet();
  const bool hears = rng_.below(2) == 0;
  for (const auto& [node, record] : member.view().members()) {
    if (node == member.self().node) continue;
    if (hears) {
      beat.add_hears(node.value);
    } else {
      beat.add_quiet(node.value);
    }
  }
}

void Liar::falsify_beat(membership::Beat& beat, const cluster::Member& member, StepNumber steps) {
  if (accuses()) {
    beat.clear_unreachable();
    if (const auto node = victim(member)) beat.add_unreachable(node->value);
  } else if (lies_ == Lies::kPretends) {
    // While a placement is on its way, the member may hold all these things itself and not know it yet.
    if (member.installed().epoch() == member.view().epoch().value)
      claim_progress(*beat.mutable_progress(), member, steps);
    beat.set_speed(0.01 + 100 * static_cast<double>(rng_.uniform()));
    beat.set_own_work(100 * static_cast<double>(rng_.uniform()));
    if (const auto node = victim(member); node && rng_.below(20) == 0) beat.add_lost(node->value);
    tell_of_others(beat, member);
    beat.set_work_ms(beat.work_ms() + (worked_ms_ += 100));
  }
}

void Liar::falsify(ToCoordinator& said, const cluster::Member& member, StepNumber steps, bool together) {
  if (said.has_beat()) falsify_beat(*said.mutable_beat(), member, steps);
  if (!said.has_frozen()) return;
  membership::Frozen& frozen = *said.mutable_frozen();
  if (lies_ == Lies::kContradicts && together) {
    const bool ahead = steps.value < 3 || rng_.below(2) == 0;
    frozen.set_report(std::to_string(ahead ? steps.value + 3 + rng_.below(1000) : 0));
  } else if (lies_ == Lies::kPretends) {
    claim_progress(*frozen.mutable_progress(), member, steps);
    // A life that has just begun would say with copies that it holds the things of the life before, and has
    // lost steps.
    if (steps == StepNumber() || (frozen.copies().empty() && was_given_things(member))) return;
    for (std::uint64_t thing = 0; thing < things_; ++thing) frozen.add_copies(thing);
  }
}

ToCoordinator Liar::invent(const cluster::Member& member, StepNumber steps) {
  ToCoordinator said;
  switch (rng_.below(6)) {
    case 0: {
      membership::LeaseAsk& ask = *said.mutable_lease();
      ask.set_number(++last_number_);
      ask.set_wish(rng_.below(2) == 0 ? membership::LeaseAsk::RENEW : membership::LeaseAsk::RELEASE);
      ask.mutable_keys()->set_space(1);
      const std::uint64_t key = rng_.below(kLeaseKeys);
      ask.mutable_keys()->set_begin(key);
      ask.mutable_keys()->set_end(key + 1);
      ask.set_duration_ns(from_seconds(1000).ns);
      ask.set_sent_ns(from_seconds(1e6).ns);
      break;
    }
    case 1: {
      membership::ClaimAsk& ask = *said.mutable_claim();
      ask.set_number(++last_number_);
      ask.set_track(rng_.below(things_));
      ask.set_step(rng_.below(10));
      ask.set_begin(ask.step() * kBatch);
      ask.set_end(ask.begin() + 1 + rng_.below(kBatch));
      break;
    }
    case 2:
      said.mutable_commit()->set_number(++last_number_);
      said.mutable_commit()->set_track(rng_.below(things_));
      said.mutable_commit()->set_step(rng_.below(10));
      break;
    case 3:
      said.mutable_here()->set_epoch(rng_.below(member.view().epoch().value + 1));
      said.mutable_here()->set_installed(rng_.below(2));
      break;
    case 4: said.mutable_ready(); break;
    default:
      said.mutable_frozen()->set_epoch(member.view().epoch().value);
      said.mutable_frozen()->set_installed(member.installed().epoch());
      said.mutable_frozen()->set_report(std::to_string(steps.value));
  }
  return said;
}

}  // namespace gossamer::simulation
