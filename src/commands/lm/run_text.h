// SPDX-License-Identifier: Apache-2.0
//
// The texts of a run of the engine lm as token files: taken where the user has them, kept by an earlier part
// of the run, or imported. A damaged file of the run is made anew where the user's text is still there; with
// a text that could be another one this needs the run's checksum (data_sum.h).
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "host/api/disk.h"
#include "learn/tokens/token_file.h"
#include "learn/tokens/tokenizer.h"
#include "run/node_host.h"
#include "run/run_directory.h"

namespace gossamer::commands {

struct RunTexts {
  const run::NodeHost& host;
  const run::RunPaths& paths;
  const tokens::Tokenizer& tokenizer;
  std::uint64_t skip_bad = 0;
  std::string resume_command;       // for messages
  std::function<bool()> stop = {};  // as in TextImport
};

// Tokenizer::digest() of the tokenizer that has made the run's tokens, or those that `source` names. Nothing:
// they are not there yet, or damaged, or not those that the run has begun with.
[[nodiscard]] Result<std::optional<std::uint64_t>> digest_of_tokens(host::Disk& disk,
                                                                    const run::RunPaths& paths,
                                                                    const std::string& source);

[[nodiscard]] Error missing_text();
// The text of data.train. kUsage without one; kBadData for another text than the run began with.
[[nodiscard]] Result<std::unique_ptr<tokens::TokenFile>> training_text(const RunTexts& texts,
                                                                       const std::string& source);
// The text of data.test. Nothing for an empty source.
[[nodiscard]] Result<std::unique_ptr<tokens::TokenFile>> test_text(const RunTexts& texts,
                                                                   const std::string& source);

}  // namespace gossamer::commands
