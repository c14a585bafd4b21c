// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/fleet_data.h"

#include <algorithm>
#include <array>
#include <utility>

#include "commands/train/evaluation_records.h"
#include "engines/sparse/fleet/fleet_checkpoint.h"

namespace gossamer::node {
namespace {

constexpr std::string_view kRecords = "records";  // name for CachePlace::records, whatever it is called
constexpr std::array<std::string_view, 5> kNames{kRecords, "train.cache", "train.words", "vocabulary.json",
                                                 kTestCache};

}  // namespace

bool is_data_file(std::string_view name) {
  return std::ranges::find(kNames, name) != kNames.end() || engine::is_fleet_checkpoint_file(name);
}

StoredPlace data_place(const DataPlaces& places, const std::string& name) {
  const std::string own = places.cache.directory + "/" + name;
  StoredPlace place{.path = own, .manifest = manifest_path(own)};
  if (name == kRecords) place.path = places.cache.records;
  if (engine::is_fleet_checkpoint_file(name)) place.path = places.begin_from + "/" + name;
  return place;
}

namespace {

Result<StoredFile> describe(host::Disk& disk, const StoredPlace& place, const std::string& name) {
  auto file = describe_file(disk, place.path, name);
  if (!file.ok()) return file;
  if (auto kept = keep_manifest(disk, file->manifest, place.manifest); !kept.ok()) return kept.error();
  return file;
}

}  // namespace

Result<std::vector<StoredFile>> describe_data(host::Disk& disk, const CachePlace& cache) {
  if (auto made = disk.make_directories(cache.directory); !made.ok()) return made.error();
  std::vector<StoredFile> files;
  for (const std::string_view name : kNames) {
    const StoredPlace place = data_place({.cache = cache}, std::string(name));
    if (place.path.empty()) continue;
    const auto there = disk.exists(place.path);
    if (!there.ok()) return there.error();
    if (!*there) continue;
    auto file = describe(disk, place, std::string(name));
    if (!file.ok()) return file.error();
    files.push_back(*std::move(file));
  }
  return files;
}

Result<std::vector<StoredFile>> describe_checkpoint(host::Disk& disk, const DataPlaces& places,
                                                    StepNumber step) {
  const auto names = engine::fleet_checkpoint_files(disk, places.begin_from);
  if (!names.ok()) return names.error();
  std::vector<StoredFile> files;
  const auto of_step = names->find(step);
  if (of_step == names->end()) return files;
  for (const std::string& name : of_step->second) {
    if (!engine::is_fleet_checkpoint_file(name)) continue;  // a file that was never finished
    auto file = describe(disk, data_place(places, name), name);
    if (!file.ok()) return file.error();
    files.push_back(*std::move(file));
  }
  return files;
}

}  // namespace gossamer::node
