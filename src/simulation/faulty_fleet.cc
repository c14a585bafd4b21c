// SPDX-License-Identifier: Apache-2.0
#include "simulation/faulty_fleet.h"

#include <fmt/format.h>

#include "base/check.h"

namespace gossamer::simulation {
namespace {

constexpr host::MachineRates kSlowRates{125e3, 125e3};
constexpr host::PathQuality kLossyPath{
    .delay = from_milliseconds(30), .jitter = from_milliseconds(20), .loss = 0.2};

}  // namespace

FaultyFleet::FaultyFleet(const Options& options)
    : timeline_(options.seed), internet_(timeline_, options.seed), options_(options) {
  internet_.set_default_path(options_.path);
}

Trace FaultyFleet::trace() {
  if (!options_.trace) return {};
  return [this](const std::string& who, const std::string& what) {
    options_.trace((timeline_.now() - Instant{}).seconds(), who, what);
  };
}

SimCoordinator* FaultyFleet::leading() {
  for (const auto& [machine, coordinator] : coordinators_) {
    if (coordinator->leader() != nullptr && !coordinator->paused()) return coordinator.get();
  }
  return nullptr;
}

std::string FaultyFleet::pick_machine(std::uint64_t number, const std::string& but) const {
  std::vector<std::string> machines = coordinator_machines();
  for (const std::string& machine : member_machines()) {
    if (machine != but) machines.push_back(machine);
  }
  return machines[number % machines.size()];
}

void FaultyFleet::cut_for(const std::string& a, const std::string& b, Duration lasts) {
  internet_.cut(a, b);
  internet_.cut(b, a);
  timeline_.after(lasts, [this, a, b] {
    internet_.heal(a, b);
    internet_.heal(b, a);
  });
}

void FaultyFleet::cut_off_for(const std::string& machine, Duration lasts) {
  for (const std::string& other : coordinator_machines()) {
    if (other != machine) cut_for(machine, other, lasts);
  }
  for (const std::string& other : member_machines()) {
    if (other != machine) cut_for(machine, other, lasts);
  }
}

void FaultyFleet::pause_for(const std::string& member, Duration lasts) {
  SimProcess& process = *process_of(member);
  if (process.paused()) return;
  process.pause();
  timeline_.after(lasts, [this, member] {
    if (SimProcess* const still = process_of(member)) still->resume();
  });
}

void FaultyFleet::remove_for(const std::string& member, Duration after) {
  remove(member);
  timeline_.after(after, [this] { start_new_member(); });
}

void FaultyFleet::misbehave(const std::string&, const Fault& fault) {
  CHECK(false, "no fault of this fleet", static_cast<int>(fault.kind));
}

void FaultyFleet::inject(const Fault& fault) {
  ++injected_;
  const std::vector<std::string> members = member_machines();
  if (options_.trace) {
    trace()("fault",
            fmt::format("{} for {:.2f} s, member {}, other {}", name(fault.kind), fault.lasts.seconds(),
                        members.empty() ? 0 : fault.member % members.size(), fault.other % 97));
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
  if (!members.empty()) inject_on_member(fault, members[fault.member % members.size()]);
}

void FaultyFleet::give_notice(const std::string& member, Duration notice) {
  timeline_.after(notice, [this, member] {
    if (process_of(member) == nullptr) return;
    remove(member);
    start_new_member();
  });
  if (!process_of(member)->paused()) drain(member, "it will be killed");
}

void FaultyFleet::inject_on_path(const Fault& fault, const std::string& member, const std::string& other) {
  switch (fault.kind) {
    case FaultKind::kCut: return cut_for(member, other, fault.lasts);
    case FaultKind::kCutOneWay:
      internet_.cut(member, other);
      return timeline_.after(fault.lasts, [this, member, other] { internet_.heal(member, other); });
    case FaultKind::kPartition: return cut_off_for(member, fault.lasts);
    case FaultKind::kReset: return internet_.reset(member, other);
    case FaultKind::kSlow:
      internet_.set_rates(member, kSlowRates);
      return timeline_.after(fault.lasts, [this, member] { internet_.set_rates(member, {}); });
    case FaultKind::kLossy:
      internet_.set_path(member, other, kLossyPath);
      internet_.set_path(other, member, kLossyPath);
      return timeline_.after(fault.lasts, [this, member, other] {
        internet_.set_path(member, other, options_.path);
        internet_.set_path(other, member, options_.path);
      });
    default: CHECK(false, static_cast<int>(fault.kind));
  }
}

void FaultyFleet::inject_on_member(const Fault& fault, const std::string& member) {
  const bool paused = process_of(member)->paused();
  switch (fault.kind) {
    case FaultKind::kKill: return remove_for(member, fault.lasts);
    case FaultKind::kPowerOff:
      internet_.vanish(member);
      remove(member);
      return timeline_.after(fault.lasts, [this] { start_new_member(); });
    case FaultKind::kPause: return pause_for(member, fault.lasts);
    case FaultKind::kHang: return hang(member, fault.lasts);
    case FaultKind::kNotice: return give_notice(member, fault.lasts);
    case FaultKind::kDrain:
      if (!paused) drain(member, "it was told to");
      return;
    case FaultKind::kLeave:
      if (!paused) leave(member, "it was told to");
      return;
    case FaultKind::kHostile:
    case FaultKind::kLie: return misbehave(member, fault);
    default: return inject_on_path(fault, member, pick_machine(fault.other, member));
  }
}

// Kills a coordinator. A fourth of those that come back cannot reach their store at first: to campaign, to
// load, or to write.
void FaultyFleet::kill_coordinator(const std::string& machine, const Fault& fault) {
  coordinators_.erase(machine);
  timeline_.after(fault.lasts, [this, machine, other = fault.other] {
    start_coordinator(machine);
    if (other % 4 == 3)
      coordinators_.at(machine)->fail_store(static_cast<int>(other / 4 % 3),
                                            1 + static_cast<int>(other / 12 % 3));
  });
}

void FaultyFleet::inject_on_coordinator(const Fault& fault) {
  SimCoordinator* const led = leading();
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
    case FaultKind::kCutCoordinator: return cut_off_for(machine, fault.lasts);
    case FaultKind::kStoreFails: return led->fail_store(0, 1 + static_cast<int>(fault.other % 6));
    case FaultKind::kStop: return led->stop("it was told to end");
    case FaultKind::kStoreAway: return led->lose_store(fault.lasts);
    default: CHECK(false, static_cast<int>(fault.kind));
  }
}

}  // namespace gossamer::simulation
