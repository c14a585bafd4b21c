// SPDX-License-Identifier: Apache-2.0
#include "simulation/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace gossamer::simulation {
namespace {

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

}  // namespace

Fleet::Fleet(const ChaosOptions& options)
    : options_(options),
      rng_(options.seed, Purpose::kFault, 10),
      timeline_(options.seed),
      internet_(timeline_, options.seed),
      store_kind_(options.store.value_or(rng_.below(2) == 0 ? StoreKind::kFile : StoreKind::kCluster)),
      identity_(options.identity.value_or(rng_.below(2) == 0 ? Identity::kCertified : Identity::kNumbered)),
      medium_(timeline_.clock(), store_options(store_kind_, options.defect)),
      workload_(options.things),
      invariants_([this](Incarnation one) { return durable_.fenced(one); }) {
  medium_.watch([this](std::span<const host::Change> changes) { stored(changes); });
  internet_.set_default_path(options.path);
}

void Fleet::start() {
  for (const std::string& machine : coordinator_machines()) start_coordinator(machine);
  for (std::size_t i = 0; i < options_.members; ++i) start_new_member();
}

// A commit is carried out as a whole: a repeated one begins with what was there before.
void Fleet::stored(std::span<const host::Change> changes) {
  for (const host::Change& change : changes) durable_.applied(change);
  const auto written = [&](const char* key) {
    return std::any_of(changes.begin(), changes.end(), [&](const auto& one) { return one.key == key; });
  };
  const auto& entries = medium_.entries();
  if (written("epoch")) {
    membership::Epoch record;
    CHECK(record.ParseFromString(entries.at("epoch")));
    invariants_.stored(Epoch(record.number()));
  }
  if (written("installed")) {
    membership::Installed record;
    CHECK(record.ParseFromString(entries.at("installed")));
    invariants_.resumes(Epoch(record.epoch()), resume_of(record.decision()));
  }
  if (written("committed")) invariants_.committed(durable_.committed(), durable_.installed());
}

Calm Fleet::calm() const {
  std::uint64_t fenced = 0;
  for (const cluster::FencedIncarnations::Run& run : durable_.fenced().runs())
    fenced += run.last.value - run.first.value + 1;
  return {.at = timeline_.now(),
          .generation = medium_.generation(),
          .epoch = durable_.begun(),
          .fenced = fenced,
          .lives = lives(),
          .rebalanced = probes_.control.count(cluster::ControlProbe::kRebalanced),
          .members = members_.size(),
          .traffic = traffic_};
}

std::vector<std::string> Fleet::coordinator_machines() const {
  if (store_kind_ == StoreKind::kFile) return {"c1"};
  return {"c1", "c2"};
}

ClockError Fleet::draw_clock() {
  return {.offset = from_seconds(1000 * static_cast<double>(rng_.uniform())),
          .rate = 1 + options_.clock_error * (2 * static_cast<double>(rng_.uniform()) - 1)};
}

SimCoordinator* Fleet::leader() {
  for (const auto& [machine, coordinator] : coordinators_) {
    if (coordinator->leader() != nullptr && !coordinator->paused()) return coordinator.get();
  }
  return nullptr;
}

bool Fleet::believes(Incarnation incarnation, const cluster::LeaseKeys& keys) {
  return std::any_of(members_.begin(), members_.end(), [&](const auto& one) {
    SimMember& member = *one.second;
    return member.member() != nullptr && member.member()->self().incarnation == incarnation &&
           member.engine().believes(keys, member.now());
  });
}

void Fleet::start_coordinator(const std::string& machine) {
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
                         .defect = options_.defect,
                         .probes = &probes_.control};
  for (const std::string& one : coordinator_machines())
    options.coordinator.coordinators.push_back(coordinator_listening(one).control());
  options.candidate = {.name = machine, .address = machine + ":7000"};
  options.program = "simulation";
  options.seed = options_.seed + ++coordinator_lives_;
  options.link_probes = &probes_.link;
  coordinators_[machine] = std::make_unique<SimCoordinator>(
      timeline_, internet_,
      SimCoordinator::Options{.machine = machine,
                              .certificate = certificate(cluster::kCoordinatorNode),
                              .clock = draw_clock(),
                              .process = std::move(options)},
      SimCoordinator::Run{medium_, workload_, durable_, invariants_, traffic_}, trace());
}

std::string Fleet::certificate(NodeId node) const {
  return identity_ == Identity::kCertified ? net::certificate_name(node) : std::string();
}

void Fleet::start_member(NodeId node) {
  const std::string machine = fmt::format("m{}", ++machines_);
  SimMember::Options options;
  options.machine = machine;
  options.node = node;
  options.certificate = certificate(node);
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
  options.process.probes = &probes_.control;
  options.process.link_probes = &probes_.link;
  members_[machine] = std::make_unique<SimMember>(
      timeline_, internet_, std::move(options), invariants_,
      [this](Incarnation other, const cluster::LeaseKeys& keys) { return believes(other, keys); }, trace());
}

SimMember* Fleet::pick(std::uint64_t number) {
  if (members_.empty()) return nullptr;
  return std::next(members_.begin(), static_cast<std::ptrdiff_t>(number % members_.size()))->second.get();
}

// Another machine: a member's or a coordinator's.
std::string Fleet::pick_machine(std::uint64_t number, const std::string& but) {
  std::vector<std::string> machines = coordinator_machines();
  for (const auto& [machine, member] : members_) {
    if (machine != but) machines.push_back(machine);
  }
  return machines[number % machines.size()];
}

void Fleet::remove(const std::string& machine) {
  const auto found = members_.find(machine);
  if (found == members_.end()) return;
  past_lives_ += static_cast<std::uint64_t>(found->second->lives());
  members_.erase(found);
}

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

Trace Fleet::trace() {
  if (!options_.trace) return {};
  return [this](const std::string& who, const std::string& what) {
    options_.trace((timeline_.now() - Instant{}).seconds(), who, what);
  };
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
    case FaultKind::kStoreAway: return inject_on_coordinator(fault);
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
    case FaultKind::kStoreAway: return led->lose_store(fault.lasts);
    default: CHECK(false, static_cast<int>(fault.kind));
  }
}

void Fleet::replace_done() {
  std::vector<std::string> gone;
  for (const auto& [machine, member] : members_) {
    if (member->done()) gone.push_back(machine);
  }
  for (const std::string& machine : gone) {
    remove(machine);
    timeline_.after(from_seconds(1), [this] { start_new_member(); });
  }
}

std::uint64_t Fleet::lives() const {
  std::uint64_t lives = past_lives_;
  for (const auto& [machine, member] : members_) lives += static_cast<std::uint64_t>(member->lives());
  return lives;
}

std::optional<std::string> Fleet::unsettled() {
  SimCoordinator* const led = leader();
  if (led == nullptr) return "nobody leads";
  const cluster::Coordinator& coordinator = *led->leader();
  const cluster::View& view = coordinator.view();
  if (coordinator.phase() != cluster::Coordinator::Phase::kSettled ||
      coordinator.installed() != view.epoch()) {
    return fmt::format("epoch {} is not installed, but {}: {}", view.epoch().value,
                       coordinator.installed().value, coordinator.shortage());
  }
  for (const auto& [machine, member] : members_) {
    if (member->member() == nullptr || !member->member()->serving())
      return fmt::format("{} does not serve", machine);
    if (member->member()->view().epoch() != view.epoch() || member->member()->view().bytes() != view.bytes())
      return fmt::format("{} has another view than its coordinator", machine);
  }
  if (view.members().size() != members_.size())
    return fmt::format("{} members are alive, {} are in the view", members_.size(), view.members().size());
  return std::nullopt;
}

std::optional<std::string> Fleet::unanswered(Duration longer) const {
  for (const auto& [machine, member] : members_) {
    const Duration waits = member->engine().waits(member->now());
    if (waits > longer) return fmt::format("{} waits {:.1f} s for an answer", machine, waits.seconds());
  }
  return std::nullopt;
}

void Fleet::describe() {
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

}  // namespace gossamer::simulation
