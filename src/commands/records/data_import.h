// SPDX-License-Identifier: Apache-2.0
//
// data import puts the records of the user's files into a directory of their own, checked once and quick to
// open many times. data inspect looks into such a directory.
//
//   DIR/records.cache     numbered or named features (docs/protocols/dataset-cache.md)
//   DIR/records.jsonl     text, every line good; each run makes features of it with its own text.* keys
//   DIR/records.text      plain text, every word good; each run makes numbers of it with its word2vec.* keys
//   DIR/records.sessions  sessions, every line good; each run makes records of them with its sessions.* keys
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "learn/data/read/reading.h"
#include "learn/data/record_format.h"
#include "run/node_host.h"

namespace gossamer::commands {

struct DataImportRequest {
  data::RecordFormat kind = data::RecordFormat::kXmc;  // one of data::kRecordFormatWords
  std::vector<std::string> sources;                    // at least one
  std::string directory;                               // missing or empty (kUsage)
  std::uint64_t skip_bad = 0;
  bool as_is = false;  // sessions and plain text, whatever else they look like
};
struct DataImportResult {
  data::ReadReport report;
  std::string path;  // path of the records
  data::RecordFormat format = data::RecordFormat::kXmc;
};
// On an error the directory is as before.
[[nodiscard]] Result<DataImportResult> import_data(const run::NodeHost& host,
                                                   const DataImportRequest& request);

struct DataLook {
  std::uint64_t records = 0;
  std::uint32_t features = 0;  // 0 for text; for sessions the items, for plain text the words
  std::uint32_t labels = 0;
  std::uint64_t feature_entries = 0;
  std::uint64_t label_entries = 0;
  std::uint64_t records_without_labels = 0;
  std::uint64_t labels_unused = 0;
  std::uint64_t labels_used_once = 0;
  std::vector<std::pair<std::string, std::uint64_t>> frequent_labels;  // name or number, records; at most 10
  std::vector<std::string> examples;                                   // at most 3
};
// Looks at an imported directory, or at the imported data of a run (DIR/cache).
// kFailed when there is neither.
[[nodiscard]] Result<DataLook> inspect_data(const run::NodeHost& host, const std::string& directory);

// How many records have a label; no entry for none. A number of a label may be any below 2^32 - 1, so nothing
// here is as long as the numbers are high.
using LabelUse = std::unordered_map<std::uint32_t, std::uint64_t>;
// Adds the labels of one record to the counts of a look.
void count_labels(std::span<const std::uint32_t> labels, LabelUse& counts, DataLook& look);
// Puts the most frequent labels of the counts into the look, with their names. Requires look.labels.
void rank_labels(const LabelUse& counts, FunctionRef<std::string(std::uint32_t)> label_name, DataLook& look);

// Checks text records and writes those of the request's sources to `path`, which appears whole or not at all.
[[nodiscard]] Result<data::ReadReport> copy_text(const run::NodeHost& host, const DataImportRequest& request,
                                                 const std::string& path);
// Look at such records, and at those of a cache.
[[nodiscard]] Result<DataLook> look_at_text(const run::NodeHost& host, const std::string& path);
[[nodiscard]] Result<DataLook> look_at_cache(const run::NodeHost& host, const std::string& path);

[[nodiscard]] std::string to_text(const DataLook& look);
[[nodiscard]] std::string to_json(const DataLook& look);

}  // namespace gossamer::commands
