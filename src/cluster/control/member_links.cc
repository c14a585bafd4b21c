// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/member_links.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace gossamer::cluster {
namespace {

membership::MemberRecord own_record(const MemberLinks::Options& options) {
  membership::MemberRecord own;
  *own.mutable_listening() = options.listening;
  own.set_machine(options.machine);
  return own;
}

}  // namespace

MemberLinks::MemberLinks(Options options, const View& view, net::Links& links)
    : options_(std::move(options)), own_(own_record(options_)), view_(view), links_(links) {
  tell_known();
}

// A node could claim a life that no coordinator gave it, and lose one after another. So only those count of
// which the coordinator has told.
void MemberLinks::tell_known() {
  std::set<net::PeerId> lives = peers_of(view_);
  for (const auto& [node, record] : expected_) lives.insert(peer_of(record));
  links_.set_known(std::move(lives));
}

bool MemberLinks::up(net::PeerId peer, Instant now) {
  down_since_.erase(peer.node);
  reopening_.erase(peer.node);
  met_[peer.node] = peer.incarnation;
  if (!links_.statistics(peer.node).relayed_by) {
    by_relay_.erase(peer.node);
  } else {
    by_relay_.insert(peer.node);
  }
  if (view_.fenced().contains(peer.incarnation)) {  // before its link came up
    refuse_fenced(now);
    return false;
  }
  send_kept(peer, now);
  return true;
}

// Notes since when a member is out of reach. If it was silent before its connection broke, that counts.
void MemberLinks::down(NodeId node, Instant now) {
  const auto heard = links_.statistics(node).lane(host::Lane::kControl).last_heard;
  down_since_.try_emplace(node, heard.value_or(now));
  if (!guarded(Defect::kOldNews)) lost_.insert(node);
}

void MemberLinks::open_failed(NodeId node, Instant now) { down_since_.try_emplace(node, now); }

void MemberLinks::reroute(Instant now) {
  if (now < next_reroute_) return;
  next_reroute_ = now + kRerouteEvery;
  for (const host::Lane lane : {host::Lane::kControl, host::Lane::kBulk}) {
    for (const auto& [node, record] : view_.members()) reroute(record, lane, now);
    for (const auto& [node, record] : expected_) reroute(record, lane, now);
  }
  watch_bulk(now);
}

// A firewall, NAT or a router without power may stand between the two, and the coordinator still reach both.
// One of two ways may also be blocked in one direction, or for one lane. The other lane stays where it is,
// unless it is silent, too.
void MemberLinks::reroute(const membership::MemberRecord& record, host::Lane lane, Instant now) {
  const NodeId node(record.node());
  auto blocked = links_.blocked_since(node, lane, now);
  if (!blocked || !reaches(own_, record) || !guarded(Defect::kNoOtherWay)) return;
  Way& way = ways_.try_emplace({node, lane}, Way{.since = now}).first->second;
  if (lane == host::Lane::kBulk) blocked = std::min(*blocked, left_behind(node, way, now));
  // Each way has its time.
  if (now - std::max(*blocked, way.since) < kUnreachableAfter) {
    if (!way.relayed || now - way.since < way.relayed_for) return;
    way.relayed_for.ns = std::min(2 * way.relayed_for.ns, kRelayedAtMost.ns);
  }
  reach(ControlProbe::kOtherWay);
  if (lane == host::Lane::kBulk && links_.statistics(node).up) reach(ControlProbe::kBulkOtherWay);
  way.relayed = !way.relayed;
  way.since = now;
  net::PeerAddress address = address_of(node, record.listening());
  if (way.relayed) address = {.node = node, .via = kCoordinatorNode};
  (void)links_.reroute(address, lane, now);
}

// A path that is cut takes both lanes. Once control has left it, a bulk lane on which nothing comes need not
// wait for the end of its connection. Returns since when it is silent; now, if that does not count.
Instant MemberLinks::left_behind(NodeId node, const Way& bulk, Instant now) const {
  const auto control = ways_.find({node, host::Lane::kControl});
  if (control == ways_.end() || control->second.relayed == bulk.relayed) return now;
  return links_.statistics(node).lane(host::Lane::kBulk).last_heard.value_or(now);
}

// Notes since when messages wait for a bulk lane that is down. A lane that comes up and carries nothing lets
// them wait on.
void MemberLinks::watch_bulk(Instant now) {
  for (const auto& [node, record] : view_.members()) {
    const net::LaneStatistics bulk = links_.statistics(node).lane(host::Lane::kBulk);
    const auto waits = bulk_waits_.find(node);
    if (waits == bulk_waits_.end()) {
      if (!bulk.up && bulk.queued_bytes > 0) bulk_waits_[node] = {now, bulk.acknowledged_bytes};
    } else if (bulk.queued_bytes == 0 || bulk.acknowledged_bytes != waits->second.acknowledged ||
               (bulk.up && now - bulk.since > kBulkStays)) {
      bulk_waits_.erase(waits);
    }
  }
}

bool MemberLinks::ended(net::PeerId peer, Instant now) {
  const bool of_view = view_.find(peer) != nullptr;
  if (of_view) lost_.insert(peer.node);
  for (const host::Lane lane : {host::Lane::kControl, host::Lane::kBulk}) ways_.erase({peer.node, lane});
  bulk_waits_.erase(peer.node);
  Reopening& reopening = reopening_[peer.node];
  reopening.when = now + reopening.wait;
  reopening.wait.ns = std::min(2 * reopening.wait.ns, kReopenAtMost.ns);
  return of_view;
}

bool MemberLinks::cut(net::PeerId peer, Instant now) {
  if (view_.find(peer) == nullptr) {
    net::LinkEvents nobody_asks;
    links_.fence(peer, now, nobody_asks);
    return false;
  }
  return part(peer, "a rule was broken", now);
}

bool MemberLinks::part(net::PeerId peer, const std::string& why, Instant now) {
  const auto met = met_.find(peer.node);
  if (!links_.linked(peer.node) || met == met_.end() || met->second != peer.incarnation) return false;
  links_.close(peer.node, why, now);
  down(peer.node, now);
  return ended(peer, now);
}

void MemberLinks::forget_losses() {
  if (guarded(Defect::kOldNews)) lost_.clear();
}

void MemberLinks::view_changed(Instant now) {
  refuse_fenced(now);
  tell_known();
  watch_peers(now);
  connect(now);
}

// Refuses fenced members, also those that were joining: they have links but stand in no view. All lives of an
// expelled node are refused, as it may claim any.
void MemberLinks::refuse_fenced(Instant now) {
  for (auto met = met_.begin(); met != met_.end();) {
    const net::PeerId peer{met->first, met->second};
    if (peer.node == kCoordinatorNode || !view_.fenced().contains(peer.incarnation)) {
      ++met;
      continue;
    }
    net::LinkEvents nobody_asks;
    if (guarded(Defect::kNoFencing)) links_.fence(peer, now, nobody_asks);
    kept_.erase(peer);
    met = met_.erase(met);
  }
  for (const NodeId node : view_.expelled()) {
    if (!expelled_.insert(node).second) continue;
    net::LinkEvents nobody_asks;
    links_.fence({node, Incarnation(std::numeric_limits<std::uint64_t>::max())}, now, nobody_asks);
  }
  const auto gone = [this](const auto& one) { return !view_.members().contains(one.first); };
  std::erase_if(down_since_, gone);
  std::erase_if(reopening_, gone);
  std::erase_if(bulk_waits_, gone);
  std::erase_if(ways_, [this](const auto& one) {
    const NodeId node = one.first.first;
    return !view_.members().contains(node) && !expected_.contains(node);
  });
  std::erase_if(by_relay_, [this](NodeId node) { return !view_.members().contains(node); });
  std::erase_if(doubted_, [this](NodeId node) { return !view_.members().contains(node); });
  std::erase_if(kept_, [this](const auto& one) { return view_.find(one.first) == nullptr; });
  std::erase_if(expected_, [this](const auto& one) {
    const net::PeerId peer = peer_of(one.second);
    return view_.find(peer) != nullptr || view_.fenced().contains(peer.incarnation);
  });
}

void MemberLinks::watch_peers(Instant now) {
  std::set<NodeId> peers;
  for (const auto& [node, record] : view_.members()) {
    if (node != options_.self.node) peers.insert(node);
  }
  silences_.watch(peers, now);
}

std::set<NodeId> MemberLinks::out_of_reach(Instant now) {
  std::set<NodeId> nodes = silences_.silent(now, [&](NodeId peer) { return last_sign(peer, now); });
  const std::set<NodeId> gone = without_bulk(now);
  nodes.insert(gone.begin(), gone.end());
  return nodes;
}

// Once messages have waited for too long for one bulk lane, all count that have been gone for as long. Which
// end of a lane has lost it is seen by how many it has lost.
std::set<NodeId> MemberLinks::without_bulk(Instant now) const {
  std::set<NodeId> nodes;
  for (const auto& [node, waits] : bulk_waits_) {
    if (now - waits.since >= kBulkPatience) nodes.insert(node);
  }
  if (nodes.empty()) return nodes;
  for (const auto& [node, record] : view_.members()) {
    const net::LinkStatistics link = links_.statistics(node);
    const net::LaneStatistics& bulk = link.lane(host::Lane::kBulk);
    if (link.link != 0 && !bulk.up && now - bulk.since >= kBulkPatience) nodes.insert(node);
  }
  return nodes;
}

// A member that died soon after it began may never have had a link, though one of the two could open it.
bool MemberLinks::should_have_met(NodeId node, Instant now) const {
  const auto record = view_.members().find(node);
  const auto down = down_since_.find(node);
  return record != view_.members().end() && down != down_since_.end() && now - down->second >= kQuietAfter &&
         (reaches(own_, record->second) || reaches(record->second, own_));
}

MemberLinks::Word MemberLinks::on_doubted(Instant now) const {
  Word word;
  for (const NodeId node : doubted_) {
    if (by_relay_.contains(node)) continue;
    if (!met_.contains(node)) {
      if (should_have_met(node, now)) word.quiet.push_back(node);
      continue;
    }
    const net::LinkStatistics link = links_.statistics(node);
    if (link.relayed_by) continue;
    const bool hears = link.up && link.last_heard && now - *link.last_heard < kQuietAfter;
    (hears ? word.hears : word.quiet).push_back(node);
  }
  return word;
}

std::uint64_t MemberLinks::moved_bytes() const {
  const net::LinkStatistics lead = links_.statistics(kCoordinatorNode);
  const net::LaneStatistics& bulk = lead.lane(host::Lane::kBulk);
  std::uint64_t bytes = bulk.received_bytes + bulk.acknowledged_bytes;
  for (const auto& [node, record] : view_.members()) {
    if (node == options_.self.node) continue;
    const net::LinkStatistics link = links_.statistics(node);
    bytes += link.received_bytes + link.acknowledged_bytes;
  }
  return bytes;
}

// When the member was last heard on its control lane. An open connection says nothing about the way back: a
// member is cut off if nothing comes over it. The bulk lane says nothing about the control lane.
Instant MemberLinks::last_sign(NodeId node, Instant now) const {
  const auto down = down_since_.find(node);
  if (down != down_since_.end()) return down->second;
  return links_.statistics(node).lane(host::Lane::kControl).last_heard.value_or(now);
}

void MemberLinks::relay_is_back(Instant now) {
  for (auto& [node, since] : down_since_) {
    if (by_relay_.contains(node)) since = now;
  }
  for (auto& [node, waits] : bulk_waits_) waits.since = now;
}

bool MemberLinks::reaches_all() const {
  return std::all_of(view_.members().begin(), view_.members().end(), [this](const auto& one) {
    return peer_of(one.second) == options_.self || is_up(one.first);
  });
}

bool MemberLinks::is_up(NodeId node) const {
  const net::LinkStatistics link = links_.statistics(node);
  return std::ranges::all_of(link.lanes, [](const net::LaneStatistics& lane) { return lane.up; });
}

void MemberLinks::expect(const membership::MemberRecord& record, Instant now) {
  // It is a hint. Views alone say who lives, also under this member's own number.
  if (NodeId(record.node()) <= kCoordinatorNode || NodeId(record.node()) == options_.self.node) return;
  expected_[NodeId(record.node())] = record;
  tell_known();
  connect(now);
}

bool MemberLinks::gone(net::PeerId peer, Instant now) {
  if (view_.find(peer) != nullptr || peer == options_.self || peer.node == kCoordinatorNode) return false;
  net::LinkEvents nobody_asks;
  if (guarded(Defect::kNoFencing)) links_.fence(peer, now, nobody_asks);
  const auto of_it = [peer](const auto& one) { return peer_of(one.second) == peer; };
  std::erase_if(expected_, of_it);
  tell_known();
  return true;
}

void MemberLinks::connect(Instant now) {
  for (const auto& [node, record] : view_.members()) connect_to(record, now);
  // A joining member opens all of its links itself, but not to members that it cannot reach.
  for (const auto& [node, record] : expected_) {
    if (!reaches(record, own_) && reaches(own_, record)) connect_to(record, now);
  }
}

// Opens a link to a member. The younger of two opens it, unless only the older can.
void MemberLinks::connect_to(const membership::MemberRecord& record, Instant now) {
  const net::PeerId peer = peer_of(record);
  if (peer == options_.self || (links_.linked(peer.node) && !links_.forsaken(peer.node, now))) return;
  const Instant down = down_since_.try_emplace(peer.node, now).first->second;
  const auto reopening = reopening_.find(peer.node);
  if (reopening != reopening_.end() && reopening->second.when > now) return;
  const bool younger = options_.self.incarnation > peer.incarnation || !serving();
  const bool can = reaches(own_, record);
  const bool other_can = reaches(record, own_);
  if (can && (younger || !other_can)) return links_.open(address_of(peer.node, record.listening()), now);
  if (can || !younger || (other_can && serving())) return;
  // A joining member is in nobody's view yet. The other learns of it from the coordinator, and opens the
  // link.
  if (other_can && now - down < kIntroducedIn) return;
  reach(ControlProbe::kRelayed);
  by_relay_.insert(peer.node);
  links_.open({.node = peer.node, .via = kCoordinatorNode}, now);
}

bool MemberLinks::send(net::PeerId to, host::Lane lane, net::Message message, Instant now) {
  if (view_.find(to) == nullptr) return false;
  const auto kept = kept_.find(to);
  if (kept == kept_.end() && !links_.linked(to.node)) reach(ControlProbe::kMessageKept);
  // The older of two waits until the younger has opened the link.
  const bool waits = kept != kept_.end() || !links_.linked(to.node);
  if (waits || !links_.send(to, lane, message, now).has_value())
    kept_[to].emplace_back(lane, std::move(message));
  return true;
}

void MemberLinks::send_kept(net::PeerId to, Instant now) {
  const auto kept = kept_.find(to);
  if (kept == kept_.end()) return;
  for (auto& [lane, message] : kept->second) (void)links_.send(to, lane, std::move(message), now);
  kept_.erase(kept);
}

}  // namespace gossamer::cluster
