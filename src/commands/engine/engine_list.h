// SPDX-License-Identifier: Apache-2.0
//
// EngineList: the engines of a program. It finds the engine that a config or a directory is for, and makes
// the error for what an engine does not do.
//
// A config names its engine by the key `engine` (run/engine_key.h), a model.json by its field "engine". A
// config without the key is for the first engine of the list, whose configs are written without it.
//
// Thread rule: immutable.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "commands/engine/engine_entry.h"
#include "host/api/disk.h"
#include "run/engine_key.h"
#include "settings/toml.h"

namespace gossamer::commands {

class EngineList {
 public:
  // Requires an engine, and of each entry what EngineEntry says. No two have the same name, the same preset
  // or the same kind of files to import. A preset with the name of an engine is a preset of this engine.
  explicit EngineList(std::vector<EngineEntry> entries);

  // The list with one engine more.
  [[nodiscard]] EngineList with(EngineEntry entry) const {
    std::vector<EngineEntry> entries = entries_;
    entries.push_back(std::move(entry));
    return EngineList(std::move(entries));
  }

  [[nodiscard]] std::span<const EngineEntry> all() const { return entries_; }
  [[nodiscard]] const EngineEntry& first() const { return entries_.front(); }
  // Null where there is none.
  [[nodiscard]] const EngineEntry* find(std::string_view name) const;
  struct Named {
    const EngineEntry& engine;
    const PresetText& preset;
  };
  [[nodiscard]] std::optional<Named> find_preset(std::string_view name) const;

  // Takes the key `engine` off a config: the engine that it names, or the first. kUsage for another word.
  [[nodiscard]] Result<const EngineEntry*> take_engine(settings::TomlTable& config) const;
  // The engine as run directories name it.
  [[nodiscard]] run::RunEngine in_runs(const EngineEntry& engine) const {
    return {.name = std::string(engine.name), .unnamed = std::string(first().name)};
  }
  // The engine of a run directory or a model directory. The first where none is named: it says then what is
  // missing or damaged. kUsage for an engine that is not in the list.
  [[nodiscard]] Result<const EngineEntry*> of_directory(host::Disk& disk, const std::string& directory) const;

  // The function of the engine, such as ability(engine, &EngineEntry::predict, "answers queries", where).
  // kUsage if it is empty: names the engines which have it.
  template <class Function>
  [[nodiscard]] Result<Function> ability(const EngineEntry& engine, Function EngineEntry::* function,
                                         std::string_view does, const std::string& where) const {
    if (engine.*function) return engine.*function;
    std::vector<std::string_view> able;
    for (const EngineEntry& one : entries_) {
      if (one.*function) able.push_back(one.name);
    }
    return lacks(engine, does, able, where);
  }

  // The engine of that name; kUsage for another word. `where`: the place of the word.
  [[nodiscard]] Result<const EngineEntry*> named(const std::string& name, std::string where) const;

 private:
  // `able`: engines that do it.
  [[nodiscard]] static Error lacks(const EngineEntry& engine, std::string_view does,
                                   const std::vector<std::string_view>& able, const std::string& where);

  std::vector<EngineEntry> entries_;
};

}  // namespace gossamer::commands
