// SPDX-License-Identifier: Apache-2.0
//
// CountingFleet, for tests: members with counting engines, on machines whose clocks are right. Thread rule:
// the test's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "simulation/counting_engine.h"
#include "simulation/fleet.h"

namespace gossamer::simulation {

class CountingFleet final {
 public:
  struct Options {
    std::size_t members = 3;
    std::uint64_t things = 6;
    Identity identity = Identity::kNumbered;
    Duration freeze_time = from_seconds(30);
    std::function<void(SimMember&, const Fault&)> misbehave = {};
    cluster::Defect defect = cluster::Defect::kNone;
  };
  explicit CountingFleet(const Options& options)
      : things_(options.things),
        workload_(options.things),
        fleet_({.workload = workload_,
                .tracks = workload_.tracks(),
                .batch = kBatch,
                .first_members = options.members,
                .seed = 1,
                .identity = options.identity,
                .freeze_time = options.freeze_time,
                .defect = options.defect,
                .new_member = [this] { return new_member(); },
                .misbehave = options.misbehave,
                .resume_of = resume_of}) {
    for (std::size_t i = 0; i < options.members; ++i) fleet_.start_new_member();
  }

  Fleet* operator->() { return &fleet_; }
  Fleet& operator*() { return fleet_; }
  [[nodiscard]] const CountingEngine& engine(const std::string& machine) {
    return static_cast<const CountingEngine&>(fleet_.member(machine).engine());
  }
  [[nodiscard]] cluster::Member& member(const std::string& machine) {
    return *fleet_.member(machine).member();
  }

 private:
  [[nodiscard]] SimMember::Options new_member() {
    const std::uint64_t seed = ++joined_;
    return {.make_engine = [this, seed](cluster::MemberProcess& process) {
      return std::make_unique<CountingEngine>(
          CountingEngine::World{.invariants = fleet_.invariants(),
                                .believes = [](Incarnation, const cluster::LeaseKeys&) { return false; },
                                .things = things_},
          process, seed, 1);
    }};
  }

  std::uint64_t things_;
  std::uint64_t joined_ = 0;
  CountingWorkload workload_;
  Fleet fleet_;
};

}  // namespace gossamer::simulation
