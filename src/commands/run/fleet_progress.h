// SPDX-License-Identifier: Apache-2.0
//
// FleetProgress says how far the nodes of a run are, from their reports. It keeps the reports in a journal,
// so that the next lead of the run knows them too. The lead asks it now and then.
//
// Thread rule: the thread that asks, which is the loop thread while it leads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "commands/engine/training.h"
#include "commands/run/member_report.h"
#include "commands/run/owner_book.h"
#include "commands/run/report_tallies.h"
#include "engines/run/train_hooks.h"
#include "node/reports/report_inbox.h"
#include "node/reports/report_journal.h"
#include "run/node_host.h"
#include "run/run_directory.h"

namespace gossamer::commands {

class FleetProgress {
 public:
  // The host, the training and the hooks outlive it. Makes the directory for parts. `from` is where the run
  // goes on.
  FleetProgress(const run::NodeHost& host, const std::string& run, const LedTraining& training,
                const engine::TrainHooks& hooks, tensors::CheckpointInfo from = {});

  // Judges what members tell by these books, which outlive it, and hands on no step that its members have not
  // marked. Without them every report counts.
  void judge_by(const OwnerBook& owners) { owners_ = &owners; }
  // Reads what members have told earlier leads, and hands on those steps, or does so once the books show
  // them. Recoveries before them, and files that failed, count and are not told again. To be called next.
  [[nodiscard]] Result<void> read();
  // Lets what members have told survive a loss of power, beside other work. To be called again and again.
  static constexpr Duration kSyncEvery{1'000'000'000};
  void sync_reports(Instant now);
  void sync_by(node::Aside aside) { sync_.aside = std::move(aside); }
  // Takes what members tell this lead.
  [[nodiscard]] node::ReportInbox& reports() { return inbox_; }
  // Hands on the steps before `limit` that all members have told of since the last call, and the checkpoints
  // that failed.
  void tell_steps(std::optional<StepNumber> limit = {});
  // Hands on all steps anew from the first one that was passed over and is whole by now, if there is one.
  // To be called at the end, after tell_steps().
  void tell_late_steps(std::optional<StepNumber> limit = {});
  // Hands on recoveries, once a step after them is known, or at the end.
  enum class Until { kNow, kEnd };
  void tell_recoveries(Until until);
  // Sets a function that improves the cause of a recovery with what else is known of the node that it names.
  void name_causes(std::function<std::string(std::string cause)> name) { name_ = std::move(name); }
  // Adds the bytes and recoveries that were told.
  void add_to(StepsCost& cost) const;
  // The steps that are known to be done.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  // Whether these nodes have done some of them.
  [[nodiscard]] bool stepping() const { return steps_ > from_.next_step.value; }
  // What is known of the run by now. `cost` is the cost of this training.
  [[nodiscard]] tensors::CheckpointInfo info(const tensors::RunCost& cost) const;
  // The error for a run that was asked to stop, where the newest checkpoint is older than the last step.
  [[nodiscard]] Error not_saved(StepNumber newest) const;
  // How far the run is by now.
  [[nodiscard]] DoneSteps done() const;

 private:
  [[nodiscard]] Result<std::string> take(node::ReportBatch batch);
  [[nodiscard]] std::string objection(NodeId from, const MemberReport& report) const;
  void add(NodeId from, MemberReport report);
  void know_told();
  // The step that a report tells of; null for another report, or a step that the run does not have.
  [[nodiscard]] const engine::MemberStep* step_in(const MemberReport& report) const;
  // `just_done`: it was done after the step that was told before.
  void tell(const StepLoss& one, bool just_done);
  void keep(const StepLoss& one);

  const run::NodeHost& host_;
  const LedTraining& training_;
  const LedTraining::Facts facts_;
  const engine::TrainHooks& hooks_;
  const run::RunPaths paths_;
  node::ReportJournal journal_;
  node::ReportInbox inbox_;
  struct Sync {
    node::Aside aside = {};  // empty: nothing is synced
    bool under_way = false;
    Instant next = {};
  };
  Sync sync_;
  StepTally tally_;
  RecoveryTally recovery_tally_;
  // Those that are not handed on yet, by the node that told of them.
  std::vector<std::pair<NodeId, FailedCheckpoint>> failed_;
  std::vector<DamagedFile> damaged_;
  std::vector<engine::FleetRecovery> recoveries_;
  const OwnerBook* owners_ = nullptr;
  StepNumber read_end_;  // steps before it were told to earlier leads
  std::function<std::string(std::string)> name_;
  const tensors::CheckpointInfo from_;
  std::uint64_t steps_;
  std::deque<double> losses_;
  std::string not_written_;  // why the last failed checkpoint could not be written
};

// Tells that a run goes on from a checkpoint, if it does.
void tell_start(const tensors::CheckpointInfo& from, const engine::TrainHooks& hooks);

}  // namespace gossamer::commands
