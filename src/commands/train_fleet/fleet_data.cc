// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/fleet_data.h"

#include <array>
#include <string_view>

#include "tensors/fleet_files.h"

namespace gossamer::commands {
namespace {

constexpr std::string_view kRecords = "records";  // name for CachePlace::records, whatever it is called
constexpr std::array<std::string_view, 4> kNames{kRecords, "train.cache", "train.words", "vocabulary.json"};

}  // namespace

Result<void> add_data(host::Disk& disk, node::Supply& supply, const CachePlace& cache) {
  if (auto made = disk.make_directories(cache.directory); !made.ok()) return made;
  supply.directory = cache.directory;
  for (const std::string_view name : kNames) {
    if (name == kRecords && cache.records.empty()) continue;
    const node::Supply::File file{.name = std::string(name), .path = name == kRecords ? cache.records : ""};
    const auto there = disk.exists(supply.place_of(file).path);
    if (!there.ok()) return there.error();
    if (!*there) continue;
    if (auto added = node::add_file(disk, supply, file.name, file.path); !added.ok()) return added;
  }
  return {};
}

Result<void> add_checkpoint(host::Disk& disk, node::Supply& supply, const std::string& directory,
                            StepNumber step) {
  const auto names = tensors::list_fleet_files(disk, directory);
  if (!names.ok()) return names.error();
  const auto of_step = names->find(step);
  if (of_step == names->end()) return {};
  for (const std::string& name : of_step->second) {
    if (!tensors::is_fleet_file(name)) continue;  // a file that was never finished
    if (auto added = node::add_file(disk, supply, name, directory + "/" + name); !added.ok()) return added;
  }
  return {};
}

CachePlace cache_of(const node::Supply& supply) {
  const node::Supply::File* const records = supply.find(kRecords);
  return {.directory = supply.directory, .records = records ? supply.place_of(*records).path : ""};
}

}  // namespace gossamer::commands
