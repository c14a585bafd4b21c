// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/bad_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gossamer::data {

void ReadReport::add_other_key(std::string_view key) {
  if (other_keys.size() < kMaxKeys && std::ranges::find(other_keys, key) == other_keys.end())
    other_keys.emplace_back(key);
}

std::string quoted_list(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + quote(name);
  return text;
}

BadLine bad_at(std::size_t offset, std::string what, std::string got, std::string expected) {
  return {.column = offset + 1,
          .error = {.kind = ErrorKind::kBadData,
                    .what = std::move(what),
                    .got = std::move(got),
                    .expected = std::move(expected),
                    .fix = std::string(kFixLine)}};
}

BadLine line_too_long(std::size_t limit_bytes) {
  return {.column = 1,
          .error = {.kind = ErrorKind::kBadData,
                    .what = "the line is too long",
                    .got = fmt::format("more than {} bytes without a line end", limit_bytes),
                    .expected = "one record a line",
                    .fix = std::string(kFixLine)}};
}

std::string range_below(std::uint64_t bound) {
  return bound == 0 ? std::string("none") : fmt::format("0..{}", bound - 1);
}

Error nothing_read(const std::string& source, const ReadReport& report, const NothingRead& words) {
  return {.kind = ErrorKind::kBadData,
          .where = source,
          .what = fmt::format("there is no {} in the file", words.record),
          .got = report.bytes == 0 ? "an empty file"
                 : report.skipped > 0
                     ? fmt::format("{} {}{}", report.skipped, words.bad, report.skipped == 1 ? "" : "s")
                     : std::string(words.other),
          .expected = std::string(words.expected),
          .fix = "check that this is the right file"};
}

Result<void> BadLineLedger::add(std::uint64_t line, const BadLine& bad) {
  Error error = bad.error;
  error.where = fmt::format("{}:{}:{}", source_, line, bad.column);
  const std::uint64_t before = options_.skipped_before + report_.skipped;
  if (before < options_.skip_bad) {
    ++report_.skipped;
    if (report_.examples.size() < ReadReport::kMaxExamples) report_.examples.push_back(std::move(error));
    return {};
  }
  if (options_.skip_bad > 0) {
    error.fix =
        fmt::format("bad line number {}, and --skip-bad {} allows no more: mend the lines or raise it",
                    before + 1, options_.skip_bad);
  }
  return error;
}

Result<void> BadLineLedger::judge(std::uint64_t line, const Result<void>& taken) {
  if (taken.ok()) {
    ++report_.records;
    return {};
  }
  const Error& error = taken.error();
  if (error.kind != ErrorKind::kBadData || !error.where.empty()) return taken;
  BadLine bad{.error = error};
  if (bad.error.fix.empty()) bad.error.fix = kFixLine;
  return add(line, bad);
}

}  // namespace gossamer::data
