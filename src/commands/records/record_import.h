// SPDX-License-Identifier: Apache-2.0
//
// import_records() turns a user's files into a cache that the engine can sample. Text is read twice, as its
// vocabulary is counted first.
//
//   train.cache       records of all formats but plain text (docs/protocols/dataset-cache.md)
//   vocabulary.json   beside it, for records of text (vocabulary_file.h)
//   train.words       a plain text as numbers of its words (word_data.h)
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands/records/training_data.h"
#include "engines/sparse/config/config.h"
#include "learn/data/line_bag.h"
#include "learn/data/read/import.h"
#include "learn/data/read/reading.h"
#include "learn/text/featurizer.h"
#include "run/node_host.h"
#include "run/progress.h"

namespace gossamer::commands {

struct ImportRequest {
  std::vector<Source> sources;  // of one format, not kCache; of plain text one
  std::string cache_path;
  sparse_engine::TextConfig text = {};
  sparse_engine::SessionsConfig sessions = {};
  sparse_engine::Word2vecConfig words = {};
  std::uint64_t skip_bad = 0;
  // Asked now and then. True ends the import with the error `stopped` (kFailed).
  std::function<bool()> stop = {};
};

// Writes the cache, whole or not at all. The console shows progress and skipped lines.
[[nodiscard]] Result<data::ReadReport> import_records(const run::NodeHost& host,
                                                      const ImportRequest& request);

// What the row of a format gets (record_formats.h).
struct ImportJob {
  const run::NodeHost& host;
  const ImportRequest& request;
  const data::ImportOptions& options;
  run::Progress& progress;                       // of the options
  const text::Featurizer* featurizer = nullptr;  // for records whose words were counted
};

[[nodiscard]] data::LineShape line_shape(const sparse_engine::SessionsConfig& config);

// Describes the bad lines that were left out, with examples; empty when there were none.
[[nodiscard]] std::string describe_skipped(const data::ReadReport& report);

}  // namespace gossamer::commands
