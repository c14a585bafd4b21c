// SPDX-License-Identifier: Apache-2.0
//
// A command of the program: its name, and what it does with its arguments. To add one, write a file with a
// `Command NAME_command()` and add it to all_commands() (CONTRIBUTING.md has the recipe).
//
// Thread rule: one thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/console.h"
#include "base/result.h"
#include "commands/engine/engine_list.h"
#include "host/api/clock.h"
#include "host/api/disk.h"

namespace gossamer::cli {

// The objects that a command may use. They live as long as the program.
struct Context {
  const commands::EngineList& engines;
  host::Disk& disk;
  const host::Clock& clock;
  StderrConsole& console;
  Output& output;
};

// An exit status: 0, or 129, 130 or 143 after a clean stop. Failures are Errors, and their kind is the
// status.
using ExitStatus = int;

struct Command {
  std::string_view name;  // "train", "data import"
  std::string_view help;  // one line
  std::string_view example;
  Result<ExitStatus> (*run)(Context& context, const Command& self, std::span<const std::string> arguments);
};

// All commands, in the order of the general help.
[[nodiscard]] std::vector<Command> all_commands();

[[nodiscard]] Command train_command();
[[nodiscard]] Command eval_command();
[[nodiscard]] Command predict_command();
[[nodiscard]] Command serve_command();
[[nodiscard]] Command export_command();
[[nodiscard]] Command data_import_command();
[[nodiscard]] Command data_inspect_command();
[[nodiscard]] Command bench_kernels_command();
[[nodiscard]] Command bench_links_command();
[[nodiscard]] Command bench_sparse_search_command();
[[nodiscard]] Command bench_sparse_step_command();
[[nodiscard]] Command bench_stage_command();
[[nodiscard]] Command coordinator_command();
[[nodiscard]] Command join_command();
[[nodiscard]] Command token_create_command();
[[nodiscard]] Command token_list_command();
[[nodiscard]] Command token_revoke_command();
[[nodiscard]] Command node_expel_command();
[[nodiscard]] Command status_command();
[[nodiscard]] Command stop_command();
[[nodiscard]] Command simulate_command();
[[nodiscard]] Command doctor_command();
[[nodiscard]] Command version_command();

}  // namespace gossamer::cli
