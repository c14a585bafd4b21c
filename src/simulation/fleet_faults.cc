// SPDX-License-Identifier: Apache-2.0
//
// Fleet, the part that does things to it.
#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "base/check.h"
#include "simulation/fleet.h"

namespace gossamer::simulation {
namespace {

constexpr host::MachineRates kSlowRates{125e3, 125e3};
constexpr host::PathQuality kLossyPath{
    .delay = from_milliseconds(30), .jitter = from_milliseconds(20), .loss = 0.2};

}  // namespace

void Fleet::cut(const std::string& a, const std::string& b, Duration lasts) {
  internet_.cut(a, b);
  internet_.cut(b, a);
  timeline_.after(lasts, [this, a, b] {
    internet_.heal(a, b);
    internet_.heal(b, a);
  });
}

void Fleet::cut_off(const std::string& machine, Duration lasts) {
  for (const std::string& other : coordinator_machines()) {
    if (other != machine) cut(machine, other, lasts);
  }
  for (const auto& [other, member] : members_) {
    if (other != machine) cut(machine, other, lasts);
  }
}

void Fleet::inject(const Fault& fault) {
  ++injected_;
  if (options_.trace) {
    trace()("fault",
            fmt::format("{} for {:.2f} s, member {}, other {}", name(fault.kind), fault.lasts.seconds(),
                        members_.empty() ? 0 : fault.member % members_.size(), fault.other % 97));
  }
  switch (fault.kind) {
    case FaultKind::kKillCoordinator:
    case FaultKind::kPauseCoordinator:
    case FaultKind::kCutCoordinator:
    case FaultKind::kStoreFails:
    case FaultKind::kStoreAway:
    case FaultKind::kStop: return inject_on_coordinator(fault);
    case FaultKind::kJoin: return start_new_member();
    default: break;
  }
  if (SimMember* const member = pick(fault.member)) inject_on_member(fault, *member);
}

void Fleet::remove_for(const std::string& machine, Duration after) {
  const NodeId node = members_.at(machine)->node();
  remove(machine);
  timeline_.after(after, [this, node] { start_member(node); });
}

void Fleet::pause(SimMember& member, Duration lasts) {
  if (member.paused()) return;
  member.pause();
  timeline_.after(lasts, [this, machine = member.machine()] {
    const auto found = members_.find(machine);
    if (found != members_.end()) found->second->resume();
  });
}

void Fleet::give_notice(SimMember& member, Duration notice) {
  timeline_.after(notice, [this, machine = member.machine()] {
    if (!members_.contains(machine)) return;
    remove(machine);
    start_new_member();
  });
  if (!member.paused()) member.wants_to_leave("it will be killed");
}

void Fleet::turn_hostile(SimMember& member) {
  if (member.paused()) return;
  const Incarnation life = member.turn_hostile();
  if (life.value != 0) hostile_.push_back(life);
}

void Fleet::turn_liar(SimMember& member, const Fault& fault) {
  // Half of them accuse: that takes time, and a contradiction ends the run.
  constexpr std::array kLies{Lies::kAccuses, Lies::kPretends, Lies::kAccuses, Lies::kContradicts};
  const Lies lies = kLies[fault.other % kLies.size()];
  contradicted_ = contradicted_ || lies == Lies::kContradicts;
  member.lie(lies, fault.lasts, [this, lies](Incarnation life) {
    liars_.insert(life);
    if (lies != Lies::kAccuses) pretenders_.insert(life);
  });
}

void Fleet::inject_on_member(const Fault& fault, SimMember& member) {
  const std::string machine = member.machine();
  const std::string other = pick_machine(fault.other, machine);
  switch (fault.kind) {
    case FaultKind::kKill: return remove_for(machine, fault.lasts);
    case FaultKind::kPowerOff:
      internet_.vanish(machine);
      remove(machine);
      return timeline_.after(fault.lasts, [this] { start_new_member(); });
    case FaultKind::kPause: return pause(member, fault.lasts);
    case FaultKind::kCut: return cut(machine, other, fault.lasts);
    case FaultKind::kCutOneWay:
      internet_.cut(machine, other);
      return timeline_.after(fault.lasts, [this, machine, other] { internet_.heal(machine, other); });
    case FaultKind::kPartition: return cut_off(machine, fault.lasts);
    case FaultKind::kReset: return internet_.reset(machine, other);
    case FaultKind::kSlow:
      internet_.set_rates(machine, kSlowRates);
      return timeline_.after(fault.lasts, [this, machine] { internet_.set_rates(machine, {}); });
    case FaultKind::kLossy:
      internet_.set_path(machine, other, kLossyPath);
      internet_.set_path(other, machine, kLossyPath);
      return timeline_.after(fault.lasts, [this, machine, other] {
        internet_.set_path(machine, other, options_.path);
        internet_.set_path(other, machine, options_.path);
      });
    case FaultKind::kHang: return member.hang(fault.lasts);
    case FaultKind::kHostile: return turn_hostile(member);
    case FaultKind::kLie: return turn_liar(member, fault);
    case FaultKind::kNotice: return give_notice(member, fault.lasts);
    case FaultKind::kDrain:
      if (!member.paused()) member.wants_to_leave("it was told to");
      return;
    case FaultKind::kLeave:
      if (!member.paused()) member.leave("it was told to");
      return;
    default: CHECK(false, static_cast<int>(fault.kind));
  }
}

// A fourth of those that come back cannot reach their store at first: to campaign, to load, or to write.
void Fleet::kill_coordinator(const std::string& machine, const Fault& fault) {
  coordinators_.erase(machine);
  timeline_.after(fault.lasts, [this, machine, other = fault.other] {
    start_coordinator(machine);
    if (other % 4 == 3)
      coordinators_.at(machine)->fail_store(static_cast<int>(other / 4 % 3),
                                            1 + static_cast<int>(other / 12 % 3));
  });
}

void Fleet::inject_on_coordinator(const Fault& fault) {
  SimCoordinator* const led = leader();
  if (led == nullptr) return;
  const std::string machine = led->machine();
  switch (fault.kind) {
    case FaultKind::kKillCoordinator: return kill_coordinator(machine, fault);
    case FaultKind::kPauseCoordinator:
      led->pause();
      return timeline_.after(fault.lasts, [this, machine] {
        const auto found = coordinators_.find(machine);
        if (found != coordinators_.end() && found->second->paused()) found->second->resume();
      });
    case FaultKind::kCutCoordinator: return cut_off(machine, fault.lasts);
    case FaultKind::kStoreFails: return led->fail_store(0, 1 + static_cast<int>(fault.other % 6));
    case FaultKind::kStop: return led->stop("it was told to end");
    case FaultKind::kStoreAway: return led->lose_store(fault.lasts);
    default: CHECK(false, static_cast<int>(fault.kind));
  }
}

}  // namespace gossamer::simulation
