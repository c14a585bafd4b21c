// SPDX-License-Identifier: Apache-2.0
//
// CheckFleet, for tests: a fleet check in virtual time (simulation/fleet.h). Thread rule: the test's
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engines/check/check_config.h"
#include "engines/check/check_engine.h"
#include "engines/check/check_workload.h"
#include "simulation/fleet.h"

namespace gossamer::check {

using simulation::Driver;

struct CheckNodes {
  std::uint64_t memory_bytes = 1 << 20;  // of each
  simulation::Identity identity = simulation::Identity::kNumbered;
};

class CheckFleet final {
 public:
  CheckFleet(const CheckConfig& config, std::size_t first_members, std::uint64_t seed,
             Driver driver = Driver::kPrompt, const CheckNodes& nodes = {});

  // Starts a member and returns its machine: m1, m2, ...
  std::string join(const CheckEngine::Options& options = {}) { return fleet_.join(member(options)); }
  [[nodiscard]] simulation::Fleet* operator->() { return &fleet_; }

  [[nodiscard]] const CheckEngine& engine(const std::string& machine) {
    return engine_of(fleet_.member(machine));
  }
  [[nodiscard]] const CheckWorkload& workload() const { return workload_; }
  // The first failure of any member, a removed one too, or of the coordinator's judgement. A step out of
  // order in one life counts as a failure.
  [[nodiscard]] std::optional<std::string> failure();
  // The lowest and the highest step of the serving members that hold things; nothing without one.
  [[nodiscard]] std::optional<std::pair<StepNumber, StepNumber>> steps();

 private:
  [[nodiscard]] static const CheckEngine& engine_of(simulation::SimMember& process) {
    return static_cast<const CheckEngine&>(process.engine());
  }
  [[nodiscard]] simulation::SimMember::Options member(const CheckEngine::Options& options);
  void watch(simulation::SimMember& process);

  struct Seen {
    std::optional<Incarnation> life;
    std::optional<StepNumber> step;
  };

  const Driver driver_;
  const CheckNodes nodes_;
  CheckWorkload workload_;
  std::map<std::string, Seen> seen_;  // by machine
  std::optional<std::string> broke_;
  simulation::Fleet fleet_;
};

}  // namespace gossamer::check
