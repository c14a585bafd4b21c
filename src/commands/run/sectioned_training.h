// SPDX-License-Identifier: Apache-2.0
//
// SectionedTraining: the base of a training whose steps members do, and whose state is named sections, of
// which each member has some. Members write their sections with MemberFiles (member_files.h). A checkpoint is
// whole, and a result delivered, when its files together have all sections. Checksums and sizes are verified
// before a run goes on from a checkpoint, and before a result is taken.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "commands/engine/run_request.h"
#include "commands/engine/training.h"
#include "node/files/supply.h"
#include "tensors/fleet_files.h"

namespace gossamer::commands {

class SectionedTraining : public Training, public LedTraining {
 public:
  // kUsage without members. kBadData for data without a step.
  [[nodiscard]] Result<void> prepare() final;
  [[nodiscard]] Result<DoneSteps> train(const engine::TrainHooks& hooks, double load_seconds) final;
  [[nodiscard]] StepsCost cost() const final { return cost_; }
  void finished() final;

  [[nodiscard]] Facts led_facts() const final;
  [[nodiscard]] Result<Start> find_start(EventSink events) final;
  [[nodiscard]] Result<DoneSteps> take_trained(const engine::TrainHooks& hooks) final;
  [[nodiscard]] std::optional<tensors::CheckpointInfo> checkpoint(StepNumber step) const final;
  [[nodiscard]] Result<Led> lead(const FleetWanted& wanted) final;
  [[nodiscard]] std::optional<DeliveredFile> read_delivered(std::string_view name) const final;
  [[nodiscard]] Result<void> check_delivered(const std::string& path, const DeliveredFile& file,
                                             std::span<const Owned> owned) const final;
  [[nodiscard]] Result<bool> delivered(std::size_t members) final;
  [[nodiscard]] std::size_t parts() const final { return parts_.size(); }
  [[nodiscard]] Result<void> take_delivered() final;
  [[nodiscard]] Result<bool> keep_trained(const tensors::CheckpointInfo& info) final;

 protected:
  // `engine`: its name.
  SectionedTraining(const TrainingPlace& place, std::string engine, const std::optional<LeadOptions>& lead);

  // Reads the data, and derives what the config leaves open.
  [[nodiscard]] virtual Result<void> load() = 0;
  // What follows from data and config, after load().
  struct Section {
    std::string name;
    std::uint64_t bytes;
  };
  struct Sections {
    std::vector<Section> all = {};
    std::uint64_t steps = 0;      // of the run, >= 1
    std::string data = {};        // where the data are, for people
    std::string fingerprint;      // of everything that shapes the result
    std::size_t checkpoints = 2;  // that are kept. With one, a damaged file would cost the whole run
  };
  [[nodiscard]] virtual Sections sections() const = 0;
  // The thing whose holder has the section; nothing for no section of the run. Any thread, after load().
  [[nodiscard]] virtual std::optional<std::uint64_t> thing_of(const std::string& section) const = 0;
  // Adds the files of the data that members need.
  [[nodiscard]] virtual Result<void> supply(node::Supply& supply) const = 0;
  // What members do: a workload with a track for each thing.
  [[nodiscard]] virtual Led workload(StepNumber start) const = 0;

  [[nodiscard]] const run::NodeHost& host() const { return host_; }
  [[nodiscard]] const run::RunPaths& paths() const { return paths_; }
  // A section of the delivered result, of the size that sections() has. Requires that the result was taken.
  [[nodiscard]] Result<std::span<const std::byte>> result(const std::string& section) const;

 private:
  // The files of a step that have all sections; nothing while one is missing.
  using Whole = std::optional<tensors::FleetFiles>;
  [[nodiscard]] Result<Whole> whole(const std::string& directory, StepNumber step, EventSink events) const;
  // Verifies all sections. kBadData for one that no file has undamaged.
  [[nodiscard]] Result<void> verify(const std::vector<tensors::CheckpointFile>& files,
                                    EventSink events) const;
  [[nodiscard]] Result<Whole> undamaged(StepNumber step, EventSink events) const;

  const run::NodeHost& host_;
  const run::RunPaths paths_;
  const std::string run_id_;
  const std::string engine_;
  const std::optional<LeadOptions> lead_;
  double load_seconds_ = 0;
  StepsCost cost_;
  std::vector<tensors::CheckpointFile> parts_;  // that have the result
};

}  // namespace gossamer::commands
