// SPDX-License-Identifier: Apache-2.0
#include "simulation/cluster_chaos.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "simulation/sim_coordinator.h"
#include "simulation/sim_member.h"

namespace gossamer::simulation {
namespace {

constexpr Duration kLookEvery{50'000'000};
constexpr Instant kFirstFault{5'000'000'000};
constexpr host::MachineRates kSlowRates{125e3, 125e3};
constexpr host::PathQuality kLossyPath{
    .delay = from_milliseconds(30), .jitter = from_milliseconds(20), .loss = 0.2};

membership::Listening coordinator_listening(const std::string& machine) {
  return cluster::listening_of(
      {.node = cluster::kCoordinatorNode, .control = {machine, 7000}, .bulk = {machine, 7001}});
}

host::SimStoreOptions store_options(StoreKind kind, cluster::Defect defect) {
  host::SimStoreOptions options;
  if (kind == StoreKind::kFile) options.lease.reset();
  if (defect == cluster::Defect::kNoGuard) options.guard = host::StoreGuard::kNone;
  return options;
}

// The fleet and the one who watches it.
class World {
 public:
  explicit World(const ChaosOptions& options)
      : options_(options),
        rng_(options.seed, Purpose::kFault, 10),
        timeline_(options.seed),
        internet_(timeline_, options.seed),
        store_kind_(options.store.value_or(rng_.below(2) == 0 ? StoreKind::kFile : StoreKind::kCluster)),
        medium_(timeline_.clock(), store_options(store_kind_, options.defect)),
        workload_(options.things),
        invariants_([this](Incarnation one) { return durably_fenced(one); }) {}

  ChaosReport run();

 private:
  [[nodiscard]] bool durably_fenced(Incarnation incarnation);
  [[nodiscard]] std::vector<std::string> coordinator_machines() const;
  [[nodiscard]] ClockError draw_clock();
  [[nodiscard]] SimCoordinator* leader();
  [[nodiscard]] bool believes(Incarnation incarnation, const cluster::LeaseKeys& keys);
  void start_coordinator(const std::string& machine);
  void start_member();
  void replace_member(Duration after);
  [[nodiscard]] SimMember* pick(std::uint64_t number);
  [[nodiscard]] std::string pick_machine(std::uint64_t number, const std::string& but);
  void remove(const std::string& machine);
  void for_a_while(Duration lasts, std::function<void()> undo);
  void inject(const Fault& fault);
  void inject_on_member(const Fault& fault, SimMember& member);
  void inject_on_coordinator(const Fault& fault);
  void cut(const std::string& a, const std::string& b, Duration lasts);
  void cut_off(const std::string& machine, Duration lasts);
  [[nodiscard]] Trace trace();
  void look();
  void describe();
  void judge_the_end(StepNumber before);

  const ChaosOptions& options_;
  Rng rng_;
  host::Timeline timeline_;
  host::SimInternet internet_;
  StoreKind store_kind_;
  host::SimStoreMedium medium_;
  CountingWorkload workload_;
  Invariants invariants_;
  std::map<std::string, std::unique_ptr<SimCoordinator>> coordinators_;
  std::map<std::string, std::unique_ptr<SimMember>> members_;
  std::uint64_t machines_ = 0;
  std::uint64_t injected_ = 0;
  std::uint64_t lives_ = 0;
  std::uint64_t coordinator_lives_ = 0;
  std::string fenced_bytes_;
  cluster::FencedIncarnations fenced_;
};

bool World::durably_fenced(Incarnation incarnation) {
  const auto entry = medium_.entries().find("fenced");
  if (entry == medium_.entries().end()) return false;
  if (entry->second != fenced_bytes_) {
    fenced_bytes_ = entry->second;
    const std::array<host::Entry, 1> entries{host::Entry{.key = "fenced", .value = fenced_bytes_}};
    const auto records = cluster::read_records(entries);
    CHECK(records.ok());
    fenced_ = records->fenced;
  }
  return fenced_.contains(incarnation);
}

std::vector<std::string> World::coordinator_machines() const {
  if (store_kind_ == StoreKind::kFile) return {"c1"};
  return {"c1", "c2"};
}

// Leases allow for clocks whose rates differ by less than 5 %.
ClockError World::draw_clock() {
  return {.offset = from_seconds(1000 * static_cast<double>(rng_.uniform())),
          .rate = 0.98 + 0.04 * static_cast<double>(rng_.uniform())};
}

SimCoordinator* World::leader() {
  for (const auto& [machine, coordinator] : coordinators_) {
    if (coordinator->leader() != nullptr && !coordinator->paused()) return coordinator.get();
  }
  return nullptr;
}

bool World::believes(Incarnation incarnation, const cluster::LeaseKeys& keys) {
  return std::any_of(members_.begin(), members_.end(), [&](const auto& one) {
    SimMember& member = *one.second;
    return member.member() != nullptr && member.member()->self().incarnation == incarnation &&
           member.engine().believes(keys, member.now());
  });
}

void World::start_coordinator(const std::string& machine) {
  cluster::CoordinatorProcess::Options options;
  options.coordinator = {.run = "run",
                         .configuration = {},
                         .listening = coordinator_listening(machine),
                         .coordinators = {},
                         .generation = {},
                         .first_members = options_.first_members,
                         .tracks = workload_.tracks(),
                         .batch = kBatch,
                         .placement = {},
                         .defect = options_.defect};
  for (const std::string& one : coordinator_machines())
    options.coordinator.coordinators.push_back(coordinator_listening(one).control());
  options.candidate = {.name = machine, .address = machine + ":7000"};
  options.program = "simulation";
  options.seed = options_.seed + ++coordinator_lives_;
  coordinators_[machine] =
      std::make_unique<SimCoordinator>(timeline_, internet_, machine, draw_clock(), medium_, workload_,
                                       invariants_, std::move(options), trace());
}

void World::start_member() {
  const std::string machine = fmt::format("m{}", ++machines_);
  SimMember::Options options;
  options.machine = machine;
  options.clock = draw_clock();
  options.hidden = static_cast<double>(rng_.uniform()) < options_.hidden;
  options.slowness = 0.7 + 0.6 * static_cast<double>(rng_.uniform());
  options.things = options_.things;
  for (const std::string& one : coordinator_machines()) options.process.coordinators.push_back({one, 7000});
  options.process.run = "run";
  options.process.name = machine;
  options.process.memory_bytes = options_.things;  // anybody can hold everything
  options.process.program = "simulation";
  options.process.seed = options_.seed + machines_;
  options.process.defect = options_.defect;
  members_[machine] = std::make_unique<SimMember>(
      timeline_, internet_, std::move(options), invariants_,
      [this](Incarnation other, const cluster::LeaseKeys& keys) { return believes(other, keys); }, trace());
}

void World::replace_member(Duration after) {
  timeline_.after(after, [this] { start_member(); });
}

SimMember* World::pick(std::uint64_t number) {
  if (members_.empty()) return nullptr;
  return std::next(members_.begin(), static_cast<std::ptrdiff_t>(number % members_.size()))->second.get();
}

// Another machine: a member's or a coordinator's.
std::string World::pick_machine(std::uint64_t number, const std::string& but) {
  std::vector<std::string> machines = coordinator_machines();
  for (const auto& [machine, member] : members_) {
    if (machine != but) machines.push_back(machine);
  }
  return machines[number % machines.size()];
}

void World::remove(const std::string& machine) {
  const auto found = members_.find(machine);
  if (found == members_.end()) return;
  lives_ += static_cast<std::uint64_t>(found->second->lives());
  members_.erase(found);
}

void World::for_a_while(Duration lasts, std::function<void()> undo) {
  timeline_.after(lasts, std::move(undo));
}

void World::cut(const std::string& a, const std::string& b, Duration lasts) {
  internet_.cut(a, b);
  internet_.cut(b, a);
  for_a_while(lasts, [this, a, b] {
    internet_.heal(a, b);
    internet_.heal(b, a);
  });
}

void World::cut_off(const std::string& machine, Duration lasts) {
  for (const std::string& other : coordinator_machines()) {
    if (other != machine) cut(machine, other, lasts);
  }
  for (const auto& [other, member] : members_) {
    if (other != machine) cut(machine, other, lasts);
  }
}

Trace World::trace() {
  if (!options_.trace) return {};
  return [this](const std::string& who, const std::string& what) {
    options_.trace((timeline_.now() - Instant{}).seconds(), who, what);
  };
}

void World::inject(const Fault& fault) {
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
    case FaultKind::kStoreAway: return inject_on_coordinator(fault);
    case FaultKind::kJoin: return start_member();
    default: break;
  }
  if (SimMember* const member = pick(fault.member)) inject_on_member(fault, *member);
}

void World::inject_on_member(const Fault& fault, SimMember& member) {
  const std::string machine = member.machine();
  const std::string other = pick_machine(fault.other, machine);
  const auto rest_of_life = [this, machine](auto action) {
    return [this, machine, action] {
      const auto found = members_.find(machine);
      if (found != members_.end()) action(*found->second);
    };
  };
  switch (fault.kind) {
    case FaultKind::kKill: remove(machine); return replace_member(Duration{fault.lasts.ns / 4});
    case FaultKind::kPowerOff:
      internet_.vanish(machine);
      remove(machine);
      return replace_member(Duration{fault.lasts.ns / 4});
    case FaultKind::kPause:
      if (member.paused()) return;
      member.pause();
      return for_a_while(fault.lasts, rest_of_life([](SimMember& one) { one.resume(); }));
    case FaultKind::kCut: return cut(machine, other, fault.lasts);
    case FaultKind::kCutOneWay:
      internet_.cut(machine, other);
      return for_a_while(fault.lasts, [this, machine, other] { internet_.heal(machine, other); });
    case FaultKind::kPartition: return cut_off(machine, fault.lasts);
    case FaultKind::kReset: return internet_.reset(machine, other);
    case FaultKind::kSlow:
      internet_.set_rates(machine, kSlowRates);
      return for_a_while(fault.lasts, [this, machine] { internet_.set_rates(machine, {}); });
    case FaultKind::kLossy:
      internet_.set_path(machine, other, kLossyPath);
      internet_.set_path(other, machine, kLossyPath);
      return for_a_while(fault.lasts, [this, machine, other] {
        internet_.set_path(machine, other, {});
        internet_.set_path(other, machine, {});
      });
    case FaultKind::kNotice:
      for_a_while(fault.lasts, [this, machine] {
        if (!members_.contains(machine)) return;
        remove(machine);
        replace_member({});
      });
      [[fallthrough]];
    case FaultKind::kDrain:
      if (!member.paused()) member.wants_to_leave("it was told to");
      return;
    default: CHECK(false, static_cast<int>(fault.kind));
  }
}

void World::inject_on_coordinator(const Fault& fault) {
  SimCoordinator* const led = leader();
  if (led == nullptr) return;
  const std::string machine = led->machine();
  switch (fault.kind) {
    case FaultKind::kKillCoordinator:
      coordinators_.erase(machine);
      return for_a_while(fault.lasts, [this, machine] { start_coordinator(machine); });
    case FaultKind::kPauseCoordinator:
      led->pause();
      return for_a_while(fault.lasts, [this, machine] {
        const auto found = coordinators_.find(machine);
        if (found != coordinators_.end() && found->second->paused()) found->second->resume();
      });
    case FaultKind::kCutCoordinator: return cut_off(machine, fault.lasts);
    case FaultKind::kStoreFails: return led->fail_store(1 + static_cast<int>(fault.other % 6));
    case FaultKind::kStoreAway: return led->lose_store(fault.lasts);
    default: CHECK(false, static_cast<int>(fault.kind));
  }
}

// What can only be seen from outside, now and then.
void World::look() {
  std::vector<std::string> gone;
  for (const auto& [machine, member] : members_) {
    if (member->done()) gone.push_back(machine);
  }
  for (const std::string& machine : gone) {
    remove(machine);
    replace_member(from_seconds(1));
  }
  const auto epoch = medium_.entries().find("epoch");
  if (epoch != medium_.entries().end()) {
    membership::Epoch record;
    CHECK(record.ParseFromString(epoch->second));
    invariants_.stored(Epoch(record.number()));
  }
  const auto entry = medium_.entries().find("committed");
  if (entry != medium_.entries().end()) {
    membership::CommittedRecord record;
    CHECK(record.ParseFromString(entry->second));
    invariants_.committed(StepNumber(record.next()));
  }
  timeline_.after(kLookEvery, [this] { look(); });
}

// For people: how things stand where something broke.
void World::describe() {
  for (const auto& [machine, member] : members_) {
    if (member->member() == nullptr) continue;
    const cluster::Member& one = *member->member();
    std::string links;
    for (const auto& [node, record] : one.view().members()) {
      const net::LinkStatistics link = member->links()->statistics(node);
      links += fmt::format(" {}:{}/{}q", node.value, link.up ? "up" : "down", link.queued_bytes);
    }
    trace()(machine,
            fmt::format("node {} incarnation {}, view {}, installed {}, step {}, links{}",
                        one.self().node.value, one.self().incarnation.value, one.view().epoch().value,
                        one.installed().epoch(), member->engine().step().value, links));
  }
}

void World::judge_the_end(StepNumber before) {
  SimCoordinator* const led = leader();
  if (led == nullptr) return invariants_.broke("at the end nobody leads");
  const cluster::Coordinator& coordinator = *led->leader();
  if (coordinator.phase() != cluster::Coordinator::Phase::kSettled ||
      coordinator.installed() != coordinator.view().epoch()) {
    return invariants_.broke(fmt::format("at the end epoch {} is not installed, but {}: {}",
                                         coordinator.view().epoch().value, coordinator.installed().value,
                                         coordinator.shortage()));
  }
  for (const auto& [machine, member] : members_) {
    if (member->member() == nullptr || !member->member()->serving())
      return invariants_.broke(fmt::format("at the end {} does not serve", machine));
    if (member->member()->view().bytes() != coordinator.view().bytes())
      return invariants_.broke(fmt::format("at the end {} has another view than its coordinator", machine));
  }
  if (invariants_.committed_step() <= before) {
    return invariants_.broke(
        fmt::format("nothing was committed after step {}, long after the last fault", before.value));
  }
}

ChaosReport World::run() {
  for (const std::string& machine : coordinator_machines()) start_coordinator(machine);
  for (std::size_t i = 0; i < options_.members; ++i) start_member();
  std::vector<FaultKind> kinds = options_.kinds;
  if (kinds.empty()) {
    for (const FaultName& one : kFaults) kinds.push_back(one.kind);
    // There is one leader to four members, and what happens to it matters to all.
    kinds.insert(kinds.end(), {FaultKind::kKillCoordinator, FaultKind::kPauseCoordinator,
                               FaultKind::kPauseCoordinator, FaultKind::kPauseCoordinator});
  }
  std::vector<Fault> faults = options_.script;
  if (faults.empty()) {
    faults = draw_faults(options_.seed, kinds, options_.faults, kFirstFault, kFirstFault + options_.trouble);
  }
  Instant last = kFirstFault;
  for (const Fault& fault : faults) {
    last = std::max(last, fault.at + fault.lasts);
    timeline_.at(fault.at, [this, fault] { inject(fault); });
  }
  look();
  const Instant end = last + options_.calm;
  const Instant middle{end.ns - options_.calm.ns / 3};
  StepNumber before;
  while (timeline_.now() < end && !invariants_.violation()) {
    if (timeline_.now() < middle) before = invariants_.committed_step();
    timeline_.run_until(std::min(end, timeline_.now() + from_seconds(1)));
  }
  if (!invariants_.violation()) judge_the_end(before);
  if (options_.trace && invariants_.violation()) describe();
  for (const auto& [machine, member] : members_) lives_ += static_cast<std::uint64_t>(member->lives());
  return {.violation = invariants_.violation(),
          .state_hash = invariants_.hash(),
          .events = timeline_.events_run(),
          .faults_injected = injected_,
          .steps_committed = invariants_.committed_step().value,
          .lives = lives_,
          .virtual_seconds = (timeline_.now() - Instant{}).seconds()};
}

}  // namespace

ChaosReport run_cluster_chaos(const ChaosOptions& options) { return World(options).run(); }

}  // namespace gossamer::simulation
