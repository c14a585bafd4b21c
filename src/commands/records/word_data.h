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

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands/records/data_import.h"
#include "engines/sparse/config/config.h"
#include "learn/data/read/reading.h"
#include "learn/data/token_text.h"
#include "run/node_host.h"

namespace gossamer::commands {

// Checks the words of the request's sources and writes them to `path`, which appears whole or not at all.
[[nodiscard]] Result<data::ReadReport> copy_words(const run::NodeHost& host, const DataImportRequest& request,
                                                  const std::string& path);

// Looks at the words as features and labels, with a record for each word of the text.
[[nodiscard]] Result<DataLook> look_at_words(const run::NodeHost& host, const std::string& path);

struct WordImport {
  std::string path;  // path of the text; "-" is standard input
  sparse_engine::Word2vecConfig words = {};
  std::uint64_t skip_bad = 0;
  // Asked now and then. True ends the import with the error `stopped` (kFailed).
  std::function<bool()> stop = {};
};
// Imports a text. The console shows progress and what was left out. kBadData when the text gives no window.
[[nodiscard]] Result<data::TokenText> import_words(const run::NodeHost& host, const WordImport& request);

// Write and read the cache of a run. Reading gives nothing when there is no whole one.
[[nodiscard]] Result<void> write_word_cache(host::Disk& disk, const std::string& path,
                                            const data::TokenText& text);
[[nodiscard]] Result<std::optional<data::TokenText>> read_word_cache(host::Disk& disk,
                                                                     const std::string& path);

}  // namespace gossamer::commands
