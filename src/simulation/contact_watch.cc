// SPDX-License-Identifier: Apache-2.0
#include "simulation/contact_watch.h"

#include <fmt/format.h>

#include <vector>

#include "cluster/control/view.h"
#include "net/link/connection.h"
#include "simulation/fleet.h"

namespace gossamer::simulation {
namespace {

// With what a loop may be late.
constexpr Duration kLongestSilence = net::Connection::kSilence + from_seconds(2);
constexpr Duration kInTouch{1'000'000'000};  // beats come ten times a second, and so do their answers
constexpr Duration kDeaf{2'000'000'000};     // Pings come every second

// Keeps since when each has been seen, and forgets those that are not seen now.
template <class Key>
void keep(std::map<Key, Instant>& since, const std::set<Key>& seen, Instant now) {
  std::erase_if(since, [&](const auto& one) { return !seen.contains(one.first); });
  for (const Key& one : seen) since.try_emplace(one, now);
}

bool heard_within(const net::LaneStatistics& lane, Duration time, Instant now) {
  return lane.last_heard && now - *lane.last_heard <= time;
}

bool in_touch(SimMember& member, SimCoordinator& lead) {
  if (member.paused() || member.member() == nullptr) return false;
  const auto control = [](const net::Links& links, NodeId node) {
    return links.statistics(node).lane(host::Lane::kControl);
  };
  const net::LaneStatistics there = control(*member.links(), cluster::kCoordinatorNode);
  const net::LaneStatistics here = control(*lead.links(), member.member()->self().node);
  return there.up && heard_within(there, kInTouch, member.now()) && here.up &&
         heard_within(here, kInTouch, lead.now());
}

// What the member hears of those others that are in touch with the leader, too. Two that listen nowhere have
// no way but through it.
void see(SimMember& member, PairWatch::Seen& seen) {
  const cluster::View& view = member.member()->view();
  const Incarnation self = member.member()->self().incarnation;
  const auto own = view.find(member.member()->self());
  if (own == nullptr) return;
  for (const auto& [node, record] : view.members()) {
    const Incarnation other(record.incarnation());
    if (other == self || !seen.led.contains(other)) continue;
    if (!cluster::listens(own->listening()) && !cluster::listens(record.listening())) continue;
    const net::LaneStatistics lane = member.links()->statistics(node).lane(host::Lane::kControl);
    if (!heard_within(lane, kDeaf, member.now())) seen.deaf.insert({self, other});
  }
}

PairWatch::Seen seen_in(Fleet& fleet) {
  PairWatch::Seen seen;
  SimCoordinator* const lead = fleet.leading();
  if (lead == nullptr) return seen;
  std::vector<SimMember*> led;
  for (const auto& [machine, member] : fleet.members()) {
    if (!in_touch(*member, *lead)) continue;
    const Incarnation life = member->member()->self().incarnation;
    if (fleet.marked().struck(life)) continue;  // others may refuse it
    seen.led.insert(life);
    led.push_back(member.get());
  }
  for (SimMember* const member : led) see(*member, seen);
  return seen;
}

// A lane that stands for longer than its silence time, and on which nothing comes, carries nothing, and
// nobody takes another way.
std::optional<std::string> silent_lane(SimMember& member) {
  if (member.paused() || member.links() == nullptr || member.member() == nullptr) return std::nullopt;
  std::vector<NodeId> peers{cluster::kCoordinatorNode};
  for (const auto& [node, record] : member.member()->view().members()) peers.push_back(node);
  for (const NodeId peer : peers) {
    for (const host::Lane lane : {host::Lane::kControl, host::Lane::kBulk}) {
      const net::LaneStatistics one = member.links()->statistics(peer).lane(lane);
      if (!one.up || !one.last_heard || heard_within(one, kLongestSilence, member.now())) continue;
      return fmt::format("{} holds the {} lane to node {}, silent for {:.1f} s", member.machine(), name(lane),
                         peer.value, (member.now() - *one.last_heard).seconds());
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> PairWatch::look(const Seen& seen, Instant now) {
  keep(led_since_, seen.led, now);
  keep(deaf_since_, seen.deaf, now);
  const auto for_long = [&](Instant since) { return now - since >= kOtherWay; };
  for (const auto& [pair, since] : deaf_since_) {
    const auto [one, other] = pair;
    const auto is_led = [&](Incarnation life) {
      return led_since_.contains(life) && for_long(led_since_.at(life));
    };
    if (!for_long(since) || !is_led(one) || !is_led(other)) continue;
    return fmt::format(
        "incarnation {} hears nothing of incarnation {} for {:.1f} s, and both hear the leader", one.value,
        other.value, (now - since).seconds());
  }
  return std::nullopt;
}

std::optional<std::string> ContactWatch::look(Fleet& fleet) {
  for (const auto& [machine, member] : fleet.members()) {
    if (auto what = silent_lane(*member)) return what;
  }
  return pairs_.look(seen_in(fleet), fleet.timeline().now());
}

}  // namespace gossamer::simulation
