// SPDX-License-Identifier: Apache-2.0
//
// SparseChaos: the sparse engine under faults in virtual time. Real links, coordinators, members and engines
// train a tiny problem (tiny_problem.h) over a simulated internet. At the end their network is compared with
// the one that a single learner makes alone. One seed gives one fleet, one network and one history.
//
// Thread rule: one thread for each run; runs share nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/probe.h"
#include "base/time.h"
#include "cluster/control/defect.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/fleet/step/fleet_defect.h"
#include "engines/sparse/fleet/step/fleet_probe.h"
#include "kernels/isa.h"
#include "net/codec/codec.h"
#include "simulation/fault.h"
#include "simulation/fleet.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::simulation {

// Whether hash tables find negatives, and for what: a common set, or each sample's own
// (learn/sparse/negatives/found_rows.h).
enum class HashTables { kNone, kShared, kOwn };

// Options that are 0 or not set are drawn (sparse_shape.h). Requires that the others can be combined
// (engines/sparse/fleet/step/fleet_job.h).
struct SparseChaosOptions {
  std::uint64_t seed = 1;
  std::size_t members = 0;
  std::size_t copies = 0;                           // of each piece, beside the holder's
  std::optional<std::size_t> dense = std::nullopt;  // layers
  std::optional<std::size_t> staleness = std::nullopt;
  // All machines lose power at once, and a fleet of others goes on from the newest checkpoint.
  std::optional<bool> power_off = std::nullopt;
  std::optional<sparse_engine::ExchangeKind> exchange = std::nullopt;
  std::optional<HashTables> lsh = std::nullopt;
  std::optional<bool> evaluation = std::nullopt;   // the lead measures the trained network
  std::optional<net::Codec> codec = std::nullopt;  // of the matrices exchanged in a step
  std::uint64_t steps = 0;
  std::uint64_t snapshot_every = 0;
  std::optional<StoreKind> store = std::nullopt;
  std::optional<Driver> driver = std::nullopt;
  double delay_ms = 0;                             // of every path, one way
  std::optional<Duration> scatter = std::nullopt;  // each machine's line adds up to so much
  std::optional<double> hidden = std::nullopt;     // fraction of members behind NAT
  std::vector<FaultKind> kinds = {};               // kinds to draw from; empty: sparse_chaos_kinds()
  std::size_t faults = 6;                          // drawn ones
  std::vector<Fault> script = {};                  // instead of drawn ones, if there are any
  Duration trouble = from_seconds(10);             // faults begin within it
  Duration calm = from_seconds(60);                // after the last fault has ended: then all must be done
  double most_error = 0;      // relative distance of all weights; 0: most_error_of() the codec
  bool nothing_lost = false;  // the run may not fail, whatever faults take
  Duration longest_standstill = from_seconds(3600);  // without a step committed, from the first to the last
  kernels::Isa isa = kSimulatedIsa;
  sparse_engine::FleetDefect defect = sparse_engine::FleetDefect::kNone;
  cluster::Defect cluster_defect = cluster::Defect::kNone;
  TimedTrace trace = {};
};

// The largest relative distance of all weights that is rounding. Sums in another order over some 30 steps
// cause it, and fewer bits on the way. (A single learner cannot round as members do: each rounds its own part
// of dh, so it would have to know the holders.) Most runs in f32 are below 1e-5. Runs near the limit have a
// unit whose input for a sample is 0 but for rounding. It is then active in only one of the two sums.
[[nodiscard]] constexpr double most_error_of(net::Codec codec) {
  switch (codec) {
    case net::Codec::kF32: return 1e-4;
    case net::Codec::kBf16: return 0.08;
    case net::Codec::kInt8:
    case net::Codec::kF64: break;  // the engine computes in f32
  }
  return 0.2;
}

struct SparseChaosReport {
  std::optional<std::string> violation;
  // The run failed, and may rightly: a part of what it had learnt was lost with all copies.
  bool lost = false;
  std::uint64_t state_hash = 0;
  std::uint64_t frames_hash = 0;  // every byte that processes sent
  std::uint64_t events = 0;
  std::uint64_t faults_injected = 0;
  std::uint64_t steps_committed = 0;
  std::uint64_t steps_saved = 0;  // steps that the second fleet did not have to repeat
  std::uint64_t lives = 0;        // of members
  double relative_weight_error = 0;
  net::Codec codec = net::Codec::kF32;  // of the run
  std::uint64_t evaluations = 0;        // how often all test records were measured
  double virtual_seconds = 0;
  ProbeCounts<sparse_engine::FleetProbe> probes;
};

// All kinds that make sense for an engine. Kinds that cost lives are listed several times.
[[nodiscard]] std::vector<FaultKind> sparse_chaos_kinds();
[[nodiscard]] SparseChaosReport run_sparse_chaos(const SparseChaosOptions& options);

}  // namespace gossamer::simulation
