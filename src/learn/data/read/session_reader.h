// SPDX-License-Identifier: Apache-2.0
//
// Reads sessions: one a line, names of items in the order of their use, separated by blanks,
//
//   shoes socks shoes laces
//   shoes socks<TAB>laces
//
// The first form asks, at every position, for the item that follows. The second, for tests, asks only for the
// item behind the tab, the target, which follows all others.
//
// - A name is any UTF-8 without blanks and control characters; names are compared byte by byte.
// - A tab with nothing before it, or with anything but one item behind it, is an error with line and column.
//   So are control characters and bytes that are no UTF-8.
// - Lines that are empty or blank are ignored. A file without any session is an error.
//
// Sessions to records: line_bag.h. Thread rule: the calling thread; parsing on the workers of options.compute
// (reading.h).
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/reading.h"

namespace gossamer::data {

// One line. Views are valid only during the call of the sink.
struct Session {
  std::span<const std::string_view> items = {};  // at least one, the oldest first
  std::string_view target = {};                  // empty: none given
};

using SessionSink = FunctionRef<Result<void>(const Session& session)>;

// report.records counts sessions; report.features and report.labels stay 0.
[[nodiscard]] Result<ReadReport> read_sessions(ByteSource& source, const ReadOptions& options,
                                               SessionSink sink);

// Splits a line without a target into its items, as a query is written. kBadData without `where`; `column`,
// if given, gets the 1-based place of the mistake.
[[nodiscard]] Result<void> split_session(std::string_view line, std::vector<std::string_view>& items,
                                         std::size_t* column = nullptr);

}  // namespace gossamer::data
