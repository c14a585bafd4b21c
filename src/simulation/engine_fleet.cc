// SPDX-License-Identifier: Apache-2.0
#include "simulation/engine_fleet.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

namespace gossamer::simulation {
namespace {

constexpr Duration kLookEvery{20'000'000};
const char* const kCoordinator = "c1";

host::SimStoreOptions file_store() {
  host::SimStoreOptions options;
  options.lease.reset();
  return options;
}

}  // namespace

EngineFleet::EngineFleet(Options options)
    : options_(std::move(options)),
      timeline_(options_.seed),
      internet_(timeline_, options_.seed),
      medium_(timeline_.clock(), file_store()),
      invariants_([this](Incarnation one) { return durable_.fenced(one); }) {
  medium_.watch([this](std::span<const host::Change> changes) {
    for (const host::Change& change : changes) durable_.applied(change);
  });
  start_coordinator();
  look();
}

void EngineFleet::start_coordinator() {
  cluster::CoordinatorProcess::Options options;
  options.coordinator = {
      .run = "run",
      .configuration = options_.configuration,
      .listening = cluster::listening_of(
          {.node = cluster::kCoordinatorNode, .control = {kCoordinator, 7000}, .bulk = {kCoordinator, 7001}}),
      .coordinators = {},
      .generation = {},
      .first_members = options_.first_members,
      .tracks = options_.tracks,
      .batch = 1,
      .placement = options_.placement,
  };
  options.coordinator.coordinators.push_back(options.coordinator.listening.control());
  options.candidate = {.name = kCoordinator, .address = "c1:7000"};
  options.program = "test";
  options.seed = options_.seed + ++lives_;
  const Trace trace = [this](const std::string& who, const std::string& what) {
    log_ += fmt::format("{:8.3f} {} {}\n", (timeline_.now() - Instant{}).seconds(), who, what);
  };
  coordinator_ = std::make_unique<SimCoordinator>(
      timeline_, internet_,
      SimCoordinator::Options{
          .machine = kCoordinator, .certificate = {}, .clock = {}, .process = std::move(options)},
      SimCoordinator::Run{medium_, options_.workload, durable_, invariants_, traffic_,
                          [](Incarnation) { return false; }},
      trace);
}

std::string EngineFleet::join(EngineProcess::Options options) {
  options.machine = fmt::format("m{}", ++machines_);
  options.seed = options_.seed * 1000 + machines_;
  std::string machine = options.machine;
  members_[machine] = std::make_unique<EngineProcess>(timeline_, internet_, kCoordinator, std::move(options));
  return machine;
}

void EngineFleet::kill_coordinator_for(Duration time) {
  if (coordinator_ == nullptr) return;
  coordinator_.reset();
  timeline_.after(time, [this] { start_coordinator(); });
}

void EngineFleet::pause_for(const std::string& machine, Duration time) {
  if (member(machine).paused()) return;
  member(machine).pause();
  timeline_.after(time, [this, machine] {
    const auto found = members_.find(machine);
    if (found != members_.end()) found->second->resume();
  });
}

void EngineFleet::cut_off_for(const std::string& machine, Duration time) {
  std::vector<std::string> others = {kCoordinator};
  for (const auto& [other, member] : members_) {
    if (other != machine) others.push_back(other);
  }
  for (const std::string& other : others) {
    internet_.cut(machine, other);
    internet_.cut(other, machine);
  }
  timeline_.after(time, [this, machine, others] {
    for (const std::string& other : others) {
      internet_.heal(machine, other);
      internet_.heal(other, machine);
    }
  });
}

void EngineFleet::run_for(double seconds) { timeline_.run_until(timeline_.now() + from_seconds(seconds)); }

void EngineFleet::stop(const std::string& reason) { leader()->stop(reason, coordinator_->now()); }

cluster::Coordinator* EngineFleet::leader() {
  return coordinator_ == nullptr ? nullptr : coordinator_->leader();
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

// Sees to it that nobody takes his failure with him.
void EngineFleet::look() {
  note_failures();
  timeline_.after(kLookEvery, [this] { look(); });
}

std::optional<std::string> EngineFleet::failure() {
  note_failures();
  return failure_;
}

}  // namespace gossamer::simulation
