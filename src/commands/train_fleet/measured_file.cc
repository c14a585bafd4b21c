// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/measured_file.h"

#include <nlohmann/json.hpp>

#include <array>
#include <utility>

#include "host/api/files.h"
#include "json/read_json.h"

namespace gossamer::commands {
namespace {

using MeasuredJson = nlohmann::ordered_json;

constexpr std::array kCalibrationKeys = {std::pair{"log", &sparse_engine::Calibration::log},
                                         std::pair{"rest", &sparse_engine::Calibration::rest},
                                         std::pair{"offset", &sparse_engine::Calibration::offset}};

std::string path_in(const std::string& directory) { return directory + "/measured.json"; }
bool is_number(const MeasuredJson& object, const char* key) {
  return object.contains(key) && object[key].is_number();
}

}  // namespace

Result<void> save_measured(host::Disk& disk, const std::string& directory, StepNumber step,
                           const Measured& measured) {
  MeasuredJson json = {{"step", step.value}, {"seconds", measured.seconds}};
  if (!measured.metrics_json.empty()) {
    json["metrics"] = read_json<MeasuredJson>(measured.metrics_json);
    json["text"] = measured.text;
  }
  if (measured.calibration) {
    for (const auto& [key, number] : kCalibrationKeys)
      json["calibration"][key] = (*measured.calibration).*number;
  }
  return host::replace_file(disk, path_in(directory),
                            json.dump(-1, ' ', false, MeasuredJson::error_handler_t::replace) + "\n");
}

std::optional<Measured> load_measured(host::Disk& disk, const std::string& directory, StepNumber step) {
  const auto there = disk.exists(path_in(directory));
  if (!there.ok() || !*there) return std::nullopt;
  const auto text = host::read_text(disk, path_in(directory));
  if (!text.ok()) return std::nullopt;
  const MeasuredJson json = read_json<MeasuredJson>(*text);
  const bool whole = json.is_object() && is_number(json, "step") && is_number(json, "seconds");
  if (!whole || json["step"] != step.value) return std::nullopt;
  Measured measured{.metrics_json = {}, .text = {}, .seconds = json["seconds"].get<double>(), .before = true};
  if (json.contains("metrics")) {
    if (!json["metrics"].is_object() || !json.contains("text") || !json["text"].is_string())
      return std::nullopt;
    measured.metrics_json = json["metrics"].dump();
    measured.text = json["text"].get<std::string>();
  }
  if (json.contains("calibration")) {
    const MeasuredJson& numbers = json["calibration"];
    measured.calibration.emplace();
    for (const auto& [key, number] : kCalibrationKeys) {
      if (!numbers.is_object() || !is_number(numbers, key)) return std::nullopt;
      (*measured.calibration).*number = numbers[key].get<float>();
    }
  }
  return measured;
}

}  // namespace gossamer::commands
