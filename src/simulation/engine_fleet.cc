// SPDX-License-Identifier: Apache-2.0
#include "simulation/engine_fleet.h"

#include <fmt/format.h>
#include <gossamer/membership.pb.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace gossamer::simulation {
namespace {

constexpr Duration kLookEvery{20'000'000};

host::SimStoreOptions store_options(StoreKind kind) {
  host::SimStoreOptions options;
  if (kind == StoreKind::kFile) options.lease.reset();
  return options;
}

}  // namespace

EngineFleet::EngineFleet(Options options)
    : FaultyFleet({.seed = options.seed, .path = options.path, .trace = options.trace}),
      options_(std::move(options)),
      rng_(options_.seed, Purpose::kFault, 12),
      medium_(timeline_.clock(), store_options(options_.store)),
      invariants_([this](Incarnation one) { return durable_.fenced(one); }) {
  medium_.watch([this](std::span<const host::Change> changes) { stored(changes); });
  for (const std::string& machine : coordinator_machines()) start_coordinator(machine);
  look();
}

EngineFleet::~EngineFleet() {
  members_.clear();
  coordinators_.clear();
}

// Takes up a commit. It is carried out as a whole, so a repeated one begins with changes that were there
// before.
void EngineFleet::stored(std::span<const host::Change> changes) {
  for (const host::Change& change : changes) durable_.applied(change);
  const auto written = [&](const char* key) {
    return std::ranges::find(changes, key, &host::Change::key) != changes.end();
  };
  if (written("epoch")) {
    membership::Epoch record;
    CHECK(record.ParseFromString(medium_.entries().at("epoch")));
    invariants_.stored(Epoch(record.number()));
  }
  if (written("committed")) invariants_.committed(durable_.committed(), durable_.installed());
}

std::vector<std::string> EngineFleet::coordinator_machines() const {
  if (options_.store == StoreKind::kFile) return {"c1"};
  return {"c1", "c2"};
}

ClockError EngineFleet::draw_clock() {
  if (options_.clock_error == 0) return {};
  return {.offset = from_seconds(1000 * static_cast<double>(rng_.uniform())),
          .rate = 1 + options_.clock_error * (2 * static_cast<double>(rng_.uniform()) - 1)};
}

std::unique_ptr<SimCoordinator> EngineFleet::make_coordinator(const std::string& machine) {
  const auto listening = [](const std::string& name) {
    return cluster::listening_of(
        {.node = cluster::kCoordinatorNode, .control = {name, 7000}, .bulk = {name, 7001}});
  };
  cluster::CoordinatorProcess::Options options;
  options.coordinator = {
      .run = "run",
      .configuration = options_.configuration,
      .listening = listening(machine),
      .coordinators = {},
      .generation = {},
      .first_members = options_.first_members,
      .tracks = options_.tracks,
      .batch = 1,
      .placement = options_.placement,
      .freeze_time = options_.freeze_time,
      .defect = options_.defect,
  };
  for (const std::string& one : coordinator_machines())
    options.coordinator.coordinators.push_back(listening(one).control());
  options.candidate = {.name = machine, .address = machine + ":7000"};
  options.program = "test";
  options.seed = options_.seed + ++coordinator_lives_;
  if (options_.others) {
    options.others = [this](const net::Arrived& arrived) {
      SimCoordinator* const led = leading();
      if (led == nullptr) return;
      led->consumed(arrived.receipt);
      options_.others(arrived);
    };
  }
  const Trace note = [this](const std::string& who, const std::string& what) {
    log_ += fmt::format("{:8.3f} {} {}\n", (timeline_.now() - Instant{}).seconds(), who, what);
    if (const Trace out = trace()) out(who, what);
  };
  return std::make_unique<SimCoordinator>(
      timeline_, internet_,
      SimCoordinator::Options{
          .machine = machine, .certificate = {}, .clock = draw_clock(), .process = std::move(options)},
      SimCoordinator::Run{medium_, options_.workload, durable_, invariants_, traffic_,
                          [](Incarnation) { return false; }},
      note);
}

std::string EngineFleet::join(EngineProcess::Options options) {
  options.machine = fmt::format("m{}", ++machines_);
  options.coordinators = coordinator_machines();
  options.clock = draw_clock();
  options.seed = options_.seed * 1000 + machines_;
  options.defect = options_.defect;
  options.watch = [this, watch_engine = std::move(options.watch)](EngineProcess& process) {
    watch(process);
    if (watch_engine) watch_engine(process);
  };
  std::string machine = options.machine;
  members_[machine] = std::make_unique<EngineProcess>(timeline_, internet_, std::move(options));
  return machine;
}

void EngineFleet::watch(EngineProcess& process) {
  const cluster::Member* const member = process.member();
  if (member == nullptr) return;
  Seen& seen = seen_[process.machine()];
  if (member->view().epoch() != std::exchange(seen.view, member->view().epoch()))
    invariants_.saw_view(member->view().epoch(), member->view().bytes());
  const Epoch installed(member->installed().epoch());
  if (installed != std::exchange(seen.installed, installed))
    invariants_.saw_install(installed, member->installed().SerializeAsString());
}

std::vector<std::string> EngineFleet::member_machines() const {
  std::vector<std::string> machines;
  for (const auto& [machine, member] : members_) machines.push_back(machine);
  return machines;
}

SimProcess* EngineFleet::process_of(const std::string& member) {
  const auto found = members_.find(member);
  return found == members_.end() ? nullptr : found->second.get();
}

void EngineFleet::remove(const std::string& member) {
  const auto found = members_.find(member);
  if (found == members_.end()) return;
  note_failures();
  past_lives_ += found->second->lives();
  members_.erase(found);
}

void EngineFleet::replace_done() {
  for (const std::string& machine : member_machines()) {
    if (!member(machine).done()) continue;
    remove(machine);
    if (!durable_.stopping()) timeline_.after(from_seconds(1), [this] { start_new_member(); });
  }
}

std::uint64_t EngineFleet::lives() const {
  std::uint64_t lives = past_lives_;
  for (const auto& [machine, member] : members_) lives += member->lives();
  return lives;
}

void EngineFleet::kill_coordinator_for(Duration time) {
  if (coordinators_.erase("c1") == 0) return;
  timeline_.after(time, [this] { start_coordinator("c1"); });
}

void EngineFleet::run_for(double seconds) { timeline_.run_until(timeline_.now() + from_seconds(seconds)); }

void EngineFleet::stop(const std::string& reason) { leading()->stop(reason); }

cluster::Coordinator* EngineFleet::leader() {
  SimCoordinator* const led = leading();
  return led == nullptr ? nullptr : led->leader();
}

void EngineFleet::send(net::PeerId to, host::Lane lane, net::Message message) {
  if (SimCoordinator* const led = leading()) led->send(to, lane, std::move(message));
}

void EngineFleet::note_failure(const std::string& what) {
  if (!failure_) failure_ = what;
}

void EngineFleet::note_failures() {
  for (const auto& [machine, member] : members_) {
    if (const auto failed = member->engine().failure()) note_failure(machine + ": " + failed->message());
  }
  if (invariants_.violation()) note_failure(*invariants_.violation());
  if (leader() != nullptr && leader()->failure())
    note_failure("coordinator: " + leader()->failure()->message());
}

// Notes failures now and then, so that no member takes its failure with it.
void EngineFleet::look() {
  note_failures();
  timeline_.after(kLookEvery, [this] { look(); });
}

std::optional<std::string> EngineFleet::failure() {
  note_failures();
  return failure_;
}

}  // namespace gossamer::simulation
