// SPDX-License-Identifier: Apache-2.0
//
// A training run that a user asks for, without the engine that does it.
//
// Thread rule: plain values.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "base/time.h"
#include "host/api/endpoint.h"
#include "node/coordinator_options.h"
#include "run/run_directory.h"
#include "settings/key_table.h"

namespace gossamer::commands {

// RunRequest::model_patience of a run that people wait for.
inline constexpr Duration kModelPatience{30'000'000'000};

// Processes of this machine that do the steps.
struct OwnNodes {
  std::size_t nodes = 1;         // 1..kMostOwnNodes
  std::size_t threads_each = 1;  // threads of a node
  std::string program = {};      // path of the program's file
};
inline constexpr std::size_t kMostOwnNodes = 64;

// Members do the steps, and this process leads them.
struct LeadOptions {
  // Without what follows from the run: configuration, tracks, companion. For own members `program` is enough.
  node::CoordinatorOptions lead;
  // Called when it leads members from anywhere, at that address. `token` is for a new run, else empty.
  std::function<Result<void>(const host::Endpoint& at, const std::string& token)> leads = {};
  std::optional<OwnNodes> own = {};  // nothing: members come from anywhere
};

struct RunRequest {
  std::string directory;
  run::Continue resume = run::Continue::kNo;
  run::RunEngine engine = {};  // as EngineList::in_runs() gives it
  // The config that preset, file and overrides make, and the settings in it that the user wrote.
  settings::Values config;
  std::vector<settings::KeySetting> settings;
  // Asked after each step and between the parts of the work.
  FunctionRef<bool()> stop_requested;
  std::optional<LeadOptions> lead = {};  // nothing: this process does the steps
  // The command that goes on with the run after it was stopped, for people.
  std::string resume_command = "gossamer train --resume";
  // How long a model whose files cannot be written is tried again: there may be room soon.
  Duration model_patience = {};
};

struct TrainResult {
  bool stopped = false;      // by stop_requested; the summary is empty then
  std::string summary;       // the JSON object of summary.json, without a newline
  std::string figures = {};  // how good the model is, for people; empty where nothing was measured
};

}  // namespace gossamer::commands
