// SPDX-License-Identifier: Apache-2.0
#include "engines/check/check_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"

namespace gossamer::engine {
namespace {

constexpr Duration kLookEvery{20'000'000};
constexpr Duration kBatchTime{20'000'000};
const char* const kCoordinator = "c1";

host::SimStoreOptions file_store() {
  host::SimStoreOptions options;
  options.lease.reset();
  return options;
}

}  // namespace

CheckMember::CheckMember(host::Timeline& timeline, host::SimInternet& internet, const Options& options)
    : SimProcess(timeline, internet, options.machine, {}, {}), driver_(options.driver) {
  const auto listen = [&](host::Lane lane) {
    const auto bound = network().listen({machine(), 0}, lane);
    CHECK(bound.ok());
    return *bound;
  };
  cluster::MemberProcess::Options process;
  process.run = "run";
  process.name = machine();
  process.coordinators = {{kCoordinator, 7000}};
  process.listening = cluster::listening_of(
      {.node = {}, .control = listen(host::Lane::kControl), .bulk = listen(host::Lane::kBulk)});
  process.memory_bytes = 1 << 20;
  process.program = "test";
  process.seed = options.seed;
  process_ = std::make_unique<cluster::MemberProcess>(std::move(process), network(), now());
  engine_ = std::make_unique<CheckEngine>(*process_, options.engine);
  go_on();
}

CheckMember::~CheckMember() {
  engine_.reset();
  process_.reset();
  silence();
}

void CheckMember::drain() {
  engine_->drain("it was told to", now());
  go_on();
}

void CheckMember::on_network(host::NetworkEvent event) {
  if (process_ == nullptr) return;
  process_->on(std::move(event), now());
  if (driver_ == Driver::kPrompt) return go_on();
  if (std::exchange(batch_begun_, true)) return;
  after(kBatchTime, [this] {
    batch_begun_ = false;
    on_timer();
  });
}

void CheckMember::on_timer() {
  process_->tick(now());
  engine_->tick(now());
  go_on();
}

void CheckMember::go_on() {
  for (auto events = process_->take_events(); !events.empty(); events = process_->take_events()) {
    for (const cluster::ProcessEvent& event : events) {
      if (std::holds_alternative<cluster::LifeBegun>(event)) last_step_.reset();
      engine_->on(event, now());
      const auto step = engine_->step();
      if (step && last_step_ && *step < *last_step_)
        broke_ = fmt::format("{} went from step {} back to {}", machine(), last_step_->value, step->value);
      last_step_ = step;
    }
  }
  std::optional<Instant> wake = process_->next_wakeup();
  const auto other = engine_->next_wakeup();
  if (other && (!wake || *other < *wake)) wake = other;
  arm(wake);
}

CheckFleet::CheckFleet(const CheckConfig& config, std::size_t first_members, std::uint64_t seed,
                       Driver driver)
    : config_(config),
      first_members_(first_members),
      seed_(seed),
      driver_(driver),
      timeline_(seed),
      internet_(timeline_, seed),
      medium_(timeline_.clock(), file_store()),
      workload_(config),
      invariants_([this](Incarnation one) { return durable_.fenced(one); }) {
  medium_.watch([this](std::span<const host::Change> changes) {
    for (const host::Change& change : changes) durable_.applied(change);
  });
  start_coordinator();
  for (std::size_t i = 0; i < first_members; ++i) join();
  look();
}

void CheckFleet::start_coordinator() {
  cluster::CoordinatorProcess::Options options;
  options.coordinator = {
      .run = "run",
      .configuration = check_config_bytes(config_),
      .listening = cluster::listening_of(
          {.node = cluster::kCoordinatorNode, .control = {kCoordinator, 7000}, .bulk = {kCoordinator, 7001}}),
      .coordinators = {},
      .generation = {},
      .first_members = first_members_,
      .tracks = workload_.tracks(),
      .batch = 1,
      .placement = {},
  };
  options.coordinator.coordinators.push_back(options.coordinator.listening.control());
  options.candidate = {.name = kCoordinator, .address = "c1:7000"};
  options.program = "test";
  options.seed = seed_ + ++lives_;
  const simulation::Trace trace = [this](const std::string& who, const std::string& what) {
    log_ += fmt::format("{:8.3f} {} {}\n", (timeline_.now() - Instant{}).seconds(), who, what);
  };
  coordinator_ = std::make_unique<simulation::SimCoordinator>(
      timeline_, internet_,
      simulation::SimCoordinator::Options{
          .machine = kCoordinator, .certificate = {}, .clock = {}, .process = std::move(options)},
      simulation::SimCoordinator::Run{medium_, workload_, durable_, invariants_, traffic_,
                                      [](Incarnation) { return false; }},
      trace);
}

std::string CheckFleet::join(const CheckEngine::Options& options) {
  const std::string machine = fmt::format("m{}", ++machines_);
  members_[machine] = std::make_unique<CheckMember>(
      timeline_, internet_,
      CheckMember::Options{
          .machine = machine, .seed = seed_ * 1000 + machines_, .driver = driver_, .engine = options});
  return machine;
}

void CheckFleet::kill_coordinator_for(Duration time) {
  if (coordinator_ == nullptr) return;
  coordinator_.reset();
  timeline_.after(time, [this] { start_coordinator(); });
}

void CheckFleet::pause_for(const std::string& machine, Duration time) {
  if (member(machine).paused()) return;
  member(machine).pause();
  timeline_.after(time, [this, machine] {
    const auto found = members_.find(machine);
    if (found != members_.end()) found->second->resume();
  });
}

void CheckFleet::cut_off_for(const std::string& machine, Duration time) {
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

void CheckFleet::run_for(double seconds) { timeline_.run_until(timeline_.now() + from_seconds(seconds)); }

void CheckFleet::stop(const std::string& reason) { leader()->stop(reason, coordinator_->now()); }

cluster::Coordinator* CheckFleet::leader() {
  return coordinator_ == nullptr ? nullptr : coordinator_->leader();
}

void CheckFleet::note_failures() {
  const auto note = [this](const std::optional<std::string>& what) {
    if (what && !failure_) failure_ = what;
  };
  for (const auto& [machine, member] : members_) {
    note(member->broke());
    if (member->engine().failure()) note(machine + ": " + member->engine().failure()->message());
  }
  note(invariants_.violation());
  if (leader() != nullptr && leader()->failure()) note("coordinator: " + leader()->failure()->message());
}

// Sees to it that nobody takes his failure with him.
void CheckFleet::look() {
  note_failures();
  timeline_.after(kLookEvery, [this] { look(); });
}

std::optional<std::string> CheckFleet::failure() {
  note_failures();
  return failure_;
}

std::optional<std::pair<StepNumber, StepNumber>> CheckFleet::steps() {
  std::optional<std::pair<StepNumber, StepNumber>> range;
  for (const auto& [machine, member] : members_) {
    if (member->engine().things_held() == 0 || !member->engine().step()) continue;
    const StepNumber step = *member->engine().step();
    if (!range) range = {step, step};
    range = {std::min(range->first, step), std::max(range->second, step)};
  }
  return range;
}

}  // namespace gossamer::engine
