// SPDX-License-Identifier: Apache-2.0
//
// The Work of a member of a sparse run, and the workbench at which its computing thread does it. While there
// is Work the workbench is that thread's. Between two pieces it is the loop's. It outlives the life that
// wanted the Work.
//
// Thread rule: functions are called on the loop thread. The Work that they return is for the computing
// thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/block_pool.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "cluster/control/engine.h"
#include "engines/run/sent_bytes.h"
#include "engines/sparse/fleet/fleet_rounds.h"
#include "engines/sparse/fleet/fleet_snapshots.h"
#include "engines/sparse/fleet/recovery/recovery.h"
#include "engines/sparse/fleet/recovery/vault.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/fleet/step/fleet_learner.h"
#include "engines/sparse/serve/lead_questions.h"
#include "engines/sparse/serve/part_answers.h"

namespace gossamer::sparse_engine {

struct FleetWorkbench {
  Result<std::shared_ptr<const FleetJob>> job{nullptr};
  Result<void> delivered;
  std::unique_ptr<FleetLearner> learner;
  std::unique_ptr<Vault> vault;
  std::unique_ptr<Recovery> recovery;
  std::unique_ptr<PartAnswers> answers;  // about the part of one layout
  net::Message answer;
  std::vector<Slices> got;
  Slices given;
  std::vector<Slices> deltas;  // by rank
  BlockPool snapshot_memory;   // memory for snapshots, from one to the next
  // An error: no member can have given what came, and `giver` did. Without a giver this member cannot go on.
  Result<void> taken;
  std::optional<std::size_t> giver;
  std::optional<StepNumber> looked;  // the deltas of the snapshot of this step are good
};
using FleetWorkbenchRef = std::shared_ptr<FleetWorkbench>;
using FleetWork = cluster::Engine::Work;

[[nodiscard]] FleetWork stage_work(FleetWorkbenchRef bench, RecoveryStage stage);

// A round of a step, and what the member says with it.
struct RoundWork {
  FleetRounds::Item item;
  FleetRound round;
  StepWish wish = StepWish::kNothing;
  Epoch epoch = {};
  engine::SentBytes sent = {};
};
[[nodiscard]] FleetWork round_work(FleetWorkbenchRef bench, const RoundWork& work);

// Work that needs nothing from other members. It is done while they are waited for (`waits`), at the latest
// before `next`, the round that needs it. Empty: there is none.
[[nodiscard]] FleetWork work_ahead(FleetWorkbenchRef bench, const FleetRounds& rounds,
                                   const FleetRounds::Item& next);

// Gathers what the keepers of a snapshot lack, into `deltas`.
[[nodiscard]] FleetWork delta_work(FleetWorkbenchRef bench, const FleetSnapshots& snapshots);
// Looks whether the deltas of a snapshot can be what its members had.
[[nodiscard]] std::function<void(FleetWorkbench&)> look_work(const FleetSnapshots::Snapshot& snapshot);
// Takes what a member keeps of a snapshot that all members have stored.
[[nodiscard]] std::function<void(FleetWorkbench&)> keep_work(FleetSnapshots::Snapshot snapshot);

// Saves the state before a step. `last`: no further step is taken, so it waits until the save has ended.
[[nodiscard]] FleetWork save_work(FleetWorkbenchRef bench, StepNumber step, bool last);
[[nodiscard]] FleetWork delivery_work(FleetWorkbenchRef bench);
[[nodiscard]] FleetWork answer_work(FleetWorkbenchRef bench,
                                    std::shared_ptr<const LeadQuestions::Question> question);

}  // namespace gossamer::sparse_engine
