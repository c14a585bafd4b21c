// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/followed_coordinator.h"

#include <algorithm>
#include <utility>

namespace gossamer::cluster {

FollowedCoordinator::FollowedCoordinator(Options options, net::Links& links, AskLead ask_lead, Instant now)
    : options_(std::move(options)),
      links_(links),
      ask_lead_(std::move(ask_lead)),
      rng_(options_.seed, Purpose::kBackoff, 1),
      detector_(now),
      last_heard_(now) {}

void FollowedCoordinator::follow(const membership::LeadAnswer& lead, Instant now) {
  const bool other = Incarnation(lead.incarnation()) != incarnation_;
  if (Generation(lead.generation()) < generation_ && guarded(Defect::kOldGeneration)) return;
  if (!other && links_.linked(kCoordinatorNode)) {
    // The link's own next attempt may be seconds away. One that is under way takes several round trips, as
    // long as many answers to Lead.
    links_.hurry(kCoordinatorNode, now);
    return;
  }
  if (other && incarnation_.value != 0) {
    net::LinkEvents nobody_asks;
    if (guarded(Defect::kOldGeneration)) links_.fence(peer(), now, nobody_asks);
    links_.close(kCoordinatorNode, "another coordinator leads", now);
  }
  lead_ = lead;
  generation_ = Generation(lead.generation());
  incarnation_ = Incarnation(lead.incarnation());
  linked_ = bulk_up_ = false;
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
  search_wait_ = kSearchFirst;
  return true;
}

bool FollowedCoordinator::up() {
  connected_ = true;
  return !std::exchange(linked_, true);
}

void FollowedCoordinator::broken(Instant now) {
  connected_ = false;
  detector_.closed(now);
  search_soon(now);
}

void FollowedCoordinator::search_soon(Instant now) {
  if (!next_search_) next_search_ = now;
}

void FollowedCoordinator::search(Instant now) {
  reached(options_.probes, ControlProbe::kSearched);
  // All members of a coordinator that is gone begin to search at the same moment.
  const double part = 0.75 + 0.5 * static_cast<double>(rng_.uniform());
  next_search_ = now + Duration{static_cast<std::int64_t>(static_cast<double>(search_wait_.ns) * part)};
  search_wait_.ns = std::min(2 * search_wait_.ns, kSearchAtMost.ns);
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
