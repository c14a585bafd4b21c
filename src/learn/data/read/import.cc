// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/import.h"

#include <algorithm>

#include "base/check.h"
#include "learn/data/read/jsonl_reader.h"
#include "learn/data/read/session_reader.h"
#include "learn/data/read/xmlc_reader.h"

namespace gossamer::data {
namespace {

void add_report(ReadReport& sum, const ReadReport& report) {
  sum.records += report.records;
  sum.skipped += report.skipped;
  sum.bytes += report.bytes;
  sum.labelled += report.labelled;
  sum.labels_keys += report.labels_keys;
  sum.features = std::max(sum.features, report.features);
  sum.labels = std::max(sum.labels, report.labels);
  for (const Error& example : report.examples) {
    if (sum.examples.size() < ReadReport::kMaxExamples) sum.examples.push_back(example);
  }
  for (const std::string& key : report.other_keys) sum.add_other_key(key);
}

// Options for sinks that only write.
ReadOptions beside_parsing(const ReadOptions& options) {
  ReadOptions beside = options;
  beside.sink = SinkRuns::kBesideParsing;
  return beside;
}

}  // namespace

Result<ReadReport> read_sources(
    host::Disk& disk, const ImportOptions& options,
    FunctionRef<Result<ReadReport>(ByteSource& source, const ReadOptions& options)> read_one) {
  CHECK(!options.sources.empty());
  ReadReport sum;
  for (const std::string& path : options.sources) {
    auto source = options.open ? options.open(path) : open_bytes(disk, path);
    if (!source.ok()) return source.error();
    ReadOptions read = options.read;
    read.skipped_before += sum.skipped;
    if (options.read.progress) {
      read.progress = [&](const ReadProgress& now) {
        return options.read.progress({.bytes = sum.bytes + now.bytes, .records = sum.records + now.records});
      };
    }
    const auto report = read_one(**source, read);
    if (!report.ok()) return report.error();
    add_report(sum, *report);
  }
  return sum;
}

Result<ReadReport> import_xmlc(host::Disk& disk, const ImportOptions& options) {
  auto writer = CacheWriter::create(disk, options.cache_path, options.cache);
  if (!writer.ok()) return writer.error();
  auto report = read_sources(disk, options, [&](ByteSource& source, const ReadOptions& read) {
    return read_xmlc(source, beside_parsing(read),
                     [&](const Record& record) { return (*writer)->add(record); });
  });
  if (!report.ok()) return report.error();
  auto done = (*writer)->finish({.features = report->features, .labels = report->labels});
  if (!done.ok()) return done.error();
  return report;
}

Result<ReadReport> import_jsonl(host::Disk& disk, const ImportOptions& options, RecordAssembler& assembler) {
  auto writer = CacheWriter::create(disk, options.cache_path, options.cache);
  if (!writer.ok()) return writer.error();
  const auto add = [&](const JsonlRecord& record) -> Result<void> {
    const auto features = assembler.features(record);
    if (!features.ok()) return features.error();
    const auto labels = assembler.labels(record);
    if (!labels.ok()) return labels.error();
    return (*writer)->add({.features = *features, .labels = *labels});
  };
  auto report = read_sources(disk, options, [&](ByteSource& source, const ReadOptions& read) {
    return read_jsonl(source, beside_parsing(read), add);
  });
  if (!report.ok()) return report.error();
  const NameTable& features = assembler.feature_names();
  const NameTable& labels = assembler.label_names();
  report->features = std::max(report->features, features.size());
  report->labels = std::max(report->labels, labels.size());
  auto done = (*writer)->finish({.features = report->features,
                                 .labels = report->labels,
                                 .feature_names = features.names(),
                                 .label_names = labels.names()});
  if (!done.ok()) return done.error();
  return *report;
}

Result<ReadReport> import_sessions(host::Disk& disk, const ImportOptions& options, const LineShape& shape) {
  auto writer = CacheWriter::create(disk, options.cache_path, options.cache);
  if (!writer.ok()) return writer.error();
  NameTable names;
  LineBag bag(shape);
  std::vector<std::uint32_t> items;
  std::uint64_t records = 0;
  const auto add = [&](const Session& session) -> Result<void> {
    items.clear();
    for (const std::string_view item : session.items) items.push_back(names.id(item));
    if (!session.target.empty()) items.push_back(names.id(session.target));
    const std::size_t first = session.target.empty() ? 1 : items.size() - 1;
    for (std::size_t at = first; at < items.size(); ++at, ++records) {
      const Record record{.features = bag.row(std::span(items).first(at)),
                          .labels = std::span(items).subspan(at, 1)};
      if (auto done = (*writer)->add(record); !done.ok()) return done;
    }
    return {};
  };
  auto report = read_sources(disk, options, [&](ByteSource& source, const ReadOptions& read) {
    return read_sessions(source, read, add);
  });
  if (!report.ok()) return report.error();
  report->records = records;
  report->features = names.size();
  report->labels = names.size();
  auto done = (*writer)->finish({.features = names.size(),
                                 .labels = names.size(),
                                 .feature_names = names.names(),
                                 .label_names = names.names()});
  if (!done.ok()) return done.error();
  return *report;
}

}  // namespace gossamer::data
