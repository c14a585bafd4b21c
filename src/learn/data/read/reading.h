// SPDX-License-Identifier: Apache-2.0
//
// The options, limits, report and rules for bad lines that all line-based readers share (xmlc_reader.h,
// jsonl_reader.h, session_reader.h).
//
// Readers stream. They cut the source into chunks at line ends, parse chunks in parallel, and hand records to
// a sink in the order of the file. So the result does not depend on the number of workers or the chunk size.
// The sink runs on the caller's thread; it says itself whether it may use the Compute (SinkRuns).
//
// Bad lines: a line that cannot be read is a kBadData error with `where` = FILE:LINE:COLUMN (1-based, columns
// count bytes). Up to `skip_bad` of them are left out and reported; the next one fails the whole read. A sink
// that finds a record unfit returns kBadData with an empty `where`: it counts as a bad line too. Every other
// error of a sink, and a damaged archive, ends the read at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "host/api/compute.h"
#include "learn/data/rows.h"

namespace gossamer::data {

struct ReadLimits {
  std::size_t line_bytes = std::size_t{64} << 20;  // a longer line is a bad line; it is never held whole
  std::size_t chunk_bytes = std::size_t{1} << 20;  // unit of parallel work; at least 1
  std::uint32_t features = 0xFFFFFFFFU;            // every feature index must be below
  std::uint32_t labels = 0xFFFFFFFFU;              // every label number must be below
};

struct ReadProgress {
  std::uint64_t bytes = 0;  // of text, unpacked, over all sources so far
  std::uint64_t records = 0;
};

// When records go to the sink.
enum class SinkRuns {
  kAlone,          // outside Compute::run: the sink may use the Compute
  kBesideParsing,  // while other workers parse what follows, which is faster: the sink must not use it
};

struct ReadOptions {
  ReadLimits limits = {};
  std::uint64_t skip_bad = 0;
  std::uint64_t skipped_before = 0;  // in sources read before this one; counts towards skip_bad
  // Workers for parsing; without one the caller parses alone. Must outlive the read.
  host::Compute* compute = nullptr;
  SinkRuns sink = SinkRuns::kAlone;
  // Called on the caller's thread after every round of chunks. An error ends the read and is returned.
  std::function<Result<void>(const ReadProgress&)> progress = {};
};

struct ReadReport {
  std::uint64_t records = 0;  // handed to the sink and taken by it
  std::uint64_t skipped = 0;  // bad lines left out
  std::uint64_t bytes = 0;    // of text, unpacked
  // One more than the largest index seen, or what the header says.
  std::uint32_t features = 0;
  std::uint32_t labels = 0;
  std::uint64_t labelled = 0;     // of the records of XMLC text and JSON lines, those with a label
  std::uint64_t labels_keys = 0;  // of the records of JSON lines, those with the key "labels", empty or not
  // The first kMaxExamples bad lines, in the order of the file.
  std::vector<Error> examples = {};
  // The first kMaxKeys keys of JSON lines that no reader looks at. They may be misnamed.
  std::vector<std::string> other_keys = {};

  static constexpr std::size_t kMaxExamples = 5;
  static constexpr std::size_t kMaxKeys = 8;

  // Adds a key unless it is there or there are enough.
  void add_other_key(std::string_view key);
};

// The names in quotes, with commas between.
[[nodiscard]] std::string quoted_list(std::span<const std::string> names);

// Takes one record, which is valid only during the call.
using RecordSink = FunctionRef<Result<void>(const Record& record)>;

}  // namespace gossamer::data
