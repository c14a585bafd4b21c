// SPDX-License-Identifier: Apache-2.0
//
// Turns what the user calls data.train into a dataset that the engine can sample. The content tells
// the format, and the records are imported into a cache file. For text the vocabulary is counted
// first, so the file is then read twice.
//
//   FILE      XMLC text or JSON lines, plain or packed (learn/data/read/xmlc_reader.h, jsonl_reader.h)
//   FILE      sessions of items or plain text, where data.format says so (learn/data/read/session_reader.h,
//             word_reader.h)
//   DIR       what `data import` made: DIR/records.cache, .jsonl, .sessions or .text
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands/records/feature_kind.h"
#include "engines/sparse/config/config.h"
#include "learn/data/cached_dataset.h"
#include "learn/data/line_bag.h"
#include "learn/data/read/reading.h"
#include "learn/text/featurizer.h"
#include "run/node_host.h"

namespace gossamer::commands {

enum class RecordFormat {
  kXmc,
  kJsonlNumbers,  // features by number
  kJsonlNames,    // features by name
  kJsonlText,
  kSessions,
  kText,  // plain text; a run reads it with word_data.h
  kCache,
};
[[nodiscard]] const char* name(RecordFormat format);

struct Source {
  std::string path;  // path of a file, or DIR/records.* of an imported directory
  RecordFormat format = RecordFormat::kXmc;
};

// The form in which the source writes its features. Imported records are opened and checked for that.
[[nodiscard]] Result<FeatureKind> feature_kind(const run::NodeHost& host, const Source& source);

// Finds out what lies at `path`. `wanted` overrules the content of a file. Standard input ("-") cannot be
// looked at beforehand and needs it (kUsage). kUsage when sessions or plain text are wanted and something
// else is seen, or the other way round. kFailed names a missing path.
[[nodiscard]] Result<Source> find_source(host::Disk& disk, const std::string& path,
                                         std::optional<sparse_engine::DataFormat> wanted);

struct ImportRequest {
  std::vector<Source> sources;  // of one format, not kCache
  std::string cache_path;
  sparse_engine::TextConfig text = {};
  sparse_engine::SessionsConfig sessions = {};
  std::uint64_t skip_bad = 0;
  // Asked now and then. True ends the import with the error `stopped` (kFailed).
  std::function<bool()> stop = {};
};

struct Imported {
  data::ReadReport report;
  std::optional<text::FeaturizerState> featurizer;  // for text alone
};

// Writes the cache, whole or not at all. The console shows progress and skipped lines.
[[nodiscard]] Result<Imported> import_records(const run::NodeHost& host, const ImportRequest& request);

[[nodiscard]] data::LineShape line_shape(const sparse_engine::SessionsConfig& config);
[[nodiscard]] text::FeaturizerOptions featurizer_options(const sparse_engine::TextConfig& config);

// Reads a whole test file and keeps nothing. Its mistakes are better known before training than after.
[[nodiscard]] Result<void> check_records(const run::NodeHost& host, const Source& source,
                                         std::uint64_t skip_bad);

// Describes the bad lines that were left out, with examples; empty when there were none.
[[nodiscard]] std::string describe_skipped(const data::ReadReport& report);

}  // namespace gossamer::commands
