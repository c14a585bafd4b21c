// SPDX-License-Identifier: Apache-2.0
//
// From a user's files to a dataset cache in one call. The cache appears under its name whole or not at all:
// on any error what was there before stays. Several sources are read one after another, as one file would be;
// each may have its own header. --skip-bad counts over all of them.
//
// learn/text/text_import.h imports records of text likewise. Thread rule: the calling thread (reading.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "host/api/disk.h"
#include "learn/data/cache_writer.h"
#include "learn/data/line_bag.h"
#include "learn/data/name_table.h"
#include "learn/data/read/reading.h"
#include "learn/data/read/record_assembler.h"

namespace gossamer::data {

struct ImportOptions {
  // Files, or "-" for standard input. At least one.
  std::span<const std::string> sources;
  std::string cache_path;
  ReadOptions read = {};
  CacheWriterOptions cache = {};
  // Opens a source; empty: open_bytes().
  std::function<Result<std::unique_ptr<ByteSource>>(const std::string& path)> open = {};
};

// Imports XMLC text (xmlc_reader.h). The shape is the largest of the headers', or of what was seen.
[[nodiscard]] Result<ReadReport> import_xmlc(host::Disk& disk, const ImportOptions& options);

// Imports JSON lines with "features" (jsonl_reader.h). `assembler` brings the names known so far, if any, and
// has all names afterwards; they are written to the cache.
[[nodiscard]] Result<ReadReport> import_jsonl(host::Disk& disk, const ImportOptions& options,
                                              RecordAssembler& assembler);

// Imports sessions (session_reader.h). Every position from the second on becomes a record, or the target
// alone where there is one. Its features are the bag (line_bag.h) of the items before, its label is the item
// itself. An item has one number and name, as feature and as label. report.records counts these records; a
// session of one item makes none.
[[nodiscard]] Result<ReadReport> import_sessions(host::Disk& disk, const ImportOptions& options,
                                                 const LineShape& shape);

// Reads the sources one after another with `read_one(source, options)`, a reader with its sink, and sums up
// the reports.
[[nodiscard]] Result<ReadReport> read_sources(
    host::Disk& disk, const ImportOptions& options,
    FunctionRef<Result<ReadReport>(ByteSource& source, const ReadOptions& options)> read_one);

}  // namespace gossamer::data
