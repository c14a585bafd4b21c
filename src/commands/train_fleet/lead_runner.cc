// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/lead_runner.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "commands/train_fleet/checkpoint_keeper.h"
#include "commands/train_fleet/fleet_configuration.h"
#include "commands/train_fleet/fleet_progress.h"
#include "commands/train_fleet/member_job.h"
#include "engines/sparse/fleet/fleet_resume.h"
#include "engines/sparse/fleet/fleet_workload.h"
#include "host/api/files.h"
#include "node/credentials.h"
#include "node/places.h"
#include "node/run_configuration.h"
#include "node/supply_companion.h"
#include "run/run_directory.h"

namespace gossamer::commands {
namespace {

// With shards for so many members each has an even part of the work. The number must not
// depend on the members that come.
constexpr std::size_t kMembersInMind = 16;
constexpr Duration kLookEvery{100'000'000};

std::string ended_file(const std::string& run) { return run + "/nodes/ended"; }

// Whether the run in that directory has been led and can be led on.
Result<bool> is_led(host::Disk& disk, const std::string& run) {
  const auto ended = disk.exists(ended_file(run));
  if (!ended.ok() || *ended) return ended.ok() ? Result<bool>(false) : ended.error();
  return node::has_membership(disk, lead_directory(run));
}

// How long a run that is to end waits for room on the disk.
constexpr Duration kRoomPatience{30'000'000'000};

Error not_stored(const Error& why) {
  return {.kind = why.kind,
          .where = why.where,
          .what = "the run is to end, and what its nodes have saved cannot be stored",
          .got = why.got.empty() ? why.what : why.got,
          .expected = why.expected,
          .fix =
              "make room, and start this again with --resume within ten minutes: the nodes keep what they "
              "have saved, and wait so long; after that the run goes on from the checkpoint before"};
}

// The checkpoint that the run began with, for a run that is led on.
tensors::CheckpointInfo began_with(const sparse_engine::TrainInputs& inputs, StepNumber start) {
  if (start == StepNumber()) return {};
  const auto kept = sparse_engine::FleetCheckpoint::open(inputs.disk, inputs.checkpoint_directory,
                                                         sparse_engine::checkpointed_run(inputs), start);
  tensors::CheckpointInfo info;
  info.next_step = start;
  return kept.ok() ? kept->info() : info;
}

// Watch follows the run. It tells the companion when the run is over, and looks after checkpoints.
class Watch {
 public:
  Watch(const run::NodeHost& host, const sparse_engine::TrainInputs& inputs,
        const sparse_engine::TrainHooks& hooks, FleetProgress& progress, StepNumber start,
        std::string delivered)
      : host_(host),
        in_(inputs),
        hooks_(hooks),
        progress_(progress),
        keeper_(host.disk, {.directory = inputs.checkpoint_directory,
                            .run = sparse_engine::checkpointed_run(inputs),
                            .keep = inputs.config.checkpoint.keep,
                            .start = start,
                            .keeps_start = true,
                            .delivered = std::move(delivered)}),
        begin_(host.clock.now()) {}

  std::optional<std::string> over() {
    if (over_ || host_.clock.now() < next_look_) return over_;
    next_look_ = host_.clock.now() + kLookEvery;
    look(FleetProgress::Until::kNow);
    const auto delivered = progress_.delivered();
    if (!delivered.ok()) {
      failure_ = delivered.error();
      over_ = failure_->message();
    } else if (*delivered) {
      over_ = "the network is trained";
    }
    return over_;
  }
  void look(FleetProgress::Until until) {
    progress_.tell_steps();
    progress_.tell_recoveries(until);
    keeper_.look(progress_.info({.load_seconds = in_.load_seconds,
                                 .train_seconds = (host_.clock.now() - begin_).seconds(),
                                 .cpu_seconds = host_.clock.process_cpu().seconds()}),
                 hooks_.events);
  }
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  [[nodiscard]] StepNumber newest_checkpoint() const { return keeper_.newest(); }

 private:
  const run::NodeHost& host_;
  const sparse_engine::TrainInputs& in_;
  const sparse_engine::TrainHooks& hooks_;
  FleetProgress& progress_;
  CheckpointKeeper keeper_;
  const Instant begin_;
  Instant next_look_;
  std::optional<std::string> over_;
  std::optional<Error> failure_;
};

}  // namespace

std::string lead_directory(const std::string& run) { return run + "/nodes/coordinator"; }

Result<sparse_engine::TrainOutcome> LeadRunner::train(const run::RunPaths& paths,
                                                      const sparse_engine::TrainInputs& inputs,
                                                      const sparse_engine::TrainHooks& hooks) {
  run_ = paths.root;
  const auto led = is_led(host_.disk, run_);
  if (!led.ok()) return led.error();
  if (!*led) {
    auto trained = trained_by_others(inputs, hooks);
    if (!trained.ok()) return trained.error();
    if (trained->has_value()) return **std::move(trained);
    const auto start = sparse_engine::prepare_fleet_start(inputs, hooks.events);
    if (!start.ok()) return start.error();
    if (start->trained) return sparse_engine::train(inputs, hooks);
    tell_start(host_, start->from, hooks);
    stay_where_it_was();
    if (auto written = write_start(host_.disk, run_, start->from.next_step); !written.ok())
      return written.error();
  }
  auto lead = prepare_lead(host_, run_, kMembersInMind);
  if (!lead.ok()) return lead.error();
  // Members on other machines have speeds of their own.
  lead->configuration.one_machine = false;
  if (auto supplied = supply_start(host_.disk, *lead); !supplied.ok()) return supplied.error();
  const StepNumber start = lead->configuration.start;
  FleetProgress progress(host_, run_, inputs, hooks, lead->shape, began_with(inputs, start));
  progress.tell_steps();
  // An earlier process may have ended between the last delivery and the model. Members that are still
  // there are told of the end as usual.
  Watch watch(host_, inputs, hooks, progress, start, lead->supply.deliver);
  const auto ended = lead_on(*lead, *led, [&watch] { return watch.over(); });
  watch.look(FleetProgress::Until::kEnd);
  if (watch.failure()) return *watch.failure();
  if (!ended.ok() && progress.parts() == 0) return ended.error();
  const bool stopped = ended.ok() && *ended && progress.parts() == 0;
  if (stopped && watch.newest_checkpoint().value < progress.steps())
    return progress.not_saved(watch.newest_checkpoint());
  progress.add_to(cost_);
  nodes_ = progress.parts();
  return take_outcome(progress);
}

Result<std::optional<sparse_engine::TrainOutcome>> LeadRunner::trained_by_others(
    const sparse_engine::TrainInputs& inputs, const sparse_engine::TrainHooks& hooks) {
  using Found = std::optional<sparse_engine::TrainOutcome>;
  const auto there = host_.disk.exists(run::RunPaths(run_).parts());
  if (!there.ok()) return there.error();
  if (!*there) return Found();
  const auto lead = prepare_lead(host_, run_, kMembersInMind);
  if (!lead.ok()) return lead.error();
  FleetProgress progress(host_, run_, inputs, hooks, lead->shape,
                         began_with(inputs, lead->configuration.start));
  auto trained = trained_before(progress);
  if (!trained.ok()) return trained.error();
  if (!trained->has_value()) return Found();
  nodes_ = progress.parts();
  progress.add_to(cost_);
  parts_ = std::move((*trained)->parts);
  return Found(std::move((*trained)->outcome));
}

// Listens where the coordinator was before. Machines that are started again look for it there.
void LeadRunner::stay_where_it_was() {
  node::CoordinatorOptions& lead = options_.lead;
  const auto before = node::load_address(host_.disk, lead_directory(run_));
  if (lead.listen || !before.ok() || !before->control) return;
  lead.listen = before->control;
  if (lead.advertise.empty()) lead.advertise = before->coordinator.host;
}

// Leads until the run ends or this process is to stop, and says whether the run has ended. If it has, a file
// says that --resume begins another one.
Result<bool> LeadRunner::lead_on(const FleetLead& lead, bool known, const node::SupplyCompanion::Over& over) {
  sparse_engine::FleetWorkload workload(lead.shape, lead.workload);
  node::CoordinatorOptions options = options_.lead;
  options.directory = lead_directory(run_);
  options.resume = known;
  options.configuration =
      node::run_configuration_bytes({.engine = options_.engine,
                                     .program = options.program,
                                     .supply = lead.supply,
                                     .own = fleet_configuration_bytes(lead.configuration)});
  options.tracks = workload.tracks();
  const node::SupplyCompanion* companion = nullptr;
  options.make_companion = [&](const node::Aside& aside, const node::Post&) {
    auto made =
        std::make_unique<node::SupplyCompanion>(host_.disk, lead.supply, aside, over, host_.clock.now());
    companion = made.get();
    return made;
  };
  auto node = node::CoordinatorNode::start(host_, std::move(options), workload);
  if (!node.ok()) return node.error();
  std::string token;
  if ((*node)->new_run()) {
    auto made = (*node)->new_token("printed at the start");
    if (!made.ok()) return made.error();
    token = *std::move(made);
  }
  if (auto told = options_.leads(**node, token); !told.ok()) return told.error();
  const auto done = (*node)->run([&] { return signals_.stop_requested() || gives_up(**node, *companion); });
  if ((*node)->ended()) {
    // If this fails, the next process finds a run that ends at once.
    static_cast<void>(host::replace_file(host_.disk, ended_file(run_), ""));
  }
  if (!done.ok()) return done.error();
  if (!(*node)->ended() && no_room_ && !signals_.stop_requested()) return not_stored(no_room_->last);
  return (*node)->ended();
}

// Whether this process gives up waiting for room on the disk. As long as nodes offer what they have
// saved and it cannot be stored, the run has not ended. This process says so and ends, and another
// process takes it from the nodes.
bool LeadRunner::gives_up(const node::CoordinatorNode& node, const node::SupplyCompanion& companion) {
  const auto& failing = companion.failing();
  if (!node.stopping() || !failing) {
    no_room_.reset();
    return false;
  }
  const Instant now = host_.clock.now();
  if (!no_room_) {
    no_room_ = {.since = now, .last = failing->last};
    host_.say(
        fmt::format("the run is to end, and what its nodes have saved cannot be stored: {}\n"
                    "It is tried again for {:.0f} s: make room.",
                    failing->last.message(), kRoomPatience.seconds()));
  }
  no_room_->last = failing->last;
  return now - no_room_->since >= kRoomPatience;
}

Result<sparse_engine::TrainOutcome> LeadRunner::take_outcome(const FleetProgress& progress) {
  auto parts = progress.in_parts();
  if (!parts.ok()) return parts.error();
  parts_ = *std::move(parts);
  return progress.outcome();
}

void LeadRunner::saved() { remove_delivered(host_.disk, run_); }

}  // namespace gossamer::commands
