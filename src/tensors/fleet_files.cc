// SPDX-License-Identifier: Apache-2.0
#include "tensors/fleet_files.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/printable.h"

namespace gossamer::tensors {
namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kPart = ".part";
constexpr std::string_view kRecord = ".run";
constexpr std::string_view kUnfinished = ".tmp";
constexpr std::size_t kStepDigits = 12;

std::string stem(StepNumber step) { return fmt::format("{}{:012}", kStepPrefix, step.value); }

template <class T>
bool take_number(std::string_view& text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// The step of a finished file, by its name. Takes what it has read off the name.
std::optional<StepNumber> take_step(std::string_view& name) {
  StepNumber step;
  if (!take_word(name, kStepPrefix) || name.size() <= kStepDigits || name[kStepDigits] != '.' ||
      !take_number(name, step.value))
    return std::nullopt;
  return step;
}

// The step of a finished file, by its name.
std::optional<StepNumber> step_of(std::string_view name) {
  if (const auto file = read_fleet_file_name(name)) return file->step;
  const auto step = take_step(name);
  return step && name == kRecord ? step : std::nullopt;
}

}  // namespace

std::string fleet_file_name(const FleetFileName& file) {
  return fmt::format("{}.{}{}", stem(file.step), file.node.value, kPart);
}

std::optional<FleetFileName> read_fleet_file_name(std::string_view name) {
  const auto step = take_step(name);
  FleetFileName file;
  if (!step || !take_word(name, ".") || !take_number(name, file.node.value) || name != kPart)
    return std::nullopt;
  file.step = *step;
  return file;
}

Result<void> write_fleet_file(host::Disk& disk, const std::string& directory, NodeId node,
                              const CheckpointInfo& info, std::span<const NamedTensor> tensors) {
  const std::string name = fleet_file_name({.step = info.next_step, .node = node});
  return write_checkpoint(disk, directory + "/" + name, info, tensors);
}

Result<void> write_run_record(host::Disk& disk, const std::string& directory, const CheckpointInfo& info) {
  return write_checkpoint(disk, fmt::format("{}/{}{}", directory, stem(info.next_step), kRecord), info, {});
}

bool is_run_record(std::string_view name) { return take_step(name).has_value() && name == kRecord; }

bool is_fleet_file(std::string_view name) { return step_of(name).has_value(); }

Result<std::map<StepNumber, std::vector<std::string>>> list_fleet_files(host::Disk& disk,
                                                                        const std::string& directory) {
  std::map<StepNumber, std::vector<std::string>> files;
  const auto there = disk.exists(directory);
  if (!there.ok()) return there.error();
  if (!*there) return files;
  const auto names = disk.list(directory);
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    std::string_view text = name;
    if (text.ends_with(kUnfinished)) text.remove_suffix(kUnfinished.size());
    if (const auto step = step_of(text)) files[*step].push_back(name);
  }
  return files;
}

Result<void> check_fleet_file(host::Disk& disk, const std::string& path, const WantedFleetFile& wanted,
                              FunctionRef<bool(const std::string& name, std::uint64_t bytes)> may_have) {
  const auto refused = [&](std::string got, std::string expected) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = path,
                 .what = "a member's file is not what it should be",
                 .got = std::move(got),
                 .expected = std::move(expected)};
  };
  const auto file = CheckpointFile::open(disk, path);
  if (!file.ok()) return file.error();
  if (file->info().next_step != wanted.step)
    return refused(fmt::format("the state before step {}", file->info().next_step.value),
                   fmt::format("that before step {}", wanted.step.value));
  if (file->info().config_fingerprint != wanted.fingerprint)
    return refused("the state of another run", "that of this run");
  for (const std::string& name : file->names()) {
    if (!may_have(name, file->size_of(name).value_or(0)))
      return refused(fmt::format("section {}", quote(name)), "what the member owned");
    if (auto bytes = file->section(name); !bytes.ok()) return bytes.error();
  }
  return {};
}

Result<std::optional<FleetFiles>> open_fleet_files(host::Disk& disk, const std::string& directory,
                                                   std::string_view fingerprint, StepNumber step,
                                                   EventSink events) {
  const auto all = list_fleet_files(disk, directory);
  if (!all.ok()) return all.error();
  FleetFiles found;
  std::optional<CheckpointInfo> record;
  const auto names = all->find(step);
  if (names == all->end()) return std::optional<FleetFiles>();
  for (const std::string& name : names->second) {
    if (name.ends_with(kUnfinished)) continue;
    auto file = CheckpointFile::open(disk, directory + "/" + name);
    if (!file.ok()) {
      if (file.error().kind != ErrorKind::kBadData) return file.error();
      events("checkpoint_damaged", {{"file", directory + "/" + name}, {"error", file.error().message()}});
      continue;
    }
    if (file->info().config_fingerprint != fingerprint) return other_configuration(*file, fingerprint);
    if (name.ends_with(kRecord)) {
      record = file->info();
    } else if (file->info().next_step == step) {
      found.files.push_back(*std::move(file));
    }
  }
  if (found.files.empty()) return std::optional<FleetFiles>();
  found.info = record.value_or(found.files.front().info());
  return std::optional(std::move(found));
}

Result<std::span<const std::byte>> fleet_section(std::span<const CheckpointFile> files,
                                                 const std::string& name, EventSink events) {
  Error none{.kind = ErrorKind::kBadData,
             .what = "no file of the checkpoint has section " + name,
             .expected = "the files of all nodes"};
  for (const CheckpointFile& file : files) {
    if (!file.size_of(name)) continue;
    auto bytes = file.section(name);
    if (bytes.ok()) return bytes;
    events("checkpoint_damaged", {{"file", file.path()}, {"error", bytes.error().message()}});
    none = bytes.error();
  }
  return none;
}

}  // namespace gossamer::tensors
