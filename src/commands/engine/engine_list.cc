// SPDX-License-Identifier: Apache-2.0
#include "commands/engine/engine_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

#include "base/nearest_name.h"
#include "host/api/files.h"
#include "settings/toml.h"

namespace gossamer::commands {
namespace {

constexpr std::string_view kKey = "engine";

// The name in a model.json; empty where there is none. A damaged file is for its engine to judge.
Result<std::string> engine_of_model(host::Disk& disk, const std::string& path) {
  const auto text = host::read_text(disk, path);
  if (!text.ok()) return text.error();
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const bool names = json.is_object() && json.contains(kKey) && json[kKey].is_string();
  return names ? json[kKey].get<std::string>() : std::string();
}

}  // namespace

const EngineEntry* EngineList::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &EngineEntry::name);
  return found == entries_.end() ? nullptr : &*found;
}

std::optional<EngineList::Named> EngineList::find_preset(std::string_view name) const {
  for (const EngineEntry& engine : entries_) {
    const auto found = std::ranges::find(engine.presets, name, &PresetText::name);
    if (found != engine.presets.end()) return Named{.engine = engine, .preset = *found};
  }
  return std::nullopt;
}

Result<const EngineEntry*> EngineList::named(const std::string& name, std::string where) const {
  if (const EngineEntry* const engine = find(name); engine != nullptr) return engine;
  std::vector<std::string_view> names;
  for (const EngineEntry& one : entries_) names.push_back(one.name);
  return Error{.kind = ErrorKind::kUsage,
               .where = std::move(where),
               .what = fmt::format("there is no engine '{}'", name),
               .expected = fmt::format("an engine such as '{}' (all: {})", nearest_name(name, names),
                                       fmt::join(names, ", ")),
               .fix = "mend the name, or use a version that has this engine"};
}

Error EngineList::lacks(const EngineEntry& engine, std::string_view does,
                        const std::vector<std::string_view>& able, const std::string& where) {
  return {.kind = ErrorKind::kUsage,
          .where = where,
          .what = fmt::format("the engine '{}' does not do this", engine.name),
          .got = std::string(engine.name),
          .expected = fmt::format("an engine that {}: {}", does, fmt::join(able, ", ")),
          .fix = "ask it of a run of such an engine"};
}

Result<const EngineEntry*> EngineList::of_config(std::string_view toml, std::string_view file) const {
  const auto table = settings::parse_toml(toml, file);
  if (!table.ok()) return table.error();
  const auto found = std::ranges::find(*table, kKey, &settings::TomlEntry::name);
  if (found == table->end()) return &first();
  const auto* const name = found->value.as<std::string>();
  return named(name != nullptr ? *name : settings::describe(found->value), found->value.where);
}

Result<const EngineEntry*> EngineList::of_directory(host::Disk& disk, const std::string& directory) const {
  for (const char* const path : {"/model/model.json", "/model.json"}) {
    const auto there = disk.exists(directory + path);
    if (!there.ok() || !*there) continue;
    const auto name = engine_of_model(disk, directory + path);
    const EngineEntry* const engine = name.ok() ? find(*name) : nullptr;
    return engine != nullptr ? engine : &first();
  }
  const std::string config = directory + "/run.toml";
  const auto there = disk.exists(config);
  if (!there.ok() || !*there) return &first();
  const auto text = host::read_text(disk, config);
  if (!text.ok() || !settings::parse_toml(*text, config).ok()) return &first();
  return of_config(*text, config);
}

}  // namespace gossamer::commands
