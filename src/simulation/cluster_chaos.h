// SPDX-License-Identifier: Apache-2.0
//
// ClusterChaos: a fleet under faults in virtual time. Real links, coordinators and members over a simulated
// internet and store; a counting engine in place of training; invariants watched all along, and at the end
// that everybody is back to work. One seed gives one history.
//
// Thread rule: one thread for each run; runs share nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "cluster/control/defect.h"
#include "simulation/fault.h"

namespace gossamer::simulation {

// kFile: one coordinator, that comes back to its file. kCluster: a second one stands by (etcd).
enum class StoreKind { kFile, kCluster };

struct ChaosOptions {
  std::uint64_t seed = 1;
  std::size_t members = 4;
  std::size_t first_members = 3;
  std::size_t things = 8;
  std::optional<StoreKind> store = std::nullopt;  // none: drawn
  double hidden = 0;                              // share of members behind NAT
  std::vector<FaultKind> kinds = {};              // empty: all
  std::size_t faults = 8;
  std::vector<Fault> script = {};       // instead of drawn ones, if there are any
  Duration trouble = from_seconds(30);  // faults begin within it
  Duration calm = from_seconds(45);     // after the last has ended
  cluster::Defect defect = cluster::Defect::kNone;
  // Is told what happens, with the simulated time in seconds: for people who replay a seed.
  std::function<void(double, const std::string& who, const std::string& what)> trace = {};
};

struct ChaosReport {
  std::optional<std::string> violation;
  std::uint64_t state_hash = 0;
  std::uint64_t events = 0;
  std::uint64_t faults_injected = 0;
  std::uint64_t steps_committed = 0;
  std::uint64_t lives = 0;  // of members
  double virtual_seconds = 0;
};

[[nodiscard]] ChaosReport run_cluster_chaos(const ChaosOptions& options);

}  // namespace gossamer::simulation
