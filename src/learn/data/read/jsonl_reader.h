// SPDX-License-Identifier: Apache-2.0
//
// Reads JSON lines: one object a line, in UTF-8,
//
//   {"text": "the meat of a deer", "labels": ["venison"]}
//   {"text": "the meat of a deer", "context": "venison; game animal", "labels": ["venison"]}
//   {"features": {"deer": 0.7, "meat": 0.7}, "labels": ["venison"]}
//   {"features": [[17, 0.7], [23, 0.7]], "labels": [4, 9]}
//
// - A line has exactly one of "text" (a string) and "features". Features are an object or a list of pairs.
//   The object's keys are names, even if they look like numbers; pairs begin with indices.
// - "labels" is a list of strings (names) or of non-negative integers. It may be empty or missing; a single
//   string or integer is a list of one.
// - "context" (a string) may stand beside "text": more about the record, which only training looks at.
// - Other keys are ignored.
// - It is an error, with line and column, to give one of our keys, an index or a name twice. So are a wrong
//   type, invalid JSON or UTF-8, and a number out of range.
// - Lines that are empty or blank are ignored. A file without any record is an error.
//
// The reader makes neither features of text nor numbers of names: for the latter see RecordAssembler
// (record_assembler.h). Thread rule: the calling thread; parsing on the workers of options.compute
// (reading.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/reading.h"

namespace gossamer::data {

// One line. Views are valid only during the call of the sink.
struct JsonlRecord {
  enum class Kind {
    kText,           // `text`
    kFeatures,       // `index` and `value`, strictly increasing indices
    kNamedFeatures,  // `name` and `value`, in the order of the line, distinct names
  };
  Kind kind = Kind::kText;
  std::string_view text = {};
  std::string_view context = {};  // kText only; may be empty
  std::span<const std::uint32_t> index = {};
  std::span<const std::string_view> name = {};
  std::span<const float> value = {};

  // At most one of the two is not empty. Numbers are strictly increasing; names stand in the order of the
  // line and may repeat.
  std::span<const std::uint32_t> label_number = {};
  std::span<const std::string_view> label_name = {};
};

using JsonlSink = FunctionRef<Result<void>(const JsonlRecord& record)>;

// report.features and report.labels cover indices and numbers only, not names.
[[nodiscard]] Result<ReadReport> read_jsonl(ByteSource& source, const ReadOptions& options, JsonlSink sink);

}  // namespace gossamer::data
