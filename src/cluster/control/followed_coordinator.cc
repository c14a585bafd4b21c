// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/followed_coordinator.h"

#include <utility>

namespace gossamer::cluster {

FollowedCoordinator::FollowedCoordinator(Options options, net::Links& links, AskLead ask_lead, Instant now)
    : options_(std::move(options)),
      links_(links),
      ask_lead_(std::move(ask_lead)),
      detector_(now),
      last_heard_(now) {}

void FollowedCoordinator::follow(const membership::LeadAnswer& lead, Instant now) {
  const bool other = Incarnation(lead.incarnation()) != incarnation_;
  if (Generation(lead.generation()) < generation_ && guarded(Defect::kOldGeneration)) return;
  if (!other && links_.linked(kCoordinatorNode)) {
    // This process stood still and goes on. The link's own attempts may be seconds apart by now.
    const bool redials = !redialed_ || now - *redialed_ >= kRedialAfter;
    if (links_.statistics(kCoordinatorNode).up || !redials) return;
    redialed_ = now;
    links_.close(kCoordinatorNode, "it is dialed anew", now);
  }
  if (other && incarnation_.value != 0) {
    net::LinkEvents nobody_asks;
    if (guarded(Defect::kOldGeneration)) links_.fence(peer(), now, nobody_asks);
    links_.close(kCoordinatorNode, "another coordinator leads", now);
  }
  lead_ = lead;
  generation_ = Generation(lead.generation());
  incarnation_ = Incarnation(lead.incarnation());
  linked_ = false;
  heard_ = false;
  links_.open(address_of(kCoordinatorNode, lead.listening()), now);
}

void FollowedCoordinator::answered(const std::string& answer, Instant now) {
  membership::LeadAnswer lead;
  if (lead.ParseFromString(answer) && lead.incarnation() != 0) follow(lead, now);
}

bool FollowedCoordinator::heard(Generation generation, Instant now) {
  if (generation < generation_ && guarded(Defect::kOldGeneration)) return false;
  if (!heard_ || detector_.verdict(now) == Verdict::kDead) detector_ = FailureDetector(now);
  heard_ = true;
  detector_.heard(now);
  last_heard_ = now;
  next_search_.reset();
  return true;
}

bool FollowedCoordinator::up() { return !std::exchange(linked_, true); }

void FollowedCoordinator::broken(Instant now) {
  detector_.closed(now);
  search_soon(now);
}

void FollowedCoordinator::search_soon(Instant now) {
  if (!next_search_) next_search_ = now;
}

void FollowedCoordinator::search(Instant now) {
  reached(options_.probes, ControlProbe::kSearched);
  next_search_ = now + kSearchEvery;
  membership::LeadAsk ask;
  ask.set_run(options_.run);
  const auto& known = lead_.coordinators();
  if (known.empty()) {
    ask_lead_(address_of(kCoordinatorNode, lead_.listening()).control, ask.SerializeAsString());
    return;
  }
  const membership::Address& address =
      known[static_cast<int>(next_address_++ % static_cast<std::size_t>(known.size()))];
  ask_lead_({.host = address.host(), .port = static_cast<std::uint16_t>(address.port())},
            ask.SerializeAsString());
}

void FollowedCoordinator::tick(Instant now) {
  if (detector_.verdict(now) != Verdict::kAlive) search_soon(now);
  if (next_search_ && *next_search_ <= now) search(now);
}

}  // namespace gossamer::cluster
