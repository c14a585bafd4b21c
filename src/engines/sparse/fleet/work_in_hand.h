// SPDX-License-Identifier: Apache-2.0
//
// WorkInHand: the piece of Work that a fleet engine wants or has under way. There is at most one, because the
// workbench belongs to it.
//
// Thread rule: the loop thread. The Work that take() returns is for the computing thread.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engines/sparse/fleet/fleet_work.h"

namespace gossamer::sparse_engine {

enum class FleetTask {
  kNothing,
  kPreparing,
  kRecovering,
  kSnapshot,
  kLooking,
  kStepping,
  kAhead,
  kSaving,
  kDelivering,
  kAnswering
};

class WorkInHand {
 public:
  using Upkeep = std::vector<std::function<void(FleetWorkbench&)>>;

  [[nodiscard]] FleetTask task() const { return task_; }
  // What is computed is kept beyond this node.
  [[nodiscard]] bool keeps() const { return task_ == FleetTask::kSaving || task_ == FleetTask::kDelivering; }
  [[nodiscard]] bool idle() const { return task_ == FleetTask::kNothing; }
  // Requires idle(). The upkeep is done first.
  void want(FleetTask task, FleetWorkbenchRef bench, Upkeep upkeep, FleetWork work) {
    CHECK(idle(), static_cast<int>(task_));
    task_ = task;
    bench_ = std::move(bench);
    wanted_ = [at = bench_, upkeep = std::move(upkeep), work = std::move(work)] {
      for (const auto& one : upkeep) one(*at);
      work();
    };
  }
  [[nodiscard]] FleetWork take() { return std::exchange(wanted_, {}); }

  struct Done {
    FleetTask task;
    FleetWorkbenchRef bench;  // at which it was done
  };
  [[nodiscard]] Done done() {
    return {std::exchange(task_, FleetTask::kNothing), std::exchange(bench_, nullptr)};
  }

 private:
  FleetTask task_ = FleetTask::kNothing;
  FleetWorkbenchRef bench_;
  FleetWork wanted_;
};

}  // namespace gossamer::sparse_engine
