// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/word_reader.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "learn/data/read/bad_lines.h"
#include "learn/data/read/utf8_names.h"

namespace gossamer::data {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

bool ends_word(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Cuts a stream of bytes into words and line ends, and keeps line and column for messages.
class WordCutter {
 public:
  WordCutter(const std::string& file, const ReadOptions& options, ReadReport& report, const WordSink& sink)
      : ledger_(file, options, report), sink_(sink) {}

  // `text` continues where the last one ended.
  Result<void> cut(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
      const auto* const begin = text.data() + at;
      const auto length =
          static_cast<std::size_t>(std::find_if(begin, text.data() + text.size(), ends_word) - begin);
      const std::string_view piece = text.substr(at, length);
      at += length;
      const bool ended = at < text.size();
      if (!ended || !part_.empty()) {
        // Keeps only so much of a word that it is seen to be too long.
        part_.append(piece.substr(
            0, std::min(piece.size(), kMaxWordBytes + 1 - std::min(part_.size(), kMaxWordBytes + 1))));
        part_bytes_ += piece.size();
      }
      if (!ended) return {};
      if (auto done = part_.empty() ? word(piece, piece.size()) : word(part_, part_bytes_); !done.ok())
        return done;
      part_.clear();
      part_bytes_ = 0;
      if (auto done = separator(text[at++]); !done.ok()) return done;
    }
    return {};
  }

  Result<void> finish() { return part_.empty() ? Result<void>() : word(part_, part_bytes_); }

 private:
  Result<void> word(std::string_view text, std::uint64_t bytes) {
    if (bytes == 0) return {};
    const std::uint64_t column = std::exchange(column_, column_ + bytes);
    if (bytes > kMaxWordBytes) {
      return ledger_.add(line_, {.column = column,
                                 .error = {.kind = ErrorKind::kBadData,
                                           .what = "the word is too long",
                                           .got = quote(text),
                                           .expected = "at most " + std::to_string(kMaxWordBytes) + " bytes",
                                           .fix = std::string(kFixLine)}});
    }
    if (auto bad = find_bad_byte(text)) {
      bad->column += column - 1;
      return ledger_.add(line_, *bad);
    }
    return ledger_.judge(line_, sink_(text));
  }

  Result<void> separator(char c) {
    ++column_;
    if (c != '\n') return {};
    ++line_;
    column_ = 1;
    return sink_({});
  }

  BadLineLedger ledger_;
  const WordSink& sink_;
  std::string part_;  // of a word that the last buffer cut
  std::uint64_t part_bytes_ = 0;
  std::uint64_t line_ = 1;
  std::uint64_t column_ = 1;
};

}  // namespace

Result<ReadReport> read_words(ByteSource& source, const ReadOptions& options, WordSink sink) {
  ReadReport report;
  WordCutter cutter(source.name(), options, report, sink);
  std::vector<char> buffer(std::clamp(options.limits.chunk_bytes, kByteOrderMark.size(), kBufferBytes));
  for (bool more = true; more;) {
    const auto got = source.read(std::as_writable_bytes(std::span(buffer)));
    if (!got.ok()) return got.error();
    more = *got == buffer.size();
    std::string_view text(buffer.data(), *got);
    if (report.bytes == 0 && text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    report.bytes += *got;
    if (auto done = cutter.cut(text); !done.ok()) return done.error();
    if (!options.progress) continue;
    if (auto done = options.progress({.bytes = report.bytes, .records = report.records}); !done.ok()) {
      return done.error();
    }
  }
  if (auto done = cutter.finish(); !done.ok()) return done.error();
  if (report.records > 0) return report;
  return nothing_read(
      source.name(), report,
      {.record = "word", .bad = "bad word", .other = "blanks", .expected = "text of words between blanks"});
}

}  // namespace gossamer::data
