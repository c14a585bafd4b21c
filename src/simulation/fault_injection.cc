// SPDX-License-Identifier: Apache-2.0
#include "simulation/fault_injection.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "simulation/fleet.h"

namespace gossamer::simulation {
namespace {

constexpr host::MachineRates kSlowRates{125e3, 125e3};
constexpr host::PathQuality kLossyPath{
    .delay = from_milliseconds(30), .jitter = from_milliseconds(20), .loss = 0.2};

// Another machine than `but`, of a member or a coordinator.
std::string pick_machine(const Fleet& fleet, std::uint64_t number, const std::string& but) {
  std::vector<std::string> machines = fleet.coordinator_machines();
  for (const std::string& machine : fleet.member_machines()) {
    if (machine != but) machines.push_back(machine);
  }
  return machines[number % machines.size()];
}

void give_notice(Fleet& fleet, SimMember& member, Duration notice) {
  fleet.timeline().after(notice, [&fleet, machine = member.machine(), node = member.node()] {
    SimMember* const still = fleet.find(machine);
    if (still == nullptr || still->node() != node) return;  // another member has the machine by now
    fleet.note_struck(*still, Struck::kForGood);            // it may have had no life when the notice came
    fleet.kill(machine);
    fleet.start_new_member();
  });
  if (!member.paused()) member.drain("it will be killed");
}

// A bit of `other` that has no part in which machine is struck.
host::Lane lane_of(const Fault& fault) {
  return (fault.other >> 60) % 2 == 0 ? host::Lane::kBulk : host::Lane::kControl;
}

void cut_lane(const Fault& fault, Fleet& fleet, const std::string& member, const std::string& other) {
  host::SimInternet& internet = fleet.internet();
  const host::Lane lane = lane_of(fault);
  internet.cut(member, other, lane);
  internet.cut(other, member, lane);
  fleet.timeline().after(fault.lasts, [&internet, member, other, lane] {
    internet.heal(member, other, lane);
    internet.heal(other, member, lane);
  });
}

void strike_path(const Fault& fault, Fleet& fleet, const std::string& member, const std::string& other) {
  host::SimInternet& internet = fleet.internet();
  host::Timeline& timeline = fleet.timeline();
  switch (fault.kind) {
    case FaultKind::kCut: return fleet.cut_for(member, other, fault.lasts);
    case FaultKind::kCutOneWay:
      internet.cut(member, other);
      return timeline.after(fault.lasts, [&internet, member, other] { internet.heal(member, other); });
    case FaultKind::kPartition: return fleet.cut_off_for(member, fault.lasts);
    case FaultKind::kReset: return internet.reset(member, other);
    case FaultKind::kResetLane: return internet.reset(member, other, lane_of(fault));
    case FaultKind::kCutLane: return cut_lane(fault, fleet, member, other);
    case FaultKind::kSlow:
      internet.set_rates(member, kSlowRates);
      return timeline.after(fault.lasts, [&internet, member] { internet.set_rates(member, {}); });
    case FaultKind::kLossy: {
      const host::PathQuality there = fleet.usual_path(member, other);
      const host::PathQuality back = fleet.usual_path(other, member);
      internet.set_path(member, other, kLossyPath);
      internet.set_path(other, member, kLossyPath);
      return timeline.after(fault.lasts, [&internet, member, other, there, back] {
        internet.set_path(member, other, there);
        internet.set_path(other, member, back);
      });
    }
    default: CHECK(false, static_cast<int>(fault.kind));
  }
}

// What the fault does to the member itself. Nothing: it strikes others, or a path. A member that comes back
// within its own patience has all that it had.
std::optional<Struck> strikes_life(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kKill:
    case FaultKind::kPowerOff:
    case FaultKind::kDrain:
    case FaultKind::kLeave:
    case FaultKind::kNotice:
    case FaultKind::kHostile:
    case FaultKind::kLie: return Struck::kForGood;
    case FaultKind::kPause:
    case FaultKind::kPartition:
    case FaultKind::kHang: return fault.lasts < Fleet::kPatience ? Struck::kForAWhile : Struck::kForGood;
    default: return std::nullopt;
  }
}

// Whether the fault cuts a member's line to a coordinator.
bool keeps_apart(const Fault& fault, const Fleet& fleet, const std::string& other) {
  const bool cuts = fault.kind == FaultKind::kCut || fault.kind == FaultKind::kCutOneWay ||
                    fault.kind == FaultKind::kCutLane;
  return cuts && std::ranges::count(fleet.coordinator_machines(), other) > 0;
}

void strike_member(const Fault& fault, Fleet& fleet, const std::string& machine) {
  SimMember& member = fleet.member(machine);
  if (const auto how = strikes_life(fault)) fleet.note_struck(member, *how);
  switch (fault.kind) {
    case FaultKind::kKill: return fleet.kill_for(machine, fault.lasts);
    case FaultKind::kPowerOff:
      if (member.has_own_machine()) fleet.internet().vanish(machine);
      fleet.kill(machine);
      return fleet.timeline().after(fault.lasts, [&fleet] { fleet.start_new_member(); });
    case FaultKind::kPause: return fleet.pause_for(machine, fault.lasts);
    case FaultKind::kHang: return member.hang(fault.lasts);
    case FaultKind::kLongWork: return member.work_for(fault.lasts);
    case FaultKind::kNotice: return give_notice(fleet, member, fault.lasts);
    case FaultKind::kDrain:
      if (!member.paused()) member.drain("it was told to");
      return;
    case FaultKind::kLeave:
      if (!member.paused()) member.leave("it was told to");
      return;
    case FaultKind::kHostile:
    case FaultKind::kLie:
      CHECK(fleet.options().misbehave, "no fault of this fleet", static_cast<int>(fault.kind));
      return fleet.options().misbehave(member, fault);
    default: {
      // A process on the other's machine has no path that could break.
      const std::string other = fleet.where(pick_machine(fleet, fault.other, machine));
      if (other == member.where()) return;
      if (keeps_apart(fault, fleet, other)) fleet.note_struck(member, Struck::kApart);
      return strike_path(fault, fleet, member.where(), other);
    }
  }
}

// A fourth of the coordinators that come back cannot reach their store at first: to campaign, to load, or to
// write.
void kill_leader(const Fault& fault, Fleet& fleet, const std::string& machine) {
  fleet.kill_coordinator_for(machine, fault.lasts, [other = fault.other](SimCoordinator& back) {
    if (other % 4 == 3)
      back.fail_store(static_cast<int>(other / 4 % 3), 1 + static_cast<int>(other / 12 % 3));
  });
}

// Its machine falls silent, or resets its connections.
void lose_leader(const Fault& fault, Fleet& fleet, const std::string& machine) {
  if (!fleet.has_standby()) return kill_leader(fault, fleet, machine);
  fleet.lose_coordinator(machine, fault.other % 2 == 0 ? Fleet::Machine::kSilent : Fleet::Machine::kStays);
}

void strike_leader(const Fault& fault, Fleet& fleet) {
  SimCoordinator* const led = fleet.leading();
  if (led == nullptr) return;
  const std::string machine = led->machine();
  switch (fault.kind) {
    case FaultKind::kKillCoordinator: return kill_leader(fault, fleet, machine);
    case FaultKind::kLoseCoordinator: return lose_leader(fault, fleet, machine);
    case FaultKind::kPauseCoordinator:
      led->pause();
      return fleet.timeline().after(fault.lasts, [&fleet, machine] {
        SimCoordinator* const still = fleet.find_coordinator(machine);
        if (still != nullptr && still->paused()) still->resume();
      });
    case FaultKind::kCutCoordinator: return fleet.cut_off_for(machine, fault.lasts);
    case FaultKind::kStoreFails: return led->fail_store(0, 1 + static_cast<int>(fault.other % 6));
    case FaultKind::kStop: return led->stop("it was told to end");
    case FaultKind::kStoreAway: return led->lose_store(fault.lasts);
    default: CHECK(false, static_cast<int>(fault.kind));
  }
}

}  // namespace

void carry_out(const Fault& fault, Fleet& fleet) {
  const std::vector<std::string> members = fleet.member_machines();
  if (const Trace trace = fleet.trace()) {
    trace("fault",
          fmt::format("{} for {:.2f} s, member {}, other {}", name(fault.kind), fault.lasts.seconds(),
                      members.empty() ? 0 : fault.member % members.size(), fault.other % 97));
  }
  switch (fault.kind) {
    case FaultKind::kKillCoordinator:
    case FaultKind::kLoseCoordinator:
    case FaultKind::kPauseCoordinator:
    case FaultKind::kCutCoordinator:
    case FaultKind::kStoreFails:
    case FaultKind::kStoreAway:
    case FaultKind::kStop: return strike_leader(fault, fleet);
    case FaultKind::kJoin: return fleet.start_new_member();
    default: break;
  }
  if (!members.empty()) strike_member(fault, fleet, members[fault.member % members.size()]);
}

bool Fleet::has_process(const membership::MemberRecord& record) const {
  return std::ranges::any_of(members_, [&](const auto& member) {
    return member.second->life() == Incarnation(record.incarnation());
  });
}

bool Fleet::abandoned() {
  if (leader() == nullptr) return false;
  const auto& serving = leader()->view().members();
  std::set<NodeId> holders;
  for (const auto& [thing, node] : leader()->holdings()) holders.insert(node);
  const auto holds = [&](const auto& one) { return holders.empty() || holders.contains(one.first); };
  return !serving.empty() && !members_.empty() && std::ranges::none_of(serving, [&](const auto& one) {
    return holds(one) && has_process(one.second);
  });
}

bool Fleet::waits_for_dead() {
  if (leader() == nullptr) return false;
  std::map<Incarnation, Instant> since;
  for (const auto& [node, record] : leader()->view().members()) {
    const Incarnation life(record.incarnation());
    const auto known = dead_since_.find(life);
    if (!has_process(record)) since[life] = known == dead_since_.end() ? timeline_.now() : known->second;
  }
  dead_since_ = std::move(since);
  const auto dead = std::ranges::count_if(
      dead_since_, [this](const auto& one) { return timeline_.now() - one.second >= kSurelyFenced; });
  const bool waits = leader()->phase() == cluster::Coordinator::Phase::kWaiting;
  return dead >= (waits ? 1 : 2);
}

}  // namespace gossamer::simulation
