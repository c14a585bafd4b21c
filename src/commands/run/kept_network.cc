// SPDX-License-Identifier: Apache-2.0
#include "commands/run/kept_network.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "json/read_json.h"
#include "tensors/checkpoint.h"
#include "tensors/fleet_files.h"

namespace gossamer::commands {
namespace {

const auto kUnheard = [](std::string_view, EventFields) {};

// Whether every section has its checksum in one of the files.
bool whole_together(const std::vector<tensors::CheckpointFile>& files) {
  return std::ranges::all_of(files, [&](const tensors::CheckpointFile& file) {
    return std::ranges::all_of(file.names(), [&](const std::string& section) {
      return tensors::fleet_section(files, section, kUnheard).ok();
    });
  });
}

// The files of these names, opened. Nothing: one of them is damaged.
Result<std::optional<std::vector<tensors::CheckpointFile>>> open_files(
    host::Disk& disk, const std::string& directory, const std::vector<std::string>& names) {
  std::vector<tensors::CheckpointFile> files;
  for (const std::string& name : names) {
    auto file = tensors::CheckpointFile::open(disk, directory + "/" + name);
    if (!file.ok() && file.error().kind == ErrorKind::kBadData)
      return std::optional<std::vector<tensors::CheckpointFile>>();
    if (!file.ok()) return file.error();
    files.push_back(*std::move(file));
  }
  return std::optional(std::move(files));
}

// The newest undamaged checkpoint that one process has written.
Result<KeptNetwork> kept_alone(host::Disk& disk, const std::string& directory) {
  const auto there = disk.exists(directory);
  if (!there.ok()) return there.error();
  if (!*there) return KeptNetwork();
  auto names = disk.list(directory);
  if (!names.ok()) return names.error();
  std::erase_if(*names, [](const std::string& name) { return !tensors::read_checkpoint_name(name); });
  std::ranges::sort(*names, std::greater());  // names have the order of their steps
  for (const std::string& name : *names) {
    const auto files = open_files(disk, directory, {name});
    if (!files.ok()) return files.error();
    if (!*files || !whole_together(**files)) continue;
    const tensors::CheckpointInfo& info = (*files)->front().info();
    return KeptNetwork{.step = info.next_step, .trained = info.finished};
  }
  return KeptNetwork();
}

}  // namespace

Result<KeptNetwork> kept_network(host::Disk& disk, const run::RunPaths& paths, std::string_view summary) {
  auto kept = kept_alone(disk, paths.checkpoints());
  if (!kept.ok()) return kept.error();
  const auto steps = tensors::list_fleet_files(disk, paths.checkpoints());
  if (!steps.ok()) return steps.error();
  for (auto step = steps->rbegin(); step != steps->rend() && step->first > kept->step; ++step) {
    std::vector<std::string> names = step->second;
    std::erase_if(names, [](const std::string& name) { return !tensors::is_fleet_file(name); });
    const auto files = open_files(disk, paths.checkpoints(), names);
    if (!files.ok()) return files.error();
    if (!*files || (*files)->empty() || !whole_together(**files)) continue;
    const auto told = read_json<nlohmann::json>(summary);
    const auto all = told.is_object() ? told.value("steps", nlohmann::json()) : nlohmann::json();
    const bool last = all.is_number_unsigned() && all.get<std::uint64_t>() == step->first.value;
    return KeptNetwork{.step = step->first, .trained = last};
  }
  return kept;
}

}  // namespace gossamer::commands
