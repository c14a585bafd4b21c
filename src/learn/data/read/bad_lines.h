// SPDX-License-Identifier: Apache-2.0
//
// What the line-based readers share about bad lines: how a parser notes one, and how the reader counts,
// completes and reports it (rules in reading.h). Private to learn/data.
//
// Thread rule: notes belong to the worker that parses their chunk; a BadLineLedger to the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.h"
#include "base/result.h"
#include "learn/data/read/reading.h"

namespace gossamer::data {

enum class LineKind : std::uint8_t { kRecord, kBlank, kBad };

// An error without `where`, at a 1-based column.
struct BadLine {
  std::size_t column = 1;
  Error error;
};

// What to do about a bad line, the `fix` of its error.
inline constexpr std::string_view kFixLine =
    "mend the line, or use --skip-bad N to leave out up to N bad lines";

// A line that is bad at that byte.
[[nodiscard]] BadLine bad_at(std::size_t offset, std::string what, std::string got, std::string expected);
// A line longer than the limit.
[[nodiscard]] BadLine line_too_long(std::size_t limit_bytes);
// "0..N-1", or "none" for a bound of 0.
[[nodiscard]] std::string range_below(std::uint64_t bound);

// The bad lines of one chunk that a parser notes before it may leave the rest unread: one more than allowed.
[[nodiscard]] constexpr std::uint64_t notes_per_chunk(const ReadOptions& options) {
  return options.skip_bad + (options.skip_bad < UINT64_MAX ? 1 : 0);
}

// The words of an error for sources of which nothing could be read.
struct NothingRead {
  std::string_view record;    // one of what there should have been, such as "session"
  std::string_view bad;       // what a line is that cannot be read: "bad line"
  std::string_view other;     // what they are when no line is bad: "blank lines"
  std::string_view expected;  // what the file should hold
};
[[nodiscard]] Error nothing_read(const std::string& source, const ReadReport& report,
                                 const NothingRead& words);

class BadLineLedger {
 public:
  BadLineLedger(const std::string& source, const ReadOptions& options, ReadReport& report)
      : source_(source), options_(options), report_(report) {}

  // Counts a bad line; gives the completed error when it is one too many.
  [[nodiscard]] Result<void> add(std::uint64_t line, const BadLine& bad);
  // Judges what a sink said about the record of a line: taken, a bad line, or an error that ends the read.
  [[nodiscard]] Result<void> judge(std::uint64_t line, const Result<void>& taken);

 private:
  const std::string& source_;
  const ReadOptions& options_;
  ReadReport& report_;
};

}  // namespace gossamer::data
