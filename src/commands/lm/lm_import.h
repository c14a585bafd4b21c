// SPDX-License-Identifier: Apache-2.0
//
// gossamer data import lm: a user's texts as DIR/train.tokens, which data.train and data.test take, and
// `eval`; beside it DIR/tokenizer.model, where the tokenizer is not bytes. Thread rule: the thread that owns
// the Compute.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "commands/engine/model_requests.h"
#include "commands/lm/lm_modules.h"
#include "run/node_host.h"

namespace gossamer::commands {

inline constexpr std::string_view kLmKind = "lm";

// JSON: {"documents","tokens","bytes","files","empty","hidden","skipped","skipped_examples","path"}. On an
// error the directory is as before. Errors: those of OutputDirectory and import_text().
[[nodiscard]] Result<Report> import_lm(const run::NodeHost& host, const OpenPieces& open_pieces,
                                       const ImportFiles& wanted);

// What is in the token file of such a directory, or of a run. Nothing: there is none. JSON:
// {"documents","tokens","bytes","vocabulary","tokenizer","begins"}, with the first bytes of the text in
// "begins".
[[nodiscard]] Result<std::optional<Report>> inspect_lm(const run::NodeHost& host,
                                                       const OpenPieces& open_pieces,
                                                       const std::string& directory);

}  // namespace gossamer::commands
