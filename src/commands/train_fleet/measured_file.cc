// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/measured_file.h"

#include <nlohmann/json.hpp>

#include "host/api/files.h"
#include "json/read_json.h"

namespace gossamer::commands {
namespace {

using MeasuredJson = nlohmann::ordered_json;

std::string path_in(const std::string& directory) { return directory + "/measured.json"; }

}  // namespace

Result<void> save_measured(host::Disk& disk, const std::string& directory, StepNumber step,
                           const Measured& measured) {
  const MeasuredJson json = {{"step", step.value},
                             {"seconds", measured.seconds},
                             {"metrics", read_json<MeasuredJson>(measured.metrics_json)},
                             {"text", measured.text}};
  return host::replace_file(disk, path_in(directory),
                            json.dump(-1, ' ', false, MeasuredJson::error_handler_t::replace) + "\n");
}

std::optional<Measured> load_measured(host::Disk& disk, const std::string& directory, StepNumber step) {
  const auto there = disk.exists(path_in(directory));
  if (!there.ok() || !*there) return std::nullopt;
  const auto text = host::read_text(disk, path_in(directory));
  if (!text.ok()) return std::nullopt;
  const MeasuredJson json = read_json<MeasuredJson>(*text);
  const bool readable = json.is_object() && json.contains("step") && json["step"].is_number_unsigned() &&
                        json.contains("seconds") && json["seconds"].is_number() && json.contains("metrics") &&
                        json["metrics"].is_object() && json.contains("text") && json["text"].is_string();
  if (!readable || json["step"].get<std::uint64_t>() != step.value) return std::nullopt;
  return Measured{.metrics_json = json["metrics"].dump(),
                  .text = json["text"].get<std::string>(),
                  .seconds = json["seconds"].get<double>(),
                  .before = true};
}

}  // namespace gossamer::commands
