// SPDX-License-Identifier: Apache-2.0
//
// EngineEntry is all that commands know of an engine. Each engine has one in the list (commands/engines.h).
// Every entry has a name, keys and a check. Any other function that is empty is something that the engine
// does not do. A command that needs it then refuses, and names the engines which do it (engine_list.h).
//
// Thread rule: immutable; each function says on which thread it is called.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "commands/engine/engine_part.h"
#include "commands/engine/model_requests.h"
#include "commands/engine/query_session.h"
#include "host/api/disk.h"
#include "run/node_host.h"
#include "settings/key_table.h"

namespace gossamer::commands {

// training.h, run_request.h and member_place.h say what these are. Most of what knows engines needs none.
class Training;
struct TrainingPlace;
struct Led;
struct LeadOptions;
struct MemberPlace;
struct MemberKinds;

// A named config that `gossamer train NAME` starts from: a TOML text like a user's own file.
struct PresetText {
  std::string_view name;
  std::string_view help;  // one line
  std::string_view toml;
};

// A word for `gossamer data import`, and what such files are.
struct ImportKind {
  std::string_view name;
  std::string_view help = {};
  // Flags of the command that other kinds may not have: "--skip-bad". They live as long as the program.
  std::span<const std::string_view> flags = {};
};

struct EngineEntry {
  std::string_view name;  // in the configuration of a run
  std::string_view help;  // "shows that a fleet works"
  std::vector<PresetText> presets = {};
  // Without the key `engine`, which is that of the list.
  const settings::Keys* keys = nullptr;
  // kUsage for keys that contradict each other.
  std::function<Result<void>(const settings::Values&)> check = {};

  // What this engine does for a training run (commands/run/train_run.h). `lead`: members do its steps;
  // nothing: this process does.
  std::function<std::unique_ptr<Training>(const TrainingPlace& place, const std::optional<LeadOptions>& lead)>
      prepare = {};
  // What a coordinator leads that has nothing but the keys: no data, and no result.
  std::function<Result<Led>(const settings::Values&)> workload = {};
  // What a member can be for runs of this engine.
  std::function<MemberKinds(const MemberPlace&)> member = {};

  // The rest is called on the thread that owns the Compute.
  std::function<Result<Report>(const run::NodeHost&, const MeasureModel&)> evaluate = {};
  using OpenSession =
      std::function<Result<std::unique_ptr<QuerySession>>(const run::NodeHost&, const OpenModel&)>;
  OpenSession predict = {};
  OpenSession serve = {};
  // Flags of `predict`, `eval` and `serve` that models of other engines may not have: "--net-alone". They
  // live as long as the program.
  std::vector<std::string_view> model_flags = {};
  // Both or none.
  std::vector<ImportKind> import_kinds = {};
  std::function<Result<Report>(const run::NodeHost&, const ImportFiles&)> import = {};
  // What is in a directory of imported data. Nothing: there are none of this engine.
  std::function<Result<std::optional<Report>>(const run::NodeHost&, const std::string& directory)> inspect =
      {};
  std::function<Result<Report>(const run::NodeHost&, const ExportModel&)> export_weights = {};
  // What the engine needs beside the program, as it stands on this machine.
  std::function<std::vector<EnginePart>(host::Disk&)> parts = {};
};

}  // namespace gossamer::commands
