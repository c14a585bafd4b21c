// SPDX-License-Identifier: Apache-2.0
//
// LossWatch is the workload of a run whose lead has checkpoints. It notes when a part of what the run has
// learnt is lost with all of its copies. The decision still says that the run has failed, as the store must
// not hold one that members cannot carry out. The lead begins anew from a checkpoint before anybody is told.
//
// Other failures have no decision beside them. They end the run: they would come again.
//
// Thread rule: one owner, the coordinator's.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/control/workload.h"

namespace gossamer::commands {

class LossWatch final : public cluster::Workload {
 public:
  // The workload outlives this one. `notes` is called at the loss, before the store can have it: a process
  // that ends later leaves a store that says that the run has failed.
  LossWatch(cluster::Workload& workload, std::function<void()> notes)
      : workload_(workload), notes_(std::move(notes)) {}

  [[nodiscard]] std::vector<placement::Thing> things() const override { return workload_.things(); }
  [[nodiscard]] std::optional<placement::ThingId> thing_of(cluster::TrackId track) const override {
    return workload_.thing_of(track);
  }
  [[nodiscard]] bool readable(const std::string& report) const override { return workload_.readable(report); }
  [[nodiscard]] std::set<NodeId> contradicting(
      const std::map<NodeId, membership::Frozen>& reports) const override {
    return workload_.contradicting(reports);
  }
  [[nodiscard]] std::set<NodeId> contradicting_by(
      std::string_view last, const std::map<NodeId, membership::Frozen>& reports) const override {
    return workload_.contradicting_by(last, reports);
  }
  [[nodiscard]] cluster::Decision decide(const cluster::Rest& rest) override {
    return workload_.decide(rest);
  }
  void installed(const cluster::Decision& decision) override {
    workload_.installed(decision);
    if (!decision.failure || decision.bytes.empty()) return;
    lost_ = decision.failure;
    notes_();
  }

  // What is lost, once it is. A run that was told to end installs no such view, so it loses nothing here.
  [[nodiscard]] const std::optional<Error>& lost() const { return lost_; }

 private:
  cluster::Workload& workload_;
  const std::function<void()> notes_;
  std::optional<Error> lost_;
};

}  // namespace gossamer::commands
