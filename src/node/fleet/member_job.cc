// SPDX-License-Identifier: Apache-2.0
#include "node/fleet/member_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engines/sparse/config_toml.h"
#include "engines/sparse/recipe.h"
#include "engines/sparse/trainer.h"
#include "host/api/files.h"
#include "node/fleet/fleet_plan.h"
#include "node/fleet/part_file.h"
#include "node/fleet/step_reports.h"
#include "node/run_directory.h"
#include "node/training_data.h"
#include "node/training_samples.h"

namespace gossamer::node {
namespace {

Error not_prepared(const std::string& where, std::string got) {
  return {.kind = ErrorKind::kUsage,
          .where = where,
          .what = "there is no prepared run",
          .got = std::move(got),
          .expected = "the run.toml that 'gossamer train --nodes' wrote, beside the data that it imported",
          .fix = "gossamer train CONFIG --nodes N --out DIR"};
}

Result<engine::TrainConfig> read_config(host::Disk& disk, const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  const auto text = host::read_text(disk, path, kMostBytes);
  if (!text.ok()) return text.error();
  const auto settings = engine::parse_toml(*text, path);
  if (!settings.ok()) return settings.error();
  engine::TrainConfig config;
  if (auto done = engine::apply_settings(config, *settings); !done.ok()) return done.error();
  if (auto valid = engine::validate(config); !valid.ok()) return valid.error();
  return config;
}

struct OpenedCache {
  CachePlace place;
  TrainingData data;
};

// In the run's directory, or in the imported one that its config names.
Result<OpenedCache> open_run(const NodeHost& host, const engine::TrainConfig& config, const RunPaths& paths) {
  CachePlace place{.directory = paths.cache()};
  auto data = open_cache(host, config, place);
  if (data.ok() && !data->has_value()) {
    const auto source = find_source(host.disk, config.data.train, config.data.format);
    if (source.ok() && source->format == RecordFormat::kCache) {
      place.records = source->path;
      data = open_cache(host, config, place);
    }
  }
  if (!data.ok()) return data.error();
  if (!data->has_value()) return not_prepared(paths.config(), "no data in " + paths.cache());
  return OpenedCache{.place = std::move(place), .data = **std::move(data)};
}

engine::FleetShape fleet_shape(const engine::Recipe& recipe, const data::Schema& schema, unsigned shift) {
  return {.network = engine::network_shape(recipe, schema.features(), schema.labels()), .shard_shift = shift};
}

Error other_data(const FleetConfiguration& told, const engine::Recipe& recipe, const data::Schema& schema) {
  return {.kind = ErrorKind::kBadData,
          .where = told.cache.directory,
          .what = "the data are not those of the run",
          .got = fmt::format("{} features, {} labels, {} steps", schema.features(), schema.labels(),
                             recipe.steps),
          .expected = fmt::format("{} features, {} labels, {} steps", told.features, told.labels, told.steps),
          .fix = "look whether coordinator and node run the same version on the same files"};
}

// A job and all that it borrows from the member's own.
class MemberJob {
 public:
  MemberJob(const NodeHost& host, FleetConfiguration told, TrainingData data, engine::Recipe recipe,
            NodeId self)
      : told_(std::move(told)),
        data_(std::move(data)),
        recipe_(std::move(recipe)),
        weighting_(weigh(data_, told_.config).weighting),
        samples_(data_, weighting_, told_.config, recipe_, host.compute),
        order_(samples_.labels().count, told_.shard_shift),
        labels_(sparse::by_row(samples_.labels(), order_)),
        steps_(samples_.steps(), order_),
        reports_(host.disk, told_.deliver, self),
        job_{.shape = fleet_shape(recipe_, data_.schema(), told_.shard_shift),
             .order = order_,
             .moments = engine::table_moments(told_.config.optimizer.moments),
             .init = engine::network_init(told_.config),
             .learner = engine::learner_options(told_.config, recipe_),
             .schedule = engine::schedule_of(told_.config, recipe_),
             .labels = labels_,
             .steps = steps_,
             .kernels = host.kernels,
             .compute = host.compute,
             .stepped = [this](const engine::FleetStep& step) { reports_.add(step); },
             .deliver =
                 [this, &host, self](sparse::Network& part) {
                   return save_part(host.disk, told_.deliver,
                                    {.node = self, .step = StepNumber(recipe_.steps), .part = part.part},
                                    part);
                 }} {}
  MemberJob(const MemberJob&) = delete;
  MemberJob& operator=(const MemberJob&) = delete;

  [[nodiscard]] const engine::FleetJob& job() const { return job_; }

 private:
  const FleetConfiguration told_;
  const TrainingData data_;
  const engine::Recipe recipe_;
  const text::FeatureWeighting weighting_;
  TrainingSamples samples_;
  const sparse::RowOrder order_;
  const sparse::LabelCounts labels_;  // by row
  engine::RowSteps steps_;
  StepReports reports_;
  const engine::FleetJob job_;
};

}  // namespace

std::string deliver_directory(const std::string& run) { return run + "/nodes/parts"; }

Result<FleetLead> prepare_lead(const NodeHost& host, const std::string& run, std::size_t nodes) {
  const RunPaths paths(run);
  auto config = read_config(host.disk, paths.config());
  if (!config.ok()) return config.error();
  if (auto can = check_fleet_config(*config); !can.ok()) return can.error();
  auto opened = open_run(host, *config, paths);
  if (!opened.ok()) return opened.error();
  const data::Schema& schema = opened->data.schema();
  const auto recipe = engine::derive_recipe(*config, engine::shape_of(schema));
  if (!recipe.ok()) return recipe.error();
  FleetLead lead{.configuration = {.config = *std::move(config),
                                   .cache = std::move(opened->place),
                                   .deliver = deliver_directory(run),
                                   .shard_shift = fleet_shard_shift(schema.labels(), nodes),
                                   .steps = recipe->steps,
                                   .features = schema.features(),
                                   .labels = schema.labels()},
                 .shape = {}};
  lead.shape = fleet_shape(*recipe, schema, lead.configuration.shard_shift);
  lead.workload.shard_bytes =
      (1 + lead.workload.copies) * trained_bytes(lead.shape.network) / lead.shape.shards();
  return lead;
}

Result<std::shared_ptr<const engine::FleetJob>> make_member_job(const NodeHost& host,
                                                                const std::string& configuration,
                                                                NodeId self) {
  auto told = read_fleet_configuration(configuration);
  if (!told.ok()) return told.error();
  auto data = open_cache(host, told->config, told->cache);
  if (!data.ok()) return data.error();
  if (!data->has_value()) return not_prepared(told->cache.directory, "no data there");
  auto recipe = engine::derive_recipe(told->config, engine::shape_of((*data)->schema()));
  if (!recipe.ok()) return recipe.error();
  const data::Schema& schema = (*data)->schema();
  if (recipe->steps != told->steps || schema.features() != told->features || schema.labels() != told->labels)
    return other_data(*told, *recipe, schema);
  const auto owner =
      std::make_shared<const MemberJob>(host, *std::move(told), **std::move(data), *std::move(recipe), self);
  return std::shared_ptr<const engine::FleetJob>(owner, &owner->job());
}

}  // namespace gossamer::node
