// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a checkpoint's file and as a part file, as a member may deliver them: read, or an error. The
// input is a file, or a footer's JSON, a zero byte and a section, or the length of a part's header, the
// header and weights. Places and checksums are made right first. All that a file has lies within it. A part
// that was checked can be read.
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "commands/train_fleet/part_file.h"
#include "engines/sparse/fleet/step/layout.h"
#include "host/api/files.h"
#include "host/sim/disk.h"
#include "tensors/checkpoint.h"
#include "tensors/fleet_files.h"

namespace {

using namespace gossamer;
using Json = nlohmann::json;

constexpr std::size_t kFirstSection = 64;
constexpr std::string_view kMagic = "GSMRCKPT";

sparse_engine::FleetShape shape() {
  return {.network = {.features = 3, .labels = 7, .hidden = 20, .dense = {16}}, .shard_shift = 2};
}

std::string number(std::uint64_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

// The footer with the true checksum of its first section, if it has a place for it.
std::string seal(std::string_view footer, std::string_view weights) {
  Json json = Json::parse(footer, nullptr, false);
  if (!json.is_object() || !json.contains("sections") || !json["sections"].is_array() ||
      json["sections"].empty() || !json["sections"][0].is_object()) {
    return std::string(footer);
  }
  json["sections"][0]["xxh3"] = fmt::format("{:016x}", XXH3_64bits(weights.data(), weights.size()));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string checkpoint_of(std::string_view text, std::string_view weights) {
  const std::string footer = seal(text, weights);
  std::string file(kMagic);
  file.resize(kFirstSection);
  file += weights;
  const std::uint64_t at = file.size();
  file += footer;
  return file + number(at) + number(footer.size()) + number(XXH3_64bits(footer.data(), footer.size())) +
         number(1) + std::string(kMagic);
}

void read_checkpoint(host::Disk& disk, const std::string& bytes) {
  const std::string path = "d/" + tensors::fleet_file_name({.step = StepNumber(7), .node = NodeId(3)});
  CHECK(host::replace_file(disk, path, bytes).ok());
  const auto opened = tensors::CheckpointFile::open(disk, path);
  if (!opened.ok()) {
    CHECK(opened.error().kind == ErrorKind::kBadData && opened.error().where == path);
    return;
  }
  for (const std::string& name : opened->names()) {
    const auto section = opened->section(name);
    CHECK(!section.ok() || section->size() == opened->size_of(name), name);
  }
  const auto all = [](const std::string&, std::uint64_t) { return true; };
  const auto checked =
      tensors::check_fleet_file(disk, path, {.step = StepNumber(7), .fingerprint = "f"}, all);
  CHECK(!checked.ok() || opened->info().next_step == StepNumber(7));
  for (const std::string& name : opened->names()) CHECK(!checked.ok() || opened->section(name).ok(), name);
}

void read_part(host::Disk& disk, std::string_view header, std::string_view weights) {
  std::string bytes = number(header.size()) + std::string(header) + std::string(weights);
  bytes += number(XXH3_64bits(bytes.data(), bytes.size()));
  const commands::PartName name{.node = NodeId(3), .step = StepNumber(7)};
  const std::string path = "d/" + commands::part_name(name);
  CHECK(host::replace_file(disk, path, bytes).ok());
  const commands::OwnedPart owned{
      .shape = shape(), .name = name, .owned = {{0, 0}, {0, 1}, {1, 0}, {2, 0}, {2, 1}}, .run = "r"};
  if (!commands::check_part(disk, path, owned).ok()) return;
  const auto parts = commands::list_parts(disk, "d", shape(), StepNumber(7));
  CHECK(parts.ok() && parts->size() == 1);
  CHECK(commands::map_part(disk, parts->at(0)).ok());
  if (!commands::cover(*parts, shape())) return;
  const std::vector<std::uint32_t> counts(7, 1);
  CHECK(commands::put_together(disk, *parts, shape(), {counts, 2}).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  host::SimDisk disk;
  CHECK(disk.make_directories("d").ok());
  read_checkpoint(disk, std::string(input));
  if (const std::size_t end = input.find('\0'); end != std::string_view::npos)
    read_checkpoint(disk, checkpoint_of(input.substr(0, end), input.substr(end + 1)));
  const std::size_t header = size == 0 ? 0 : data[0];
  if (header < size) read_part(disk, input.substr(1, header), input.substr(1 + header));
  return 0;
}
