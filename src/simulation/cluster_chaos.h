// SPDX-License-Identifier: Apache-2.0
//
// ClusterChaos: a fleet under faults in virtual time. Real links, coordinators and members run over a
// simulated internet and store, with a counting engine in place of training. Invariants are watched all
// along. At the end everybody must be back to work, and the expectations must have come true. One seed gives
// one history.
//
// Thread rule: one thread for each run; runs share nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "cluster/control/control_probe.h"
#include "cluster/control/coordinator.h"
#include "cluster/control/defect.h"
#include "host/sim/internet.h"
#include "net/link/link_probe.h"
#include "simulation/counting_engine.h"
#include "simulation/fault.h"
#include "simulation/fleet.h"

namespace gossamer::simulation {

// What a run must reach beside keeping the invariants. The defaults expect nothing: no run comes near them.
struct ChaosExpectations {
  std::uint64_t most_lives = 1'000'000;              // of members
  std::uint64_t least_steps = 0;                     // committed at the end
  std::uint64_t least_steps_under_faults = 0;        // applied from the first fault's start to the last's end
  Duration recovered_within = from_seconds(3600);    // after the last fault's end
  Duration longest_standstill = from_seconds(3600);  // without a step applied
};

struct ChaosOptions {
  std::uint64_t seed = 1;
  std::size_t members = 4;
  std::size_t first_members = 3;
  std::size_t things = 8;
  std::size_t local_members = 0;                  // the first so many run on the first coordinator's machine
  std::optional<StoreKind> store = std::nullopt;  // none: drawn
  std::optional<Identity> identity = std::nullopt;  // none: drawn
  // If one of the next five is not set, it is drawn for runs with faults. Without faults it has the plain
  // value.
  std::optional<double> hidden = std::nullopt;         // fraction of members behind NAT; plain: 0
  std::optional<double> memory = std::nullopt;         // of each, as a fraction of all things; plain: 1
  std::optional<Duration> freeze_time = std::nullopt;  // plain: 30 s
  std::optional<cluster::ViewChange> view_change = std::nullopt;  // plain: frozen
  std::optional<Duration> scatter = std::nullopt;                 // of the machines' lines; plain: none
  CountingWorkload::Steps steps = CountingWorkload::Steps::kStop;
  double clock_error = 0.02;          // rates are drawn from 1 - this to 1 + this
  host::PathQuality path = {};        // between any two machines
  std::vector<FaultKind> kinds = {};  // empty: all
  std::size_t faults = 8;
  std::vector<Fault> script = {};       // instead of drawn ones, if there are any
  Duration trouble = from_seconds(30);  // faults begin within it
  Duration calm = from_seconds(45);     // after the last has ended
  ChaosExpectations expect = {};
  cluster::Defect defect = cluster::Defect::kNone;
  TimedTrace trace = {};  // for people that replay a seed
};

struct ChaosProbes {
  ProbeCounts<cluster::ControlProbe> control;
  ProbeCounts<net::LinkProbe> link;
};

struct ChaosReport {
  std::optional<std::string> violation;
  std::uint64_t state_hash = 0;
  std::uint64_t frames_hash = 0;  // every byte that processes sent
  std::uint64_t events = 0;
  std::uint64_t faults_injected = 0;
  std::uint64_t steps_committed = 0;
  std::uint64_t steps_under_faults = 0;
  std::uint64_t lives = 0;      // of members
  std::uint64_t cut_short = 0;  // a member rested in a step for which it had done its part
  // From the last fault's end until all members serve under one installed view and have applied a step.
  std::optional<Duration> recovery;
  Duration standstill;  // the longest time without a step, from the first one until the run is told to end
  double virtual_seconds = 0;
  ChaosProbes probes;
};

[[nodiscard]] ChaosReport run_cluster_chaos(const ChaosOptions& options);

}  // namespace gossamer::simulation
