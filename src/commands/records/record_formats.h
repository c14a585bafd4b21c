// SPDX-License-Identifier: Apache-2.0
//
// One row for each format of records, with all that is done with it. A new format is a value of
// data::RecordFormat and a row here.
//
// Thread rule: the table is immutable; its functions have the rules of their headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "commands/records/feature_kind.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/reading.h"
#include "learn/data/record_format.h"
#include "learn/text/featurizer.h"
#include "run/node_host.h"

namespace gossamer::commands {

struct DataImportRequest;
struct DataLook;
struct ImportJob;
class QueryBlock;
class QueryParser;
class TestBlocks;

struct RecordRow {
  data::RecordFormat format;
  const char* name;  // "XMLC text"
  // How features are written. Nothing: imported records know it themselves.
  std::optional<FeatureKind> features;
  // Where `data import` puts the records in its directory, and a run its own in DIR/cache.
  const char* imported = "records.cache";
  const char* cached = "train.cache";
  // What an import tells of {0} records, {1} features and {2} labels, each with its noun; {3} are labels,
  // too.
  const char* told = "{0}, {1}, {2}";
  const char* record = "record";  // progress counts these, too
  const char* label = "label";
  // For a format of lines of names, which the content does not tell: what a user should give.
  const char* lines = nullptr;
  bool jsonl = false;  // each line says itself how its features are written
  // Reads records and keeps nothing. Null where they were read before.
  Result<data::ReadReport> (*read)(data::ByteSource& source, const data::ReadOptions& options);
  // For records of text: counts their vocabulary, before they are read once more.
  Result<text::FeaturizerState> (*count)(const ImportJob& job) = nullptr;
  // Puts records into a cache (record_import.h).
  Result<data::ReadReport> (*import)(const ImportJob& job);
  // For `data import`, where each run imports what it wrote: copies good records. Null: it makes a cache.
  Result<data::ReadReport> (*copy)(const run::NodeHost& host, const DataImportRequest& request,
                                   const std::string& path) = nullptr;
  // Bytes that `data import` writes for the records of a sample. Bad lines are the import's to complain
  // about.
  std::uint64_t (*estimate)(std::string_view sample);
  // What `data inspect` tells of records that `data import` has written (data_import.h).
  Result<DataLook> (*look)(const run::NodeHost& host, const std::string& path);
  // Reads test records (evaluation_set.h). Null for imported ones, which are no byte stream.
  Result<data::ReadReport> (*test)(data::ByteSource& source, const data::ReadOptions& options,
                                   TestBlocks& blocks);
  // Reads a line of a user that is no JSON, as a query of a model with such features.
  Result<void> (QueryParser::*query)(std::string_view line, const std::string& place, QueryBlock& block);
};

[[nodiscard]] const RecordRow& row_of(data::RecordFormat format);
// The first row with these features.
[[nodiscard]] const RecordRow& row_of(FeatureKind features);

[[nodiscard]] inline const char* name(data::RecordFormat format) { return row_of(format).name; }

}  // namespace gossamer::commands
