// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/session_reader.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "learn/data/read/bad_lines.h"
#include "learn/data/read/line_chunks.h"
#include "learn/data/read/utf8_names.h"

namespace gossamer::data {
namespace {

constexpr std::string_view kExpected = "ITEM ITEM ..., or ITEM ITEM ...<TAB>ITEM";

// Appends the names between the blanks of `text`.
void split(std::string_view text, std::vector<std::string_view>& items) {
  for (std::size_t at = text.find_first_not_of(' '); at != std::string_view::npos;
       at = text.find_first_not_of(' ', at)) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    items.push_back(text.substr(at, end - at));
    at = end;
  }
}

// The sessions of one chunk; names are views into it.
struct SessionLines {
  std::vector<LineKind> kind;
  std::vector<BadLine> bad;
  std::vector<std::string_view> item;
  std::vector<std::size_t> end;  // of each session's items
  std::vector<std::string_view> target;

  void clear() {
    kind.clear();
    bad.clear();
    item.clear();
    end.clear();
    target.clear();
  }
  [[nodiscard]] Session session(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : end[i - 1];
    return {.items = std::span(item).subspan(begin, end[i] - begin), .target = target[i]};
  }
};

// Parses one line that is not blank; `lines` takes its session, or the mistake is returned.
std::optional<BadLine> parse_line(std::string_view line, SessionLines& lines) {
  if (auto bad = find_bad_byte(line)) return bad;
  const std::size_t tab = line.find('\t');
  const std::size_t first = lines.item.size();
  split(line.substr(0, tab), lines.item);
  std::string_view target;
  if (tab != std::string_view::npos) {
    if (lines.item.size() == first) {
      return bad_at(0, "there is no item before the tab", quote(line), std::string(kExpected));
    }
    const std::size_t behind = lines.item.size();
    split(line.substr(tab + 1), lines.item);
    const std::size_t targets = lines.item.size() - behind;
    if (targets != 1 || line.find('\t', tab + 1) != std::string_view::npos) {
      lines.item.resize(first);
      return bad_at(tab + 1, "there is not one item behind the tab", quote(line.substr(tab + 1)),
                    std::string(kExpected));
    }
    target = lines.item.back();
    lines.item.pop_back();
  }
  lines.end.push_back(lines.item.size());
  lines.target.push_back(target);
  return std::nullopt;
}

struct ParseLimits {
  std::size_t line_bytes;
  std::uint64_t stop_after_bad;
};

void parse_chunk(const Chunk& chunk, const ParseLimits& limits, SessionLines& lines) {
  lines.clear();
  const auto note = [&lines](BadLine bad) {
    lines.kind.push_back(LineKind::kBad);
    lines.bad.push_back(std::move(bad));
  };
  if (chunk.oversized) return note(line_too_long(limits.line_bytes));
  std::string_view text = chunk.text;
  while (!text.empty() && lines.bad.size() < limits.stop_after_bad) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) {
      lines.kind.push_back(LineKind::kBlank);
    } else if (line.size() > limits.line_bytes) {
      note(line_too_long(limits.line_bytes));
    } else if (auto bad = parse_line(line, lines)) {
      note(*std::move(bad));
    } else {
      lines.kind.push_back(LineKind::kRecord);
    }
  }
}

// Takes the parsed chunks in order: numbers the lines, decides about bad ones, feeds the sink.
class SessionDrain {
 public:
  SessionDrain(const std::string& file, const ReadOptions& options, ReadReport& report)
      : ledger_(file, options, report) {}

  [[nodiscard]] Result<void> drain(const SessionLines& lines, const SessionSink& sink) {
    std::size_t session = 0;
    std::size_t bad = 0;
    for (const LineKind kind : lines.kind) {
      ++line_;
      if (kind == LineKind::kBlank) continue;
      const Result<void> done = kind == LineKind::kBad ? ledger_.add(line_, lines.bad[bad++])
                                                       : ledger_.judge(line_, sink(lines.session(session++)));
      if (!done.ok()) return done;
    }
    return {};
  }

 private:
  BadLineLedger ledger_;
  std::uint64_t line_ = 0;
};

}  // namespace

Result<ReadReport> read_sessions(ByteSource& source, const ReadOptions& options, SessionSink sink) {
  LineChunks chunks(source, options.limits);
  const ParseLimits limits{.line_bytes = options.limits.line_bytes,
                           .stop_after_bad = notes_per_chunk(options)};
  std::vector<SessionLines> slots(round_slots(options.compute));
  ReadReport report;
  SessionDrain drain(source.name(), options, report);
  const auto parse = [&](const Chunk& chunk, std::size_t slot) { parse_chunk(chunk, limits, slots[slot]); };
  const auto drain_slot = [&](std::size_t slot) { return drain.drain(slots[slot], sink); };
  const auto after_round = [&]() -> Result<void> {
    if (!options.progress) return {};
    return options.progress({.bytes = chunks.bytes(), .records = report.records});
  };
  const Result<void> read = parse_in_rounds(
      chunks, options.compute, {.parse = parse, .drain = drain_slot, .after_round = after_round});
  if (!read.ok()) return read.error();
  report.bytes = chunks.bytes();
  if (report.records > 0) return report;
  return nothing_read(source.name(), report,
                      {.record = "session",
                       .bad = "bad line",
                       .other = "blank lines",
                       .expected = "lines of " + std::string(kExpected)});
}

Result<void> split_session(std::string_view line, std::vector<std::string_view>& items, std::size_t* column) {
  items.clear();
  auto bad = find_bad_byte(line);
  if (const std::size_t tab = line.find('\t'); !bad && tab != std::string_view::npos) {
    bad = bad_at(tab, "a query has no target", quote(line.substr(tab)), "ITEM ITEM ...");
  }
  if (bad) {
    if (column != nullptr) *column = bad->column;
    bad->error.fix = "mend the query";
    return bad->error;
  }
  split(line, items);
  return {};
}

}  // namespace gossamer::data
