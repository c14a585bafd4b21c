// SPDX-License-Identifier: Apache-2.0
//
// SparseFleet: members that train a TinyProblem with the sparse engine in virtual time, watched from outside
// (sparse_watch.h), and comparisons of their network. Thread rule: the simulation's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/control/defect.h"
#include "cluster/control/workload.h"
#include "engines/sparse/fleet/fleet_engine.h"
#include "engines/sparse/fleet/fleet_workload.h"
#include "host/sim/internet.h"
#include "learn/sparse/network/network.h"
#include "simulation/fleet.h"
#include "simulation/sparse/sparse_watch.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::simulation {

class SparseFleet final {
 public:
  struct Options {
    std::size_t first_members = 4;
    std::size_t copies = 1;
    std::uint64_t seed = 1;
    Driver driver = Driver::kPrompt;
    Duration longest_work = from_milliseconds(5);
    Duration shortest_work = {};
    std::uint64_t memory_bytes = 1 << 20;  // of a member
    host::MachineRates rates = {};         // of a member's line
    StoreKind store = StoreKind::kFile;
    host::PathQuality path = {};
    Duration scatter = {};  // as in Fleet
    double hidden = 0;      // fraction of members behind NAT
    bool machines_again = false;
    std::optional<double> clock_error = std::nullopt;
    Duration freeze_time = from_seconds(30);
    cluster::Defect defect = cluster::Defect::kNone;
    TimedTrace trace = {};
    // Changes what a life sends to others in an exchange.
    std::function<void(net::PeerId, Slices& sent)> falsify = {};
    // Carries out kHostile.
    std::function<void(SimMember&, const Fault&)> misbehave = {};
    // Gets messages that arrive at the leader on channels other than the coordinator's.
    std::function<void(const net::Arrived&)> others = {};
  };
  // `problem` outlives it.
  SparseFleet(const TinyProblem& problem, const Options& options);

  std::string join();
  [[nodiscard]] Fleet* operator->() { return &fleet_; }
  [[nodiscard]] Fleet& operator*() { return fleet_; }
  [[nodiscard]] sparse_engine::FleetEngine& engine(const std::string& machine) {
    return engine_of(fleet_.member(machine));
  }
  [[nodiscard]] bool holds_nothing(const std::string& machine);
  // Why the network is not trained: not all steps are applied, or its holders by the last placement do not
  // have all of it. Nothing: it is trained.
  [[nodiscard]] std::optional<std::string> unfinished();
  [[nodiscard]] bool done() { return !unfinished(); }
  // The lowest step of all members that hold something; nothing without one.
  [[nodiscard]] std::optional<StepNumber> step();

  // The length of the difference over the length, for all weights together. Requires done().
  [[nodiscard]] double distance_to(sparse::Network& whole);
  // The same between two whole networks.
  [[nodiscard]] static double distance(sparse::Network& one, sparse::Network& other);
  // How `alone` was trained: see TinyProblem::train_alone().
  struct Trained {
    const std::set<StepNumber>& fresh;
    const AppliedFound* found;
  };
  // Whether rounding alone takes one learner half so far from itself, for one of a few small changes of its
  // weights at first.
  [[nodiscard]] static bool rounding_takes(const TinyProblem& problem, const Trained& how,
                                           sparse::Network& alone, double distance);
  // A row whose last step is another than in `whole`; nothing: there is none. Requires done().
  [[nodiscard]] std::optional<std::string> other_last_step(sparse::Network& whole);
  // Whether a piece may be lost for good by now: enough lives have ended since all copies were in their
  // places.
  [[nodiscard]] bool may_have_lost() const { return watch_.may_have_lost(); }

 private:
  [[nodiscard]] static sparse_engine::FleetEngine& engine_of(SimMember& process) {
    return static_cast<sparse_engine::FleetEngine&>(process.engine());
  }
  // Checks that every member that is to hold something has come to rest.
  class Decider final : public cluster::Workload {
   public:
    Decider(sparse_engine::FleetWorkload workload, Fleet& fleet)
        : workload_(std::move(workload)), fleet_(fleet) {}
    [[nodiscard]] std::vector<placement::Thing> things() const override { return workload_.things(); }
    [[nodiscard]] std::optional<placement::ThingId> thing_of(cluster::TrackId track) const override {
      return workload_.thing_of(track);
    }
    [[nodiscard]] bool readable(const std::string& report) const override {
      return workload_.readable(report);
    }
    [[nodiscard]] std::set<NodeId> contradicting(
        const std::map<NodeId, membership::Frozen>& reports) const override {
      return workload_.contradicting(reports);
    }
    [[nodiscard]] cluster::Decision decide(const cluster::Rest& rest) override;

   private:
    sparse_engine::FleetWorkload workload_;
    Fleet& fleet_;
  };

  [[nodiscard]] SimMember::Options new_member();
  // Null: the member has no part by the last placement, or computes.
  [[nodiscard]] sparse_engine::FleetLearner* learner(SimMember& process);
  void look();

  const TinyProblem& problem_;
  const Options options_;
  std::uint64_t joined_ = 0;
  Rng rng_;
  Decider workload_;
  Fleet fleet_;
  SparseWatch watch_;
};

}  // namespace gossamer::simulation
