// SPDX-License-Identifier: Apache-2.0
//
// Models that are asked: the flags that say which one is opened, and where. It is opened in this process, or
// with --nodes in several nodes. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "apps/cli/arguments.h"
#include "apps/cli/command.h"
#include "base/result.h"
#include "commands/engine/engine_entry.h"
#include "commands/engine/model_requests.h"
#include "run/node_host.h"

namespace gossamer::cli {

struct AnswerFlags {
  std::string directory;
  std::string top = "5";
  bool net_alone = false;
  std::string retrieval = "exact";
  std::string threshold;  // empty: none
  std::string nodes;      // empty: this process
  std::string join_at;    // empty: processes of this machine
};
// The range of an option that is a number: [0, most].
struct NumberRule {
  std::string_view flag;
  double most = 1;
  std::string_view expected;  // "a probability between 0 and 1"
};
// Nothing for an empty text.
[[nodiscard]] Result<std::optional<double>> parse_number(const std::string& text, const NumberRule& rule);

// Adds --nodes and --join-at.
void add_nodes(Parser& parser, AnswerFlags& flags);
// Adds DIR, --net-alone, --retrieval, --threshold and those two.
void add_answering(Parser& parser, AnswerFlags& flags);

// The model that the flags name. kUsage for flags that do not go together. `stop` is asked while it waits for
// nodes, and may be empty.
[[nodiscard]] Result<commands::OpenModel> model_to_open(Context& context, const AnswerFlags& flags,
                                                        std::size_t top, std::function<bool()> stop);
// Opens it with its engine's function for queries.
[[nodiscard]] Result<std::unique_ptr<commands::QuerySession>> open_answering(
    Context& context, const run::NodeHost& host,
    commands::EngineEntry::OpenSession commands::EngineEntry::* open, const commands::OpenModel& model);

// Refuses flags that were given, and that do nothing for models of this engine (kUsage). `flags`: those of
// the command of which some engine knows nothing. A directory that is missing is another error, of its
// opening.
[[nodiscard]] Result<void> check_model_flags(Context& context, const Parser& parser,
                                             const std::string& directory,
                                             std::initializer_list<std::string_view> flags);

// Where the model of a finished run is, and how it is asked if its engine answers queries.
[[nodiscard]] std::string model_line(const commands::EngineEntry& engine, const std::string& directory);

}  // namespace gossamer::cli
