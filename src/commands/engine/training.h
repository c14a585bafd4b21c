// SPDX-License-Identifier: Apache-2.0
//
// Training is what an engine does for a training run: it reads the data, does the steps, and makes the model.
// run_training() (commands/run) calls it in this order, and does all that is the same for every engine:
// directory, log, progress, curve, summary.
//
//   prepare()   data, and what follows from them; a refusal leaves no directory behind
//   train()     steps, until none is left or the run is stopped
//   save()      the model, once no step is left
//   measure()   how good it is
//
// LedTraining is what an engine does for a run whose steps members do, in the process that leads them
// (commands/run/run_lead.h).
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "base/function_ref.h"
#include "base/ids.h"
#include "base/result.h"
#include "cluster/control/workload.h"
#include "engines/run/fleet_recovery.h"
#include "engines/run/train_hooks.h"
#include "node/companion.h"
#include "node/files/supply.h"
#include "run/node_host.h"
#include "run/run_directory.h"
#include "settings/key_table.h"
#include "tensors/checkpoint.h"

namespace gossamer::commands {

// Where a run lives, and the config that it begins with.
struct TrainingPlace {
  const run::NodeHost& host;
  run::RunPaths paths;
  std::string run_id;
  settings::Values config;
  FunctionRef<bool()> stop_requested;
  std::string resume_command = {};  // as in RunRequest
  bool begins = false;              // nobody has resolved the run's config yet
};

// What is known of a run once it is prepared.
struct TrainingFacts {
  std::uint64_t parameters = 0;
  std::uint64_t batch = 1;    // samples of a step
  std::uint64_t samples = 1;  // of an epoch; known after train()
  std::string title = {};     // of its curve
};

// How far the steps of a run are.
struct DoneSteps {
  std::uint64_t steps = 0;
  bool all = false;       // no step is left
  double final_loss = 0;  // mean of the last 100 steps of the run
  // If it continued from a checkpoint: the step this process began with, and the cost of the run up to there.
  std::optional<StepNumber> resumed_at = {};
  tensors::RunCost cost_before = {};
};

// What the members of a run have cost, beside this process.
struct StepsCost {
  std::uint64_t nodes = 1;           // that did the steps
  double cpu_seconds = 0;            // of all their processes
  std::uint64_t peak_rss_bytes = 0;  // of the largest
  double step_bytes = 0;             // that each of them has sent for a step, in the mean
  double background_bytes = 0;       // and for anything else during one
  std::vector<engine::FleetRecovery> recoveries = {};
};

struct Measurement {
  std::string metrics_json = "{}";
  double seconds = 0;
  double cpu_seconds = 0;
  bool while_training = false;  // by members: its seconds are among those of train()
  std::string text = {};        // the same for people
  std::string stopped = {};     // for people, if the run was stopped meanwhile; else empty
};

class Training {
 public:
  Training() = default;
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;
  virtual ~Training() = default;

  [[nodiscard]] virtual Result<void> prepare() = 0;
  // The config with all that was derived, after prepare(). A resumed run starts from it.
  [[nodiscard]] virtual settings::Values config() const = 0;
  [[nodiscard]] virtual TrainingFacts facts() const = 0;
  // `load_seconds`: what prepare() took.
  [[nodiscard]] virtual Result<DoneSteps> train(const engine::TrainHooks& hooks, double load_seconds) = 0;
  [[nodiscard]] virtual StepsCost cost() const { return {}; }
  // Whether an error of train() or save() comes again however often the run is resumed.
  [[nodiscard]] virtual bool ends_for_good(const Error&) const { return false; }
  // Writes DIR/model. After an error of its files it may be called again.
  [[nodiscard]] virtual Result<void> save() = 0;
  // Looks whether the model of a finished run is whole. The error says what is gone or damaged. Before
  // prepare().
  [[nodiscard]] virtual Result<void> check_saved() const { return {}; }
  [[nodiscard]] virtual Result<Measurement> measure() { return Measurement(); }
  // The run is finished: what its members left is needed no more.
  virtual void finished() {}
};

// What an engine does in the lead beside leading and giving files. It gets the messages of its channel.
struct LedBeside {
  std::uint32_t channel = 0;
  node::MakeCompanion make;
};

// What a coordinator leads.
struct Led {
  std::unique_ptr<cluster::Workload> workload;
  std::vector<cluster::TrackId> tracks;
  std::optional<node::Supply> supply = {};  // files that members need
  std::string configuration;                // for the members' engine
  std::optional<LedBeside> beside = {};
};

struct FleetWanted {
  std::size_t members = 1;   // things are cut for so many
  bool one_machine = false;  // on which all members are, with this process
  StepNumber start = {};     // that they begin with
};

class LedTraining {
 public:
  // What the lead tells people, and puts into checkpoints.
  struct Facts {
    std::string run_id;
    std::string fingerprint;      // of its checkpoints
    std::uint64_t steps = 0;      // of the run
    std::uint64_t batch = 1;      // samples of a step
    std::uint64_t samples = 1;    // of an epoch
    std::size_t checkpoints = 1;  // whole ones that are kept, >= 1
    double load_seconds = 0;
    std::string over = "all steps are done";  // why members leave then, for people
    // As in TrainProgress, of all steps: members do not tell it.
    std::optional<std::uint64_t> active_rows = {};
  };
  // Where members begin. `trained`: a checkpoint has the result, and no member is needed.
  struct Start {
    tensors::CheckpointInfo from;  // step 0: there is nothing to go on from
    bool trained = false;
  };

  // A file that a member delivers, by the name that it has for it.
  struct DeliveredFile {
    NodeId node;          // whose part it has
    StepNumber step;      // all steps before it are applied
    bool result = false;  // of the run; else of a checkpoint
    std::string name;     // made of these, as the lead calls it
  };
  // What a member owned by a view that the lead had installed.
  struct Owned {
    std::set<std::uint64_t> things;
    std::string decision;  // of the workload
  };

  LedTraining() = default;
  LedTraining(const LedTraining&) = delete;
  LedTraining& operator=(const LedTraining&) = delete;
  virtual ~LedTraining() = default;

  [[nodiscard]] virtual Facts led_facts() const = 0;
  [[nodiscard]] virtual double learning_rate(StepNumber) const { return 0; }
  // Looks for the newest whole checkpoint, and removes newer ones that are damaged. Newer files that are not
  // whole stay: members may bring what they lack.
  [[nodiscard]] virtual Result<Start> find_start(EventSink events) = 0;
  // Takes the result from the checkpoint that find_start() has found.
  [[nodiscard]] virtual Result<DoneSteps> take_trained(const engine::TrainHooks& hooks) = 0;
  // The info of the checkpoint of that step; nothing while it is not whole.
  [[nodiscard]] virtual std::optional<tensors::CheckpointInfo> checkpoint(StepNumber step) const = 0;
  [[nodiscard]] virtual Result<Led> lead(const FleetWanted& wanted) = 0;
  // Nothing for a name that no member of this run has for a file.
  [[nodiscard]] virtual std::optional<DeliveredFile> read_delivered(std::string_view name) const = 0;
  // Looks whether the file at that path is undamaged, and has no more than its member owned by one of these
  // entries. kBadData if not. After lead(), any thread.
  [[nodiscard]] virtual Result<void> check_delivered(const std::string& path, const DeliveredFile& file,
                                                     std::span<const Owned> owned) const = 0;
  // Whether all of the result lies in DIR/nodes/parts, delivered by members. `members`: as in FleetWanted.
  [[nodiscard]] virtual Result<bool> delivered(std::size_t members) = 0;
  // Members whose parts make up the result; 0 while some are missing.
  [[nodiscard]] virtual std::size_t parts() const = 0;
  // Takes what was delivered. kBadData where it is damaged.
  [[nodiscard]] virtual Result<void> take_delivered() = 0;
  // Keeps the result as a checkpoint of the last step, so that the run can be finished without members.
  // False: there is nothing to keep.
  [[nodiscard]] virtual Result<bool> keep_trained(const tensors::CheckpointInfo& /*info*/) { return false; }
};

}  // namespace gossamer::commands
