// SPDX-License-Identifier: Apache-2.0
#include "simulation/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/node_name.h"

namespace gossamer::simulation {
namespace {

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
    : FaultyFleet({.seed = options.seed, .path = options.path, .trace = options.trace}),
      options_(options),
      rng_(options.seed, Purpose::kFault, 10),
      shape_(shape_of(options)),
      medium_(timeline_.clock(), store_options(shape_.store, options.defect)),
      workload_(options.things),
      invariants_([this](Incarnation one) { return durable_.fenced(one) || pretenders_.contains(one); }) {
  medium_.watch([this](std::span<const host::Change> changes) { stored(changes); });
}

Fleet::~Fleet() {
  members_.clear();
  coordinators_.clear();
}

void Fleet::start() {
  for (const std::string& machine : coordinator_machines()) start_coordinator(machine);
  for (std::size_t i = 0; i < options_.members; ++i) start_new_member();
}

// Takes up a commit. It is carried out as a whole, so a repeated one begins with changes that were there
// before.
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
    if (const auto step = resume_of(record.decision())) invariants_.resumes(Epoch(record.epoch()), *step);
  }
  if (written("committed")) invariants_.committed(durable_.committed(), durable_.installed());
}

Calm Fleet::calm() {
  // A change that was decided counts, though the store may not have it yet.
  SimCoordinator* const led = leading();
  const Epoch decided = led == nullptr ? Epoch() : led->leader()->view().epoch();
  std::uint64_t fenced = 0;
  for (const cluster::FencedIncarnations::Run& run : durable_.fenced().runs())
    fenced += run.last.value - run.first.value + 1;
  return {.at = timeline_.now(),
          .generation = medium_.generation(),
          .epoch = std::max(decided, durable_.begun()),
          .fenced = fenced,
          .lives = lives(),
          .rebalanced = probes_.control.count(cluster::ControlProbe::kRebalanced),
          .members = members_.size(),
          .traffic = traffic_};
}

std::vector<std::string> Fleet::coordinator_machines() const {
  if (shape_.store == StoreKind::kFile) return {"c1"};
  return {"c1", "c2"};
}

ClockError Fleet::draw_clock() {
  return {.offset = from_seconds(1000 * static_cast<double>(rng_.uniform())),
          .rate = 1 + options_.clock_error * (2 * static_cast<double>(rng_.uniform()) - 1)};
}

bool Fleet::believes(Incarnation incarnation, const cluster::LeaseKeys& keys) {
  return std::any_of(members_.begin(), members_.end(), [&](const auto& one) {
    SimMember& member = *one.second;
    return member.member() != nullptr && member.member()->self().incarnation == incarnation &&
           member.engine().believes(keys, member.now());
  });
}

std::unique_ptr<SimCoordinator> Fleet::make_coordinator(const std::string& machine) {
  cluster::CoordinatorProcess::Options options;
  options.coordinator = {.run = "run",
                         .configuration = {},
                         .listening = coordinator_listening(machine),
                         .coordinators = {},
                         .generation = {},
                         .first_members = options_.first_members,
                         .view_change = shape_.view_change,
                         .tracks = workload_.tracks(),
                         .batch = kBatch,
                         .placement = {},
                         .freeze_time = shape_.freeze_time,
                         .defect = options_.defect,
                         .probes = &probes_.control};
  for (const std::string& one : coordinator_machines())
    options.coordinator.coordinators.push_back(coordinator_listening(one).control());
  options.candidate = {.name = machine, .address = machine + ":7000"};
  options.program = "simulation";
  options.seed = options_.seed + ++coordinator_lives_;
  options.link_probes = &probes_.link;
  return std::make_unique<SimCoordinator>(
      timeline_, internet_,
      SimCoordinator::Options{.machine = machine,
                              .certificate = certificate(cluster::kCoordinatorNode),
                              .clock = draw_clock(),
                              .process = std::move(options)},
      SimCoordinator::Run{medium_, workload_, durable_, invariants_, traffic_,
                          [this](Incarnation one) { return liars_.contains(one); }},
      trace());
}

std::string Fleet::certificate(NodeId node) const {
  return shape_.identity == Identity::kCertified ? certificate_name(node) : std::string();
}

void Fleet::start_member(NodeId node) {
  const std::string machine = fmt::format("m{}", ++machines_);
  SimMember::Options options;
  options.machine = machine;
  options.node = node;
  options.certificate = certificate(node);
  options.clock = draw_clock();
  options.hidden = static_cast<double>(rng_.uniform()) < shape_.hidden;
  options.slowness = 0.7 + 0.6 * static_cast<double>(rng_.uniform());
  options.things = options_.things;
  options.view_change = shape_.view_change;
  for (const std::string& one : coordinator_machines()) options.process.coordinators.push_back({one, 7000});
  options.process.run = "run";
  options.process.name = machine;
  options.process.memory_bytes = shape_.memory;  // each thing has one byte
  options.process.program = "simulation";
  options.process.seed = options_.seed + machines_;
  options.process.defect = options_.defect;
  options.process.probes = &probes_.control;
  options.process.link_probes = &probes_.link;
  members_[machine] = std::make_unique<SimMember>(
      timeline_, internet_, std::move(options), invariants_,
      [this](Incarnation other, const cluster::LeaseKeys& keys) { return believes(other, keys); }, trace());
}

std::vector<std::string> Fleet::member_machines() const {
  std::vector<std::string> machines;
  for (const auto& [machine, member] : members_) machines.push_back(machine);
  return machines;
}

SimProcess* Fleet::process_of(const std::string& member) {
  const auto found = members_.find(member);
  return found == members_.end() ? nullptr : found->second.get();
}

void Fleet::remove(const std::string& member) {
  const auto found = members_.find(member);
  if (found == members_.end()) return;
  past_lives_ += static_cast<std::uint64_t>(found->second->lives());
  members_.erase(found);
}

void Fleet::remove_for(const std::string& member, Duration after) {
  const NodeId node = members_.at(member)->node();
  remove(member);
  timeline_.after(after, [this, node] { start_member(node); });
}

void Fleet::drain(const std::string& member, const std::string& reason) {
  members_.at(member)->wants_to_leave(reason);
}

void Fleet::leave(const std::string& member, const std::string& reason) {
  members_.at(member)->leave(reason);
}

void Fleet::hang(const std::string& member, Duration lasts) { members_.at(member)->hang(lasts); }

void Fleet::misbehave(const std::string& member, const Fault& fault) {
  SimMember& one = *members_.at(member);
  if (fault.kind == FaultKind::kLie) return turn_liar(one, fault);
  if (!one.paused()) turn_hostile(one);
}

void Fleet::turn_hostile(SimMember& member) {
  const Incarnation life = member.turn_hostile();
  if (life.value != 0) hostile_.push_back(life);
}

void Fleet::turn_liar(SimMember& member, const Fault& fault) {
  // Half of the liars accuse: accusations take time, and a contradiction ends the run.
  constexpr std::array kLies{Lies::kAccuses, Lies::kPretends, Lies::kAccuses, Lies::kContradicts};
  const Lies lies = kLies[fault.other % kLies.size()];
  contradicted_ = contradicted_ || lies == Lies::kContradicts;
  member.lie(lies, fault.lasts, [this, lies](Incarnation life) {
    liars_.insert(life);
    if (lies != Lies::kAccuses) pretenders_.insert(life);
  });
}

void Fleet::replace_done() {
  std::vector<std::string> gone;
  for (const auto& [machine, member] : members_) {
    if (member->done()) gone.push_back(machine);
  }
  for (const std::string& machine : gone) {
    remove(machine);
    if (durable_.stopping()) continue;
    timeline_.after(from_seconds(1), [this] { start_new_member(); });
  }
}

StepNumber Fleet::steps() const {
  return lockstep() ? invariants_.applied_steps() : StepNumber(durable_.claimed_steps());
}

std::optional<std::string> Fleet::harboured() const {
  for (const Incarnation one : hostile_) {
    if (!durable_.fenced(one))
      return fmt::format("incarnation {}, which is hostile, is not fenced", one.value);
  }
  return std::nullopt;
}

std::optional<std::string> Fleet::wronged() {
  SimCoordinator* const led = leading();
  if (led == nullptr || !led->leader()->failure() || contradicted_) return std::nullopt;
  return "the run failed, though nobody lied: " + led->leader()->failure()->message();
}

std::optional<std::string> Fleet::lingering() {
  for (const auto& [machine, member] : members_) return fmt::format("{} has not left", machine);
  SimCoordinator* const led = leading();
  if (led == nullptr) return "nobody leads, to say that all have left";
  if (!led->leader()->stopped()) return "the coordinator waits for somebody";
  return std::nullopt;
}

std::uint64_t Fleet::lives() const {
  std::uint64_t lives = past_lives_;
  for (const auto& [machine, member] : members_) lives += static_cast<std::uint64_t>(member->lives());
  return lives;
}

std::optional<std::string> Fleet::unsettled() {
  SimCoordinator* const led = leading();
  if (led == nullptr) return "nobody leads";
  const cluster::Coordinator& coordinator = *led->leader();
  const cluster::View& view = coordinator.view();
  // With announced views a placement lasts longer than a view.
  const bool older = lockstep() && coordinator.installed() != view.epoch();
  if (coordinator.phase() != cluster::Coordinator::Phase::kSettled || older) {
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
