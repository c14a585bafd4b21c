// SPDX-License-Identifier: Apache-2.0
//
// Reads plain text as words: what stands between blanks (space, tab) and line ends, compared byte by byte. A
// line end ends a context: no window reaches over it. Nothing is folded or cut off. For lower case, or
// punctuation apart from words, write the text so. A byte order mark at the start is left out.
//
// - A word is bad that is no UTF-8, holds a control character or is longer than kMaxWordBytes. It is an error
//   with file, line and column, or left out where options.skip_bad allows.
// - A file without any word is an error.
//
// Lines may be of any length; memory is one buffer. Thread rule: the calling thread, which also calls the
// sink.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/function_ref.h"
#include "base/result.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/reading.h"

namespace gossamer::data {

inline constexpr std::size_t kMaxWordBytes = 1000;

// `word` gets each word, valid only during the call; an empty view stands for a line end.
using WordSink = FunctionRef<Result<void>(std::string_view word)>;

// report.records counts words; report.features and report.labels stay 0. options.compute is not used.
[[nodiscard]] Result<ReadReport> read_words(ByteSource& source, const ReadOptions& options, WordSink sink);

}  // namespace gossamer::data
