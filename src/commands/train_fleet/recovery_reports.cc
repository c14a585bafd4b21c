// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/recovery_reports.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <span>

namespace gossamer::node {
namespace {

using Json = nlohmann::json;

// Reads a recovery. False for JSON that no member writes.
bool read_recovery(const Json& json, std::uint64_t& epoch, RunRecovery& recovery) {
  const auto number = [&json](const char* key, auto& out) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number()) return false;
    found->get_to(out);
    return true;
  };
  if (!json.is_object() || !json.contains("cause") || !json["cause"].is_string()) return false;
  recovery.cause = json["cause"].get<std::string>();
  return number("epoch", epoch) && number("step", recovery.step) && number("seconds", recovery.seconds) &&
         number("detect", recovery.detect_seconds) && number("agree", recovery.agree_seconds) &&
         number("load", recovery.load_seconds) && number("replay", recovery.replay_seconds) &&
         number("steps_replayed", recovery.steps_replayed);
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
  const Json json = {{"epoch", recovery.epoch.value},
                     {"step", recovery.step.value},
                     {"cause", recovery.cause},
                     {"seconds", recovery.total.seconds()},
                     {"detect", recovery.detect.seconds()},
                     {"agree", recovery.agree.seconds()},
                     {"load", recovery.load.seconds()},
                     {"replay", recovery.replay.seconds()},
                     {"steps_replayed", recovery.steps_replayed}};
  const std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  // A line that is not whole is no report, and costs the next one too.
  static_cast<void>(file_->append(std::as_bytes(std::span(line.data(), line.size()))));
}

std::vector<RunRecovery> RecoveryReportReader::read(StepNumber before) {
  const auto take = [this](const std::string& /*file*/, std::string_view line) { this->take(line); };
  tails_.read(take);
  std::vector<RunRecovery> ended;
  for (auto one = told_.begin(); one != told_.end();) {
    if (one->second.step >= before.value) {
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
  std::uint64_t epoch = 0;
  RunRecovery recovery;
  if (!read_recovery(Json::parse(line, nullptr, false), epoch, recovery)) return;
  if (given_.contains(Epoch(epoch))) return;
  RunRecovery& told = told_[Epoch(epoch)];
  if (recovery.seconds >= told.seconds) told = std::move(recovery);
}

}  // namespace gossamer::node
