// SPDX-License-Identifier: Apache-2.0
//
// A user's text as a token file: read and written with progress for people, or found ready.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "learn/tokens/token_file.h"
#include "learn/tokens/token_import.h"
#include "learn/tokens/tokenizer.h"
#include "run/node_host.h"

namespace gossamer::commands {

// The token file that a user's word names: FILE.tokens, or train.tokens in a directory of `data import lm`.
// Nothing: the word names a text. Errors: those of the disk.
[[nodiscard]] Result<std::optional<std::string>> named_token_file(host::Disk& disk, const std::string& word);

struct TextImport {
  std::vector<std::string> sources;  // as read_documents() takes them, at least one
  std::string path;                  // of the new token file
  std::uint64_t skip_bad = 0;
  std::function<bool()> stop = {};  // asked now and then, true: kFailed, "stopped". May be empty
};
// Shows how far it is, and warns of what was bad and left out. Errors: those of import_tokens().
[[nodiscard]] Result<tokens::TokenReport> import_text(const run::NodeHost& host,
                                                      const tokens::Tokenizer& tokenizer,
                                                      const TextImport& wanted);

// "12,345 tokens of 3 documents, 1.00 bytes a token".
[[nodiscard]] std::string text_line(const tokens::TokenFile& file);
// The same with what was left out: "...; left out: 1 empty document, 2 hidden files".
[[nodiscard]] std::string text_line(const tokens::TokenReport& report);

// Opens a token file and checks that it is the tokenizer's. kBadData for tokens of another.
[[nodiscard]] Result<std::unique_ptr<tokens::TokenFile>> open_tokens(const run::NodeHost& host,
                                                                     const std::string& path,
                                                                     const tokens::Tokenizer& tokenizer);

}  // namespace gossamer::commands
