// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/lead_runner.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <utility>

#include "commands/train_fleet/fleet_configuration.h"
#include "commands/train_fleet/fleet_plan.h"
#include "engines/sparse/fleet/fleet_resume.h"
#include "engines/sparse/fleet/fleet_workload.h"
#include "engines/sparse/fleet/step/layout.h"
#include "host/api/durable_directories.h"
#include "host/api/files.h"
#include "learn/sparse/network/row_order.h"
#include "node/credentials.h"
#include "node/event_loop.h"
#include "node/places.h"
#include "node/run_configuration.h"
#include "run/run_directory.h"

namespace gossamer::commands {
namespace {

// With shards for so many members each has an even part of the work. The number must not depend on the
// members that come.
constexpr std::size_t kMembersInMind = 16;
// How long own members may take to leave, because they may have much to write.
constexpr Duration kLeaveTime{120'000'000'000};
// How long their processes may take to end after that.
constexpr Duration kEndTime{10'000'000'000};
// How long a run that is to end waits for room on the disk.
constexpr Duration kRoomPatience{30'000'000'000};

std::string nodes_directory(const std::string& run) { return run + "/nodes"; }
std::string ended_file(const std::string& run) { return nodes_directory(run) + "/ended"; }

// The step that an older version's fleet began with. It is in a file of its own.
Result<StepNumber> old_start(host::Disk& disk, const std::string& run) {
  const std::string path = nodes_directory(run) + "/start";
  const auto there = disk.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return StepNumber();
  const auto text = host::read_text(disk, path);
  if (!text.ok()) return text.error();
  StepNumber start;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), start.value);
  if (error == std::errc() && std::string_view(end) == "\n") return start;
  return Error{.kind = ErrorKind::kBadData,
               .where = path,
               .what = "cannot read the step that the run begins with",
               .got = *text,
               .expected = "a number",
               .fix = "resume the run with gossamer train --resume"};
}

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

// The checkpoint that a fleet begins with.
tensors::CheckpointInfo began_with(const sparse_engine::TrainInputs& inputs, StepNumber start) {
  if (start == StepNumber()) return {};
  const auto kept = sparse_engine::FleetCheckpoint::open(inputs.disk, inputs.checkpoint_directory,
                                                         sparse_engine::checkpointed_run(inputs), start);
  tensors::CheckpointInfo info;
  info.next_step = start;
  return kept.ok() ? kept->info() : info;
}

// What the lead does beside leading: it gives and collects files, and measures.
class LeadCompanion final : public node::Companion {
 public:
  LeadCompanion(std::unique_ptr<node::SupplyCompanion> supply, FleetMeasuring* measuring)
      : supply_(std::move(supply)), measuring_(measuring) {}

  void connect(net::Links* links) override {
    supply_->connect(links);
    if (measuring_ != nullptr) measuring_->asker().connect(links);
  }
  void on(net::Arrived arrived, Instant now) override {
    const bool answer = measuring_ != nullptr && arrived.message.channel == sparse_engine::kQueryChannel;
    if (answer) return measuring_->asker().on(std::move(arrived), now);
    supply_->on(std::move(arrived), now);
  }
  void tick(Instant now) override {
    supply_->tick(now);
    if (measuring_ != nullptr) measuring_->asker().tick(now);
  }
  [[nodiscard]] std::optional<Instant> next_wakeup() const override { return supply_->next_wakeup(); }
  [[nodiscard]] std::optional<std::string> over() const override { return supply_->over(); }
  [[nodiscard]] std::vector<std::string> take_remarks() override { return supply_->take_remarks(); }

 private:
  const std::unique_ptr<node::SupplyCompanion> supply_;
  FleetMeasuring* const measuring_;  // null: nothing is measured
};

// Ends the measuring before the node that it wakes.
class MeasuringEnd {
 public:
  explicit MeasuringEnd(FleetMeasuring* measuring) : measuring_(measuring) {}
  ~MeasuringEnd() {
    if (measuring_ != nullptr) measuring_->end();
  }
  MeasuringEnd(const MeasuringEnd&) = delete;
  MeasuringEnd& operator=(const MeasuringEnd&) = delete;

 private:
  FleetMeasuring* const measuring_;
};

}  // namespace

std::uint64_t LeadRunner::memory_needed(const sparse_engine::TrainConfig& config,
                                        const sparse_engine::Recipe& recipe,
                                        const sparse_engine::DataShape& shape) const {
  return options_.own ? fleet_memory_needed(config, recipe, shape, options_.own->nodes) : 0;
}

std::size_t LeadRunner::members_in_mind() const {
  return options_.own ? options_.own->nodes : kMembersInMind;
}

Result<LeadRunner::Before> LeadRunner::fleet_before() const {
  const std::string directory = node::lead_directory(run_);
  auto file = run::read_lead_file(host_.disk, directory);
  if (!file.ok()) return file.error();
  const auto start = file->start ? Result<StepNumber>(*file->start) : old_start(host_.disk, run_);
  if (!start.ok()) return start.error();
  const auto ended = host_.disk.exists(ended_file(run_));
  if (!ended.ok()) return ended.error();
  const auto known = node::has_membership(host_.disk, directory);
  if (!known.ok()) return known.error();
  const bool alive = *known && !*ended && file->nodes == 0;
  return Before{.file = *std::move(file), .start = *start, .goes_on = alive && !options_.own};
}

// What nodes had in their directories goes at once, under another name. A half of it would look like a fleet
// that can be led on.
Result<void> LeadRunner::begin_anew() {
  const std::string nodes = nodes_directory(run_);
  const std::string old = nodes + ".old";
  const auto there = host_.disk.exists(nodes);
  if (!there.ok()) return there.error();
  if (auto removed = host_.disk.remove_all(old); !removed.ok()) return removed;
  if (*there) {
    if (auto moved = host_.disk.rename(nodes, old); !moved.ok()) return moved;
    if (auto synced = host_.disk.sync_directory(run_); !synced.ok()) return synced;
    if (auto removed = host_.disk.remove_all(old); !removed.ok()) return removed;
  }
  return host::make_durable_directories(host_.disk, run::RunPaths(run_).parts());
}

Result<sparse_engine::TrainOutcome> LeadRunner::train(const run::RunPaths& paths,
                                                      const sparse_engine::TrainInputs& inputs,
                                                      const sparse_engine::TrainHooks& hooks) {
  run_ = paths.root;
  const auto before = fleet_before();
  if (!before.ok()) return before.error();
  StepNumber start = before->start;
  if (!before->goes_on) {
    auto trained = trained_by_others(*before, inputs, hooks);
    if (!trained.ok()) return trained.error();
    if (trained->has_value()) return **std::move(trained);
    const auto from = sparse_engine::prepare_fleet_start(inputs, hooks.events);
    if (!from.ok()) return from.error();
    if (from->trained) return sparse_engine::train(inputs, hooks);
    tell_start(host_, from->from, hooks);
    start = from->from.next_step;
  }
  node::CoordinatorOptions options = options_.lead;
  options.resume = before->goes_on;
  if (!before->goes_on) {
    if (!options_.own && before->file.nodes == 0) stay_where_it_was(options);
    if (auto made = begin_anew(); !made.ok()) return made.error();
  }
  auto lead =
      prepare_lead(host_.disk,
                   {.directory = run_,
                    .id = inputs.run_id,
                    .config = inputs.config,
                    .recipe = inputs.recipe,
                    .features = inputs.schema.features(),
                    .labels = inputs.schema.labels()},
                   {.members = members_in_mind(), .one_machine = options_.own.has_value(), .start = start});
  if (!lead.ok()) return lead.error();
  FleetProgress progress(host_, run_, inputs, hooks, lead->shape, began_with(inputs, start));
  progress.name_causes(
      [this](std::string cause) { return own_ != nullptr ? own_->as_seen(std::move(cause)) : cause; });
  progress.tell_steps();
  // An earlier process may have ended between the last delivery and the model. Members that are still
  // there are told of the end as usual.
  FleetWatch watch(host_, inputs, hooks, progress,
                   {.start = start, .delivered = options_.own ? "" : lead->supply.deliver});
  std::optional<FleetMeasuring> measuring;
  if (measure_ && !progress.was_measured()) {
    measuring.emplace(
        host_, measure_,
        sparse_engine::ModelInParts{.shape = lead->shape,
                                    .order = sparse::RowOrder(inputs.labels.count, lead->shape.shard_shift)});
    watch.measure_by(*measuring);
  }
  const auto ended = lead_on(std::move(options), *lead, hooks, watch, measuring ? &*measuring : nullptr);
  watch.look(FleetProgress::Until::kEnd);
  if (watch.failure()) return *watch.failure();
  if (!ended.ok() && progress.parts() == 0) return ended.error();
  const bool stopped = ended.ok() && *ended && progress.parts() == 0;
  if (stopped && watch.newest_checkpoint().value < progress.steps())
    return progress.not_saved(watch.newest_checkpoint());
  auto trained = progress.trained();
  if (!trained.ok()) return trained.error();
  return take(*std::move(trained), progress, watch);
}

Result<std::optional<sparse_engine::TrainOutcome>> LeadRunner::trained_by_others(
    const Before& before, const sparse_engine::TrainInputs& inputs, const sparse_engine::TrainHooks& hooks) {
  using Found = std::optional<sparse_engine::TrainOutcome>;
  const std::string parts = run::RunPaths(run_).parts();
  const auto there = host_.disk.exists(parts);
  if (!there.ok()) return there.error();
  if (!*there) return Found();
  const std::uint32_t labels = inputs.schema.labels();
  const std::size_t members = before.file.nodes > 0 ? before.file.nodes : members_in_mind();
  FleetProgress progress(
      host_, run_, inputs, hooks,
      {.network = sparse_engine::network_shape(inputs.recipe, inputs.schema.features(), labels),
       .shard_shift = fleet_shard_shift(labels, members)},
      began_with(inputs, before.start));
  auto trained = trained_before(progress);
  if (!trained.ok()) return trained.error();
  if (!trained->has_value()) return Found();
  FleetWatch watch(host_, inputs, hooks, progress,
                   {.start = before.start, .delivered = options_.own ? "" : parts});
  return Found(take(**std::move(trained), progress, watch));
}

// What members have trained is in their parts until the run is finished. Beside them is a checkpoint, if the
// network is in one memory.
sparse_engine::TrainOutcome LeadRunner::take(TrainedNetwork trained, const FleetProgress& progress,
                                             FleetWatch& watch) {
  parts_of_ = progress.parts();
  if (own_ != nullptr) {
    const node::NodeProcesses::Cost own = own_->cost();
    cost_ = {.cpu_seconds = own.cpu_seconds, .peak_rss_bytes = own.peak_rss_bytes};
  }
  progress.add_to(cost_);
  parts_ = std::move(trained.parts);
  if (trained.outcome.network) watch.save_trained(*trained.outcome.network);
  return std::move(trained.outcome);
}

// Listens where the coordinator was before. Machines that are started again look for it there.
void LeadRunner::stay_where_it_was(node::CoordinatorOptions& lead) const {
  const auto before = node::load_address(host_.disk, node::lead_directory(run_));
  if (lead.listen || !before.ok() || !before->control) return;
  lead.listen = before->control;
  if (lead.advertise.empty()) lead.advertise = before->coordinator.host;
}

// Adds to the options what follows from the run.
void LeadRunner::complete(node::CoordinatorOptions& options, const FleetLead& lead) const {
  options.directory = node::lead_directory(run_);
  options.configuration =
      node::run_configuration_bytes({.engine = options_.engine,
                                     .program = options.program,
                                     .supply = lead.supply,
                                     .own = fleet_configuration_bytes(lead.configuration)});
  options.file.engine = options_.engine;
  options.file.start = lead.configuration.start;
  options.file.nodes = options_.own ? options_.own->nodes : 0;
  if (!options_.own) return;
  options.state = nodes_directory(run_) + "/state";
  options.listen = {.host = "127.0.0.1", .port = 0};
  options.first_members = options.file.first = options_.own->nodes;
  options.report.log.level = node::LogLevel::kError;  // events.jsonl has the events
}

// Leads until the run ends or this process is to stop, and says whether the run has ended. If it has, a file
// says that --resume begins another one. A run of own members ends with this process.
Result<bool> LeadRunner::lead_on(node::CoordinatorOptions options, const FleetLead& lead,
                                 const sparse_engine::TrainHooks& hooks, FleetWatch& watch,
                                 FleetMeasuring* measuring) {
  sparse_engine::FleetWorkload workload(lead.shape, lead.workload);
  complete(options, lead);
  options.tracks = workload.tracks();
  const node::SupplyCompanion* companion = nullptr;
  options.make_companion = [&](const node::Aside& aside, const node::Post& post) {
    auto made = std::make_unique<node::SupplyCompanion>(
        host_.disk, lead.supply, aside, [&watch] { return watch.over(); }, host_.clock.now());
    companion = made.get();
    if (measuring != nullptr) measuring->begin_loop(aside, post);
    return std::make_unique<LeadCompanion>(std::move(made), measuring);
  };
  auto node = node::CoordinatorNode::start(host_, std::move(options), workload);
  if (!node.ok()) return node.error();
  const MeasuringEnd end(measuring);
  if (options_.own) return lead_own(**node, watch);
  std::string token;
  if ((*node)->new_run()) {
    auto made = (*node)->new_token("printed at the start");
    if (!made.ok()) return made.error();
    token = *std::move(made);
  }
  if (auto told = options_.leads(**node, token); !told.ok()) return told.error();
  const auto done = (*node)->run([&] { return hooks.stop_requested() || gives_up(**node, *companion); });
  if ((*node)->ended()) {
    // If this fails, the next process finds a run that ends at once.
    static_cast<void>(host::replace_file(host_.disk, ended_file(run_), ""));
  }
  if (!done.ok()) return done.error();
  if (!(*node)->ended() && no_room_ && !hooks.stop_requested()) return not_stored(no_room_->last);
  return (*node)->ended();
}

// Starts the processes, and leads them until all have ended.
Result<bool> LeadRunner::lead_own(node::CoordinatorNode& node, FleetWatch& watch) {
  const OwnNodes& wanted = *options_.own;
  const auto token = node.new_token("for this run's nodes");
  if (!token.ok()) return token.error();
  auto started = node::NodeProcesses::start(host_, {.run = run_,
                                                    .nodes = wanted.nodes,
                                                    .threads_each = wanted.threads_each,
                                                    .program = wanted.program,
                                                    .at = node.address(),
                                                    .token = *token});
  if (!started.ok()) return started.error();
  own_ = *std::move(started);
  watch.follow(*own_, node);
  host_.say(fmt::format("{} nodes, {} threads each; what they say is in {}/*.log", wanted.nodes,
                        wanted.threads_each, nodes_directory(run_)));
  const auto done = node.run([&] {
    if (watch.failure()) return true;
    if (!node.stopping()) return false;
    own_->end_within(kLeaveTime);
    return own_->all_ended();
  });
  // What the run has is in its directory by now.
  if (!done.ok() || watch.failure()) own_->kill();
  own_->end_within(kEndTime);
  node::EventLoop loop(host_.clock);
  loop.run([]() -> std::optional<Instant> { return std::nullopt; }, [this] { return own_->all_ended(); });
  if (!done.ok()) return done.error();
  return true;
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

void LeadRunner::saved() { remove_delivered(host_.disk, run_); }

}  // namespace gossamer::commands
