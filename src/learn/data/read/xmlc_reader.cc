// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/xmlc_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "learn/data/read/bad_lines.h"
#include "learn/data/read/line_chunks.h"
#include "learn/data/read/number_text.h"
#include "learn/data/read/xmlc_lines.h"

namespace gossamer::data {
namespace {

struct XmlcHeader {
  std::uint64_t records = 0;
  std::uint32_t features = 0;
  std::uint32_t labels = 0;
  std::string text;
};

Error bad_header(const std::string& file, std::string_view line, std::string expected) {
  return Error{.kind = ErrorKind::kBadData,
               .where = file + ":1:1",
               .what = "cannot use the header",
               .got = quote(line),
               .expected = std::move(expected),
               .fix = "correct the first line, or remove it"};
}

// A header is exactly three integers; every other line is a record.
Result<std::optional<XmlcHeader>> read_header(LineChunks& lines, const ReadLimits& limits) {
  const Result<std::string_view> first = lines.first_line();
  if (!first.ok()) return first.error();
  const std::string line(*first);  // ends with a byte that is no digit
  std::array<std::uint64_t, 3> number = {};
  std::size_t count = 0;
  for (const char* at = line.c_str(); *at != '\0'; ++count) {
    std::uint64_t value = 0;
    const char* behind = read_unsigned(at, value);
    if (behind == at || count == number.size()) return std::optional<XmlcHeader>();
    number[count] = value;
    for (at = behind; *at == ' ' || *at == '\t';) ++at;
    if (at == behind && *at != '\0') return std::optional<XmlcHeader>();
  }
  if (count != number.size() || line.find('\0') != std::string::npos) return std::optional<XmlcHeader>();
  if (number[0] > 0xFFFFFFFFU) return bad_header(lines.name(), line, "fewer than 2^32 records");
  if (number[1] > limits.features) {
    return bad_header(lines.name(), line, fmt::format("at most {} features", limits.features));
  }
  if (number[2] > limits.labels) {
    return bad_header(lines.name(), line, fmt::format("at most {} labels", limits.labels));
  }
  lines.drop_first_line();
  return std::optional(XmlcHeader{.records = number[0],
                                  .features = static_cast<std::uint32_t>(number[1]),
                                  .labels = static_cast<std::uint32_t>(number[2]),
                                  .text = line});
}

// Takes the parsed chunks in order: numbers the lines, decides about blank and bad ones, feeds the sink.
class XmlcDrain {
 public:
  XmlcDrain(const std::string& file, const std::optional<XmlcHeader>& header, const ReadOptions& options,
            ReadReport& report)
      : file_(file),
        header_(header),
        ledger_(file, options, report),
        report_(report),
        line_(header ? 1 : 0) {}

  [[nodiscard]] Result<void> drain(const XmlcLines& lines, const RecordSink& sink) {
    std::size_t record = 0;
    std::size_t bad = 0;
    for (const LineKind kind : lines.kind) {
      ++line_;
      if (kind == LineKind::kBlank) {
        ++blank_;
        continue;
      }
      if (auto done = settle_blank_lines(line_ - blank_, sink); !done.ok()) return done;
      const Result<void> done = kind == LineKind::kBad ? ledger_.add(line_, lines.bad[bad++])
                                                       : take(line_, lines.record(record++), sink);
      if (!done.ok()) return done;
    }
    return {};
  }

  [[nodiscard]] Result<void> finish(const RecordSink& sink) {
    if (header_) {
      // Blank lines at the end are records as far as the header counts them.
      const std::uint64_t seen = report_.records + report_.skipped;
      const std::uint64_t behind = blank_;
      blank_ = header_->records > seen ? std::min(blank_, header_->records - seen) : 0;
      if (auto done = settle_blank_lines(line_ + 1 - behind, sink); !done.ok()) return done;
      if (report_.records + report_.skipped != header_->records) return wrong_count();
      report_.features = header_->features;
      report_.labels = header_->labels;
    }
    if (report_.records > 0) return {};
    return nothing_read(file_, report_,
                        {.record = "record",
                         .bad = "bad line",
                         .other = header_.has_value() ? "a header alone" : "blank lines",
                         .expected = "lines of LABEL,LABEL INDEX:VALUE ..."});
  }

 private:
  Result<void> take(std::uint64_t line, const Record& record, const RecordSink& sink) {
    const std::uint64_t taken = report_.records;
    if (auto done = ledger_.judge(line, sink(record)); !done.ok() || report_.records == taken) return done;
    const auto& index = record.features.index;
    if (!record.labels.empty()) ++report_.labelled;
    if (!index.empty()) report_.features = std::max(report_.features, index.back() + 1);
    if (!record.labels.empty()) report_.labels = std::max(report_.labels, record.labels.back() + 1);
    return {};
  }

  // `first`: number of the first of the pending blank lines.
  Result<void> settle_blank_lines(std::uint64_t first, const RecordSink& sink) {
    const std::uint64_t end = first + blank_;
    blank_ = 0;
    for (std::uint64_t line = first; line < end; ++line) {
      const BadLine blank{.error = {.kind = ErrorKind::kBadData,
                                    .what = "the line is empty",
                                    .got = "no text, and no header that counts it as a record",
                                    .expected = "LABEL,LABEL INDEX:VALUE ...",
                                    .fix = std::string(kFixLine)}};
      auto done = header_ ? take(line, Record{}, sink) : ledger_.add(line, blank);
      if (!done.ok()) return done;
    }
    return {};
  }

  [[nodiscard]] Error wrong_count() const {
    const std::uint64_t found = report_.records + report_.skipped;
    return bad_header(file_, header_->text, fmt::format("{}, the number of records in the file", found));
  }

  const std::string& file_;
  const std::optional<XmlcHeader>& header_;
  BadLineLedger ledger_;
  ReadReport& report_;
  std::uint64_t line_;       // number of the last line
  std::uint64_t blank_ = 0;  // blank lines right before the next line
};

XmlcLines oversized_line(std::size_t limit) {
  XmlcLines lines;
  lines.clear();
  lines.kind.push_back(LineKind::kBad);
  lines.bad.push_back(line_too_long(limit));
  return lines;
}

}  // namespace

Result<ReadReport> read_xmlc(ByteSource& source, const ReadOptions& options, RecordSink sink) {
  LineChunks chunks(source, options.limits);
  const auto header = read_header(chunks, options.limits);
  if (!header.ok()) return header.error();
  const XmlcParser::Bounds bounds = *header
                                        ? XmlcParser::Bounds{(*header)->features, (*header)->labels}
                                        : XmlcParser::Bounds{options.limits.features, options.limits.labels};
  const XmlcParser parser(bounds, {options.limits.line_bytes, notes_per_chunk(options)});
  std::vector<XmlcLines> slots(round_slots(options.compute));
  ReadReport report;
  XmlcDrain drain(source.name(), *header, options, report);

  const auto parse_chunk = [&](const Chunk& chunk, std::size_t slot) {
    if (chunk.oversized) {
      slots[slot] = oversized_line(options.limits.line_bytes);
    } else {
      parser.parse(chunk.text, slots[slot]);
    }
  };
  const auto drain_slot = [&](std::size_t slot) { return drain.drain(slots[slot], sink); };
  const auto after_round = [&]() -> Result<void> {
    if (!options.progress) return {};
    return options.progress({.bytes = chunks.bytes(), .records = report.records});
  };
  const Result<void> read = parse_in_rounds(
      chunks, options.compute,
      {.parse = parse_chunk, .drain = drain_slot, .after_round = after_round, .sink = options.sink});
  if (!read.ok()) return read.error();
  report.bytes = chunks.bytes();
  if (auto done = drain.finish(sink); !done.ok()) return done.error();
  return report;
}

}  // namespace gossamer::data
