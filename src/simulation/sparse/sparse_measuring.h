// SPDX-License-Identifier: Apache-2.0
//
// SparseMeasuring: the lead of a simulated run measures the trained network. It asks the members about the
// test records (docs/protocols/sparse-serving.md). If the view changes meanwhile, it begins anew. So does the
// next lead. Thread rule: the simulation's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "engines/sparse/predict/fusion.h"
#include "engines/sparse/serve/fleet_queries.h"
#include "net/link/links.h"
#include "simulation/fleet.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::simulation {

class SparseMeasuring {
 public:
  // Both outlive it, and its looks at the fleet.
  SparseMeasuring(const TinyProblem& problem, Fleet& fleet);
  SparseMeasuring(const SparseMeasuring&) = delete;
  SparseMeasuring& operator=(const SparseMeasuring&) = delete;

  // A message that arrives at the leader on a channel other than the coordinator's.
  void on(const net::Arrived& arrived);
  // The ranks of the true labels of all test records, in their order, as the members of epoch() found them. A
  // rank is from 1 on; 0: the label is not among the best kEvaluationDepth. Nothing until all are known.
  [[nodiscard]] const std::optional<std::vector<std::uint32_t>>& ranks() const { return told_; }
  // The epoch of the members that are asked; 0 before they are.
  [[nodiscard]] Epoch epoch() const { return epoch_; }
  // How often all records were measured.
  [[nodiscard]] std::uint64_t ended() const { return ended_; }

 private:
  void blame(net::PeerId peer, const Error& error);
  [[nodiscard]] bool follow_lead();
  // What a companion is told before it gets messages.
  void tell_placement(const cluster::Coordinator& leader);
  void look();
  void begin_anew();
  void ask();
  void take(const sparse_engine::FleetQueries::Answer& answer);

  const TinyProblem& problem_;
  Fleet& fleet_;
  // Once a member was ready. Until then the history is that of a run without test records.
  bool looking_ = false;
  Generation lead_;                                     // that asks; 0: none yet
  Epoch placed_;                                        // of the placement that the queries were told
  std::optional<sparse_engine::FleetQueries> queries_;  // of that lead
  sparse_engine::Fusion fusion_;
  Epoch epoch_;
  std::uint64_t next_ = 0;            // the first record that is not answered
  std::vector<std::uint32_t> ranks_;  // of the records before it
  std::optional<std::vector<std::uint32_t>> told_;
  std::uint64_t ended_ = 0;
};

}  // namespace gossamer::simulation
