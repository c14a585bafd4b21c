// SPDX-License-Identifier: Apache-2.0
#include "commands/run/train_summary.h"

#include <nlohmann/json.hpp>

#include <variant>

#include "json/read_json.h"

namespace gossamer::commands {

std::string to_json(const TrainSummary& s) {
  using Json = nlohmann::ordered_json;
  Json since_resume;
  if (s.since_resume.has_value()) {
    since_resume = {{"step", s.since_resume->step},
                    {"train_seconds", s.since_resume->train_seconds},
                    {"load_seconds", s.since_resume->load_seconds},
                    {"cpu_seconds", s.since_resume->cpu_seconds},
                    {"samples_per_second", s.since_resume->samples_per_second}};
  }
  Json recoveries = Json::array();
  for (const engine::FleetRecovery& one : s.recoveries) {
    Json& told = recoveries.emplace_back();
    for (const EventField& field : engine::fields_of(one)) {
      std::visit([&](const auto& value) { told[std::string(field.key)] = value; }, field.value);
    }
  }
  const Json json = {{"engine", s.engine},
                     {"run_id", s.run_id},
                     {"nodes", s.nodes},
                     {"parameters", s.parameters},
                     {"steps", s.steps},
                     {"samples", s.samples},
                     {"epochs", s.epochs},
                     {"train_seconds", s.train_seconds},
                     {"load_seconds", s.load_seconds},
                     {"eval_seconds", s.eval_seconds},
                     {"cpu_seconds", s.cpu_seconds},
                     {"eval_cpu_seconds", s.eval_cpu_seconds},
                     {"samples_per_second", s.samples_per_second},
                     {"peak_rss_bytes", s.peak_rss_bytes},
                     {"bytes_sent_per_node_per_step", s.bytes_sent_per_node_per_step},
                     {"background_bytes_per_node_per_step", s.background_bytes_per_node_per_step},
                     {"final_loss", s.final_loss},
                     {"metrics", read_json<Json>(s.metrics_json)},
                     {"recoveries", recoveries},
                     {"model_dir", s.model_dir},
                     {"since_resume", since_resume}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gossamer::commands
