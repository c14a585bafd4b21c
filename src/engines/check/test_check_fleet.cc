// SPDX-License-Identifier: Apache-2.0
#include "engines/check/test_check_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace gossamer::check {

CheckFleet::CheckFleet(const CheckConfig& config, std::size_t first_members, std::uint64_t seed,
                       Driver driver, const CheckNodes& nodes)
    : driver_(driver),
      nodes_(nodes),
      workload_(config),
      fleet_({.workload = workload_,
              .configuration = check_config_bytes(config),
              .tracks = workload_.tracks(),
              .first_members = first_members,
              .seed = seed,
              .identity = nodes.identity,
              .new_member = [this] { return member({}); }}) {
  for (std::size_t i = 0; i < first_members; ++i) join();
}

simulation::SimMember::Options CheckFleet::member(const CheckEngine::Options& options) {
  return {.driver = driver_,
          .memory_bytes = nodes_.memory_bytes,
          .make_engine =
              [options](cluster::MemberProcess& process) {
                return std::make_unique<CheckEngine>(process, options);
              },
          .watch = [this](simulation::SimMember& process) { watch(process); }};
}

void CheckFleet::watch(simulation::SimMember& process) {
  Seen& seen = seen_[process.machine()];
  std::optional<Incarnation> life;
  if (process.member() != nullptr) life = process.member()->self().incarnation;
  if (life != seen.life) seen = {.life = life, .step = {}};
  const auto step = engine_of(process).step();
  if (step && seen.step && *step < *seen.step && !broke_) {
    broke_ = fmt::format("{} went from step {} back to {}", process.machine(), seen.step->value, step->value);
  }
  seen.step = step;
}

std::optional<std::string> CheckFleet::failure() {
  const auto failure = fleet_.failure();
  return failure ? failure : broke_;
}

std::optional<std::pair<StepNumber, StepNumber>> CheckFleet::steps() {
  std::optional<std::pair<StepNumber, StepNumber>> range;
  for (const auto& [machine, member] : fleet_.members()) {
    const CheckEngine& engine = engine_of(*member);
    if (engine.things_held() == 0 || !engine.step()) continue;
    const StepNumber step = *engine.step();
    if (!range) range = {step, step};
    range = {std::min(range->first, step), std::max(range->second, step)};
  }
  return range;
}

}  // namespace gossamer::check
