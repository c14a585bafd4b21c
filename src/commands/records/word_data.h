// SPDX-License-Identifier: Apache-2.0
//
// Plain text in `data import`, `data inspect` and runs of word2vec.
//
//   DIR/records.text        of an import: every word good, one blank between words, lines as they were
//   DIR/cache/train.words   of a run: the text as numbers (learn/data/token_text.h), a safetensors file of
//                           token, count, words.bytes and words.begin
//   train.words.json        beside it, written after it: its size and checksum
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "commands/records/data_import.h"
#include "commands/records/record_import.h"
#include "learn/data/read/reading.h"
#include "learn/data/token_text.h"
#include "run/node_host.h"

namespace gossamer::commands {

// Checks the words of the request's sources and writes them to `path`, which appears whole or not at all.
[[nodiscard]] Result<data::ReadReport> copy_words(const run::NodeHost& host, const DataImportRequest& request,
                                                  const std::string& path);

// Looks at the words as features and labels, with a record for each word of the text.
[[nodiscard]] Result<DataLook> look_at_words(const run::NodeHost& host, const std::string& path);

// Imports the text of the request's one source into a cache. kBadData when the text gives no window.
[[nodiscard]] Result<data::ReadReport> import_words(const ImportJob& job);

// Write and read the cache of a run. Reading gives nothing when there is no whole one.
[[nodiscard]] Result<void> write_word_cache(host::Disk& disk, const std::string& path,
                                            const data::TokenText& text);
[[nodiscard]] Result<std::optional<data::TokenText>> read_word_cache(host::Disk& disk,
                                                                     const std::string& path);

}  // namespace gossamer::commands
