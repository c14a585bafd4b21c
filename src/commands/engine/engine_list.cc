// SPDX-License-Identifier: Apache-2.0
#include "commands/engine/engine_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/nearest_name.h"
#include "host/api/files.h"
#include "json/read_json.h"

namespace gossamer::commands {
namespace {

using run::kEngineKey;

// The name in a model.json; empty where there is none. A damaged file is for its engine to judge.
std::string engine_of_model(host::Disk& disk, const std::string& path) {
  const auto text = host::read_text(disk, path);
  if (!text.ok()) return {};
  const auto json = read_json<nlohmann::json>(*text);
  const bool names = json.is_object() && json.contains(kEngineKey) && json[kEngineKey].is_string();
  return names ? json[kEngineKey].get<std::string>() : std::string();
}

// What every command needs of an entry.
void check_entry(const EngineEntry& engine) {
  CHECK(!engine.name.empty());
  CHECK(engine.keys != nullptr, engine.name);
  CHECK(engine.check != nullptr, engine.name);
  CHECK(engine.keys->find(kEngineKey) == nullptr, engine.name);
  CHECK(engine.import_kinds.empty() == (engine.import == nullptr), engine.name);
}

}  // namespace

EngineList::EngineList(std::vector<EngineEntry> entries) : entries_(std::move(entries)) {
  CHECK(!entries_.empty());
  std::set<std::string_view> names;
  std::set<std::string_view> presets;
  std::set<std::string_view> kinds;
  for (const EngineEntry& engine : entries_) {
    check_entry(engine);
    CHECK(names.insert(engine.name).second, engine.name);
    for (const PresetText& preset : engine.presets)
      CHECK(presets.insert(preset.name).second, engine.name, preset.name);
    for (const ImportKind& kind : engine.import_kinds)
      CHECK(kinds.insert(kind.name).second, engine.name, kind.name);
  }
  for (const std::string_view preset : presets)
    CHECK(find(preset) == nullptr || &find_preset(preset)->engine == find(preset), preset);
}

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

Result<const EngineEntry*> EngineList::take_engine(settings::TomlTable& config) const {
  const auto word = run::take_engine(config);
  return word ? named(word->name, word->where) : &first();
}

Result<const EngineEntry*> EngineList::of_directory(host::Disk& disk, const std::string& directory) const {
  for (const char* const path : {"/model/model.json", "/model.json"}) {
    const auto there = disk.exists(directory + path);
    if (!there.ok() || !*there) continue;
    const std::string name = engine_of_model(disk, directory + path);
    return name.empty() ? &first() : named(name, directory + path);
  }
  const std::string config = directory + "/run.toml";
  const auto there = disk.exists(config);
  if (!there.ok() || !*there) return &first();
  const auto text = host::read_text(disk, config);
  auto table = text.ok() ? settings::parse_toml(*text, config) : text.error();
  return table.ok() ? take_engine(*table) : &first();
}

}  // namespace gossamer::commands
