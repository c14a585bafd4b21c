// SPDX-License-Identifier: Apache-2.0
#include "commands/run/recovery_reports.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <optional>
#include <span>
#include <variant>

namespace gossamer::commands {
namespace {

using Json = nlohmann::json;

// The name of a field in a line: that of the summary, without the unit of times.
std::string name_in_line(std::string_view name) {
  constexpr std::string_view kUnit = "_seconds";
  if (name.ends_with(kUnit)) name.remove_suffix(kUnit.size());
  return std::string(name);
}

Json line_of(const engine::FleetRecovery& recovery) {
  Json json = Json::object();
  json["epoch"] = recovery.epoch.value;
  for (const EventField& field : engine::fields_of(recovery)) {
    std::visit([&](const auto& value) { json[name_in_line(field.key)] = value; }, field.value);
  }
  return json;
}

// Reads a value of the right kind; false for another kind.
bool read_value(const Json& json, std::string& out) {
  if (!json.is_string()) return false;
  json.get_to(out);
  return true;
}
bool read_value(const Json& json, std::uint64_t& out) {
  if (!json.is_number()) return false;
  json.get_to(out);
  return true;
}
bool read_value(const Json& json, StepNumber& out) { return read_value(json, out.value); }
// To the nearest nanosecond, so that a line gives back what was told.
bool read_value(const Json& json, Duration& out) {
  if (!json.is_number()) return false;
  out = {std::llround(json.get<double>() * 1e9)};
  return true;
}

// Nothing for what no member writes.
std::optional<engine::FleetRecovery> read_recovery(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  engine::FleetRecovery recovery;
  bool good = json.contains("epoch") && read_value(json["epoch"], recovery.epoch.value);
  engine::FleetRecovery::describe(recovery, [&](std::string_view name, auto& field) {
    const auto found = json.find(name_in_line(name));
    good = good && found != json.end() && read_value(*found, field);
  });
  return good ? std::optional(recovery) : std::nullopt;
}

}  // namespace

RecoveryReports::RecoveryReports(host::Disk& disk, const std::string& directory, NodeId self)
    : disk_(disk), path_(fmt::format("{}/{}.recoveries", directory, self.value)) {}

void RecoveryReports::add(const engine::FleetRecovery& recovery) {
  if (file_ == nullptr) {
    auto file = disk_.open_writable(path_, host::WriteMode::kAppend);
    if (!file.ok()) return;
    file_ = *std::move(file);
  }
  const std::string line = line_of(recovery).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  // A line that is not whole is none, and costs the next one too.
  static_cast<void>(file_->append(std::as_bytes(std::span(line.data(), line.size()))));
}

std::vector<engine::FleetRecovery> RecoveryReportReader::read(StepNumber before) {
  const auto take = [this](const std::string& /*file*/, std::string_view line) { this->take(line); };
  tails_.read(take);
  std::vector<engine::FleetRecovery> ended;
  for (auto one = told_.begin(); one != told_.end();) {
    if (one->second.step >= before) {
      ++one;
      continue;
    }
    given_.insert(one->first);
    ended.push_back(std::move(one->second));
    one = told_.erase(one);
  }
  return ended;
}

void RecoveryReportReader::take(std::string_view line) {
  std::optional<engine::FleetRecovery> recovery = read_recovery(Json::parse(line, nullptr, false));
  if (!recovery || given_.contains(recovery->epoch)) return;
  engine::FleetRecovery& told = told_[recovery->epoch];
  if (recovery->total >= told.total) told = *std::move(recovery);
}

}  // namespace gossamer::commands
