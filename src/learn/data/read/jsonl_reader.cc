// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/jsonl_reader.h"

#include <algorithm>
#include <string>
#include <vector>

#include "learn/data/read/bad_lines.h"
#include "learn/data/read/jsonl_lines.h"
#include "learn/data/read/line_chunks.h"

namespace gossamer::data {
namespace {

// Takes the parsed chunks in order: numbers the lines, decides about bad ones, feeds the sink.
class JsonlDrain {
 public:
  JsonlDrain(const std::string& file, const ReadOptions& options, ReadReport& report)
      : ledger_(file, options, report), report_(report) {}

  [[nodiscard]] Result<void> drain(const JsonlLines& lines, const JsonlSink& sink) {
    std::size_t row = 0;
    std::size_t bad = 0;
    for (const std::string& key : lines.other_keys) report_.add_other_key(key);
    for (const LineKind kind : lines.kind) {
      ++line_;
      if (kind == LineKind::kBlank) continue;
      if (kind == LineKind::kBad) {
        if (auto done = ledger_.add(line_, lines.bad[bad++]); !done.ok()) return done;
        continue;
      }
      const bool has_labels = lines.rows[row].has_labels;
      if (auto done = take(lines.record(row++, scratch_), has_labels, sink); !done.ok()) return done;
    }
    return {};
  }

 private:
  Result<void> take(const JsonlRecord& record, bool has_labels, const JsonlSink& sink) {
    const std::uint64_t taken = report_.records;
    if (auto done = ledger_.judge(line_, sink(record)); !done.ok() || report_.records == taken) return done;
    if (!record.label_number.empty() || !record.label_name.empty()) ++report_.labelled;
    if (has_labels) ++report_.labels_keys;
    if (!record.index.empty()) report_.features = std::max(report_.features, record.index.back() + 1);
    if (!record.label_number.empty()) {
      report_.labels = std::max(report_.labels, record.label_number.back() + 1);
    }
    return {};
  }

  BadLineLedger ledger_;
  ReadReport& report_;
  JsonlLines::Scratch scratch_;
  std::uint64_t line_ = 0;
};

}  // namespace

Result<ReadReport> read_jsonl(ByteSource& source, const ReadOptions& options, JsonlSink sink) {
  LineChunks chunks(source, options.limits);
  const JsonlParser parser(options);
  std::vector<JsonlLines> slots(round_slots(options.compute));
  ReadReport report;
  JsonlDrain drain(source.name(), options, report);

  const auto parse_chunk = [&](const Chunk& chunk, std::size_t slot) {
    if (chunk.oversized) {
      slots[slot].clear();
      slots[slot].kind.push_back(LineKind::kBad);
      slots[slot].bad.push_back(line_too_long(options.limits.line_bytes));
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
  if (report.records > 0) return report;
  return nothing_read(source.name(), report,
                      {.record = "record",
                       .bad = "bad line",
                       .other = "blank lines",
                       .expected = "lines of {\"text\": ..., \"labels\": [...]}"});
}

}  // namespace gossamer::data
