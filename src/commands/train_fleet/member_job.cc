// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/member_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "commands/records/training_data.h"
#include "commands/run/member_files.h"
#include "commands/run/member_report.h"
#include "commands/train/samples.h"
#include "commands/train_fleet/checkpoint_writer.h"
#include "commands/train_fleet/fleet_data.h"
#include "commands/train_fleet/fleet_plan.h"
#include "commands/train_fleet/part_file.h"
#include "engines/sparse/config/negatives_plan.h"
#include "engines/sparse/fleet/fleet_checkpoint.h"
#include "engines/sparse/train/trainer.h"
#include "run/run_directory.h"

namespace gossamer::commands {
namespace {

// Bytes of a delivered part beside its numbers.
constexpr std::uint64_t kHeaderRoom = std::uint64_t{64} << 20;

Error no_data(const std::string& where, std::string got) {
  return {.kind = ErrorKind::kUsage,
          .where = where,
          .what = "the run has no data",
          .got = std::move(got),
          .expected = "the data that 'gossamer train' or 'gossamer coordinator' imported",
          .fix = "start the run anew in another directory"};
}

// The data of a run lie in its directory, or in the imported directory that its config names.
Result<CachePlace> find_cache(host::Disk& disk, const sparse_engine::TrainConfig& config,
                              const run::RunPaths& paths) {
  const bool text = config.data.format == data::RecordFormat::kText;
  CachePlace place{.directory = paths.cache()};
  const auto there = disk.exists(place.directory + (text ? "/train.words" : "/train.cache"));
  if (!there.ok()) return there.error();
  if (*there) return place;
  const auto source = find_source(disk, config.data.train, config.data.format);
  if (!source.ok() || source->format != data::RecordFormat::kCache)
    return no_data(paths.config(), "nothing in " + paths.cache());
  place.records = source->path;
  return place;
}

// A member delivers its part of the trained network, and of a checkpoint. Rows of the latter are padded.
std::uint64_t most_delivered(const sparse_engine::FleetShape& shape,
                             const sparse_engine::TrainConfig& config) {
  const std::uint64_t checkpoint =
      sparse_engine::most_part_bytes(shape, sparse_engine::table_moments(config.optimizer.moments));
  return std::max(checkpoint, trained_bytes(shape.network)) + kHeaderRoom;
}

sparse_engine::FleetShape fleet_shape(const sparse_engine::Recipe& recipe, std::uint32_t features,
                                      std::uint32_t labels, unsigned shift) {
  return {.network = sparse_engine::network_shape(recipe, features, labels), .shard_shift = shift};
}

Error other_data(const std::string& where, const FleetConfiguration& told,
                 const sparse_engine::Recipe& recipe, const data::Schema& schema) {
  return {.kind = ErrorKind::kBadData,
          .where = where,
          .what = "the data are not those of the run",
          .got = fmt::format("{} features, {} labels, {} steps", schema.features(), schema.labels(),
                             recipe.steps),
          .expected = fmt::format("{} features, {} labels, {} steps", told.features, told.labels, told.steps),
          .fix = "look whether coordinator and node run the same version on the same files"};
}

sparse_engine::CheckpointedRun checkpointed_run(const sparse_engine::TrainConfig& config,
                                                const sparse_engine::Recipe& recipe,
                                                const data::Schema& schema) {
  return {.network = sparse_engine::network_shape(recipe, schema.features(), schema.labels()),
          .moments = sparse_engine::table_moments(config.optimizer.moments),
          .fingerprint = sparse_engine::run_fingerprint(config, recipe, schema)};
}

// A member without the coordinator's directories has what was supplied, and delivers its checkpoints.
void move_here(FleetConfiguration& told, const node::Supplied& supplied) {
  if (!supplied.elsewhere) return;
  told.begin_from = supplied.supply.directory;
  if (!told.checkpoints.empty()) told.checkpoints = supplied.supply.deliver;
}

std::optional<sparse::HashNegativeOptions> tables_of(const sparse_engine::TrainConfig& config,
                                                     const sparse_engine::Recipe& recipe) {
  if (!recipe.tables) return std::nullopt;
  return sparse_engine::hash_negative_options(config, *recipe.tables, recipe.steps);
}

// A job, with all objects of the member that it borrows.
class MemberJob {
 public:
  MemberJob(const run::NodeHost& host, FleetConfiguration told, node::Supplied supplied,
            std::unique_ptr<Samples> samples, sparse_engine::Recipe recipe, NodeId self)
      : told_(std::move(told)),
        supplied_(std::move(supplied)),
        recipe_(std::move(recipe)),
        weighting_(samples->weigh(told_.config).weighting),
        samples_(begun(std::move(samples))),
        order_(samples_->labels().count, told_.shard_shift),
        labels_(sparse::by_row(samples_->labels(), order_)),
        steps_(samples_->steps(), order_),
        run_(checkpointed_run(told_.config, recipe_, samples_->trained())),
        writer_(host.disk, host.clock,
                {.directory = told_.checkpoints,
                 .node = self,
                 .shape = job_shape(),
                 .moments = run_.moments,
                 .info = {.next_step = {},
                          .run_id = told_.run,
                          .config_fingerprint = run_.fingerprint,
                          .workers = host.compute.workers()},
                 .every_minutes = told_.config.checkpoint.every_minutes},
                [this](StepNumber step, const Error& error) {
                  tell(FailedCheckpoint{.step = step, .error = error.message()});
                }),
        job_{.shape = job_shape(),
             .order = order_,
             .moments = sparse_engine::table_moments(told_.config.optimizer.moments),
             .init = sparse_engine::network_init(told_.config),
             .learner = sparse_engine::learner_options(told_.config, recipe_),
             .hashed = tables_of(told_.config, recipe_),
             .schedule = sparse_engine::schedule_of(told_.config, recipe_),
             .start = told_.start,
             .restore = restore_from(host.disk),
             .snapshot_every = snapshot_steps(told_.config, job_shape().network),
             .codec = told_.config.cluster.codec,
             .exchange = told_.config.cluster.exchange,
             .staleness = told_.config.cluster.staleness,
             .labels = labels_,
             .steps = steps_,
             .kernels = host.kernels,
             .compute = host.compute,
             .checkpoints = checkpoints(host.disk),
             .stepped =
                 [this](const sparse_engine::FleetStep& step) {
                   tell(engine::MemberStep{.epoch = step.epoch,
                                           .step = step.step,
                                           .rank = step.rank,
                                           .members = step.members,
                                           .loss = step.loss,
                                           .sent = step.sent});
                   writer_.look();
                 },
             .recovered = [this](const engine::FleetRecovery& recovery) { tell(recovery); },
             .one_machine = told_.one_machine,
             .deliver =
                 [this, &host, self](sparse::Network& part) {
                   return save_part(
                       host.disk, deliver(),
                       {.node = self, .step = StepNumber(recipe_.steps), .part = part.part, .run = told_.run},
                       part);
                 },
             .answers = sparse_engine::answers_at_the_end(told_.config, recipe_.held_out)} {}
  MemberJob(const MemberJob&) = delete;
  MemberJob& operator=(const MemberJob&) = delete;

  [[nodiscard]] const sparse_engine::FleetJob& job() const { return job_; }

 private:
  [[nodiscard]] std::unique_ptr<Samples> begun(std::unique_ptr<Samples> samples) const {
    samples->begin({.config = told_.config, .recipe = recipe_, .weighting = weighting_});
    return samples;
  }
  [[nodiscard]] const std::string& deliver() const { return supplied_.supply.deliver; }
  void tell(const MemberReport& report) const { supplied_.tell(report_bytes(report)); }
  [[nodiscard]] sparse_engine::FleetShape job_shape() const {
    const data::Schema& schema = samples_->schema();
    return fleet_shape(recipe_, schema.features(), schema.labels(), told_.shard_shift);
  }
  [[nodiscard]] sparse_engine::FleetCheckpoints checkpoints(host::Disk& disk) {
    const auto lasts = supplied_.elsewhere ? delivered(disk) : nullptr;
    if (told_.checkpoints.empty()) return {.lasts = lasts};
    return {.every_steps = told_.config.checkpoint.every_steps,
            .due = [this] { return writer_.due(); },
            .every = from_seconds(60 * told_.config.checkpoint.every_minutes),
            .save = [this](StepNumber step, sparse::Network& part) { writer_.save(step, part); },
            .finish = [this] { writer_.finish(); },
            .lasts = lasts};
  }
  // A function that tells whether the coordinator has all checkpoint files and this member's part of the
  // result, or none is there to take them.
  [[nodiscard]] std::function<bool()> delivered(host::Disk& disk) const {
    return [this, &disk] { return supplied_.nobody_takes() || fleet_files_brought(disk, deliver()); };
  }
  // The checkpoint is opened once. An open one stays, also when newer ones take its place on the disk.
  std::function<Result<void>(sparse::Network&)> restore_from(host::Disk& disk) {
    if (told_.start == StepNumber()) return {};
    using Opened = Result<sparse_engine::FleetCheckpoint>;
    auto from = std::make_shared<const Opened>(
        sparse_engine::FleetCheckpoint::open(disk, told_.begin_from, run_, told_.start, damage_));
    return [this, from = std::move(from)](sparse::Network& part) -> Result<void> {
      if (!from->ok()) return from->error();
      return (*from)->restore(part, samples_->labels().count, damage_);
    };
  }

  const FleetConfiguration told_;
  const node::Supplied supplied_;
  const sparse_engine::Recipe recipe_;
  const text::FeatureWeighting weighting_;
  const std::unique_ptr<Samples> samples_;
  const sparse::RowOrder order_;
  const sparse::LabelCounts labels_;  // by row
  sparse_engine::RowSteps steps_;
  const sparse_engine::CheckpointedRun run_;
  DamageReports damage_{[this](const MemberReport& one) { tell(one); }};
  CheckpointWriter writer_;
  const sparse_engine::FleetJob job_;
};

}  // namespace

Result<FleetLead> prepare_lead(host::Disk& disk, const FleetRun& run, const FleetWanted& wanted) {
  const run::RunPaths paths(run.directory);
  const auto place = find_cache(disk, run.config, paths);
  if (!place.ok()) return place.error();
  FleetLead lead{.configuration = {.config = run.config,
                                   .run = run.id,
                                   .checkpoints = paths.checkpoints(),
                                   .begin_from = paths.checkpoints(),
                                   .start = wanted.start,
                                   .one_machine = wanted.one_machine,
                                   .shard_shift = fleet_shard_shift(run.labels, wanted.members),
                                   .steps = run.recipe.steps,
                                   .features = run.features,
                                   .labels = run.labels},
                 .shape = {}};
  lead.shape = fleet_shape(run.recipe, run.features, run.labels, lead.configuration.shard_shift);
  lead.workload.start = wanted.start;
  lead.workload.steps = run.recipe.steps;
  lead.workload.copies = run.config.cluster.copies;
  lead.workload.shard_bytes = (1 + fleet_copies(run.config, wanted.members)) *
                              trained_bytes(lead.shape.network) / lead.shape.shards();
  lead.supply = {.directory = place->directory,
                 .deliver = paths.parts(),
                 .most_bytes = most_delivered(lead.shape, run.config)};
  if (auto added = add_data(disk, lead.supply, *place); !added.ok()) return added.error();
  if (wanted.one_machine || wanted.start == StepNumber()) return lead;
  if (auto added = add_checkpoint(disk, lead.supply, paths.checkpoints(), wanted.start); !added.ok())
    return added.error();
  return lead;
}

Result<std::shared_ptr<const sparse_engine::FleetJob>> make_member_job(const run::NodeHost& host,
                                                                       const std::string& configuration,
                                                                       const node::Supplied& supplied,
                                                                       NodeId self) {
  auto told = read_fleet_configuration(configuration);
  if (!told.ok()) return told.error();
  move_here(*told, supplied);
  const CachePlace cache = cache_of(supplied.supply);
  auto samples = open_samples(host, told->config, cache);
  if (!samples.ok()) return samples.error();
  if (*samples == nullptr) return no_data(cache.directory, "nothing there");
  auto recipe = sparse_engine::derive_recipe(told->config, sparse_engine::shape_of((*samples)->schema()));
  if (!recipe.ok()) return recipe.error();
  const data::Schema& schema = (*samples)->schema();
  if (recipe->steps != told->steps || schema.features() != told->features || schema.labels() != told->labels)
    return other_data(cache.directory, *told, *recipe, schema);
  const auto owner = std::make_shared<const MemberJob>(host, *std::move(told), supplied, *std::move(samples),
                                                       *std::move(recipe), self);
  return std::shared_ptr<const sparse_engine::FleetJob>(owner, &owner->job());
}

}  // namespace gossamer::commands
