// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <utility>

#include "commands/engine/member_place.h"
#include "commands/engine/run_request.h"
#include "commands/engine/training.h"
#include "commands/engines.h"
#include "commands/predict/weights_export.h"
#include "commands/records/files_import.h"
#include "commands/serve_fleet/model_session.h"
#include "commands/serve_fleet/serving_job.h"
#include "commands/train/sparse_training.h"
#include "commands/train_fleet/lead_runner.h"
#include "commands/train_fleet/member_job.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/config/presets.h"
#include "engines/sparse/fleet/fleet_engine.h"
#include "engines/sparse/serve/serving_engine.h"

namespace gossamer::commands {
namespace {

std::vector<PresetText> presets() {
  std::vector<PresetText> texts;
  for (const sparse_engine::Preset& preset : sparse_engine::presets())
    texts.push_back({.name = preset.name, .help = preset.help, .toml = preset.toml});
  return texts;
}

std::unique_ptr<Training> prepare(const TrainingPlace& place, const std::optional<LeadOptions>& lead) {
  std::shared_ptr<StepRunner> runner;
  if (lead) runner = std::make_shared<LeadRunner>(place.host, *lead);
  return sparse_training(place, std::move(runner));
}

Error not_in_place() {
  return {.kind = ErrorKind::kRefused,
          .what = "this node may not use paths that its coordinator names",
          .got = "a model directory to serve from",
          .expected = "a user who says that this machine has it under the same path",
          .fix = "join with --in-place"};
}

// Members train, or serve a model.
MemberKinds sparse_member(const MemberPlace& place) {
  const run::NodeHost& host = place.host;
  return {.kinds = {{.name = std::string(kSparseEngine),
                     .needs = node::Needs::kSupply,
                     .make =
                         [place](const node::Supplied& supplied) {
                           return std::make_unique<sparse_engine::FleetEngine>(
                               place.process,
                               [&host = place.host, supplied,
                                self = place.self](const std::string& configuration) {
                                 return make_member_job(host, configuration, supplied, self);
                               },
                               &place.host.clock);
                         }},
                    {.name = std::string(kServingEngine), .make = [&host, place](const node::Supplied&) {
                       return std::make_unique<sparse_engine::ServingEngine>(
                           place.process,
                           [&host, in_place = place.in_place](const std::string& configuration)
                               -> Result<std::shared_ptr<const sparse_engine::ServingJob>> {
                             if (!in_place) return not_in_place();
                             return make_serving_job(host, configuration);
                           });
                     }}}};
}

}  // namespace

EngineEntry sparse_entry() {
  return {.name = kSparseEngine,
          .help = "trains wide classifiers and embeddings",
          .presets = presets(),
          .keys = &sparse_engine::train_keys(),
          .check =
              [](const settings::Values& values) {
                return sparse_engine::validate(sparse_engine::train_keys().config(values));
              },
          .prepare = prepare,
          .member = sparse_member,
          .evaluate = measure_model,
          .predict = open_session,
          .serve = open_session,
          .model_flags = {"--top", "--net-alone", "--retrieval", "--threshold", "--nodes", "--join-at",
                          "--baseline"},
          .import_kinds = import_kinds(),
          .import = import_files,
          .export_weights = export_weights};
}

}  // namespace gossamer::commands
