// SPDX-License-Identifier: Apache-2.0
//
// LineChunks: cuts a byte source into chunks of whole lines, the unit of parallel parsing. parse_in_rounds()
// reads, parses and drains them with all workers.
//
// Memory: a chunk is about limits.chunk_bytes, or one line if that is longer; a line beyond limits.line_bytes
// is read past, not kept. Errors: those of the source.
// Owner and thread: one, which may change between calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "host/api/compute.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/reading.h"

namespace gossamer::data {

struct Chunk {
  // Whole lines; each ends with '\n', which is added where the file lacks the last one. Points into `buffer`.
  // A line may be longer than limits.line_bytes by less than a chunk, so parsers check too.
  std::string_view text;
  // Stands for exactly one line that was too long to be kept; `text` is empty.
  bool oversized = false;
  std::vector<char> buffer;
};

class LineChunks {
 public:
  LineChunks(ByteSource& source, const ReadLimits& limits) : source_(source), limits_(limits) {}

  // The first line without its end, for readers that look for a header; empty for an empty file or an
  // oversized line. Before the first next(). The view lives until drop_first_line() or next().
  [[nodiscard]] Result<std::string_view> first_line();
  // The next chunk then starts with the second line. Requires first_line() before.
  void drop_first_line();

  // False at the end. The chunk's buffer is used again.
  [[nodiscard]] Result<bool> next(Chunk& chunk);

  // Bytes of all chunks so far.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] const std::string& name() const { return source_.name(); }

 private:
  [[nodiscard]] Result<bool> cut(Chunk& chunk);
  [[nodiscard]] Result<void> discard_line(Chunk& chunk);

  ByteSource& source_;
  ReadLimits limits_;
  std::vector<char> carry_;  // read, but behind the last chunk's end
  Chunk first_;
  bool has_first_ = false;
  bool started_ = false;
  bool ended_ = false;
  std::uint64_t bytes_ = 0;
};

// The number of slots: the chunks that parse_in_rounds() has in flight.
[[nodiscard]] std::size_t round_slots(const host::Compute* compute);

// The functions that parse_in_rounds() calls. All chunks go through parse(chunk, slot), on any worker, each
// slot by one worker at a time. Then drain(slot) is called on the caller's thread, in the order of the
// source. Reading ahead overlaps with parsing, and so does draining if `sink` allows it. after_round() is
// called after each round. The first error ends all and is returned.
struct RoundCalls {
  FunctionRef<void(const Chunk& chunk, std::size_t slot)> parse;
  FunctionRef<Result<void>(std::size_t slot)> drain;
  FunctionRef<Result<void>()> after_round;
  SinkRuns sink = SinkRuns::kAlone;
};
[[nodiscard]] Result<void> parse_in_rounds(LineChunks& lines, host::Compute* compute,
                                           const RoundCalls& calls);

}  // namespace gossamer::data
