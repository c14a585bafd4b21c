// SPDX-License-Identifier: Apache-2.0
#include "node/files/supply.h"

#include <fmt/format.h>
#include <gossamer/delivery.pb.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "base/printable.h"

namespace gossamer::node {
namespace {

Error unreadable(std::string got) {
  return {.kind = ErrorKind::kBadData,
          .what = "cannot read which files the run needs",
          .got = std::move(got),
          .expected = "the supply of a run, version 2",
          .fix = "look whether coordinator and node run the same version"};
}

Result<Supply::File> read_file(const wire::Supply::File& told) {
  constexpr std::size_t kMostShown = 100;
  Supply::File file{.name = told.name(), .bytes = told.bytes(), .path = told.path()};
  if (!is_plain_name(file.name))
    return unreadable(fmt::format("a file '{}'", printable(file.name.substr(0, kMostShown))));
  const auto id = std::as_bytes(std::span(told.manifest()));
  if (id.size() != file.manifest.size())
    return unreadable(fmt::format("a manifest of {} bytes for {}", id.size(), file.name));
  std::ranges::copy(id, file.manifest.begin());
  return file;
}

}  // namespace

const Supply::File* Supply::find(std::string_view name) const {
  const auto found = std::ranges::find(files, name, &File::name);
  return found == files.end() ? nullptr : &*found;
}

StoredPlace Supply::place_of(const File& file) const {
  const std::string own = directory + "/" + file.name;
  return {.path = file.path.empty() ? own : file.path, .manifest = manifest_path(own)};
}

Result<void> add_file(host::Disk& disk, Supply& supply, const std::string& name, const std::string& path) {
  Supply::File file{.name = name, .path = path};
  const StoredPlace place = supply.place_of(file);
  const auto stored = describe_file(disk, place.path, name);
  if (!stored.ok()) return stored.error();
  if (auto kept = keep_manifest(disk, stored->manifest, place.manifest); !kept.ok()) return kept;
  file.manifest = stored->manifest.id();
  file.bytes = stored->manifest.bytes();
  supply.files.push_back(std::move(file));
  return {};
}

std::string supply_bytes(const Supply& supply) {
  wire::Supply message;
  for (const Supply::File& file : supply.files) {
    wire::Supply::File& one = *message.add_files();
    one.set_name(file.name);
    one.set_manifest(file.manifest.data(), file.manifest.size());
    one.set_bytes(file.bytes);
    one.set_path(file.path);
  }
  message.set_directory(supply.directory);
  message.set_deliver(supply.deliver);
  message.set_most_bytes(supply.most_bytes);
  return message.SerializeAsString();
}

Result<Supply> read_supply(std::string_view bytes) {
  wire::Supply message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return unreadable(fmt::format("{} bytes that are none", bytes.size()));
  Supply supply{
      .directory = message.directory(), .deliver = message.deliver(), .most_bytes = message.most_bytes()};
  if (supply.directory.empty() || supply.deliver.empty()) return unreadable("no directory");
  std::set<std::string_view> names;
  for (const wire::Supply::File& told : message.files()) {
    auto file = read_file(told);
    if (!file.ok()) return file.error();
    if (!names.insert(told.name()).second) return unreadable("two files " + file->name);
    supply.files.push_back(*std::move(file));
  }
  return supply;
}

}  // namespace gossamer::node
