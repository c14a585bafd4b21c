// SPDX-License-Identifier: Apache-2.0
#include "learn/text/text_import.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "learn/data/cache_writer.h"
#include "learn/data/read/jsonl_reader.h"
#include "learn/data/read/record_assembler.h"
#include "learn/text/text_batch.h"

namespace gossamer::text {
namespace {

Error wants_text() {
  return {.kind = ErrorKind::kBadData,
          .where = {},
          .what = "the record is of another kind than the first",
          .got = "features",
          .expected = R"(records with "text", like the first)",
          .fix = "put text and features into files of their own"};
}

// Reads the records of all sources, which must be text.
Result<data::ReadReport> read_texts(host::Disk& disk, const data::ImportOptions& options,
                                    data::JsonlSink sink) {
  CHECK(options.read.compute != nullptr);
  return data::read_sources(disk, options, [&](data::ByteSource& source, const data::ReadOptions& read) {
    return data::read_jsonl(source, read, [&](const data::JsonlRecord& record) -> Result<void> {
      if (record.kind != data::JsonlRecord::Kind::kText) return wants_text();
      return sink(record);
    });
  });
}

}  // namespace

Result<FeaturizerState> count_vocabulary(host::Disk& disk, const data::ImportOptions& options,
                                         const FeaturizerOptions& features) {
  data::ImportOptions lenient = options;
  lenient.read.skip_bad = UINT64_MAX;
  host::Compute& compute = *options.read.compute;
  std::vector<FeatureCounter> counters(static_cast<std::size_t>(compute.workers()), FeatureCounter(features));
  TextBatch batch(compute);
  const auto read = read_texts(disk, lenient, [&](const data::JsonlRecord& record) {
    auto added = batch.add(record.text, {}, {});
    if (added.ok() && batch.full()) batch.count(counters);
    return added;
  });
  if (!read.ok()) return read.error();
  batch.count(counters);
  for (std::size_t c = 1; c < counters.size(); ++c) counters[0].merge(counters[c]);
  return counters[0].finish();
}

Result<data::ReadReport> import_text(host::Disk& disk, const data::ImportOptions& options,
                                     const TextImport& import) {
  const Featurizer& featurizer = import.featurizer;
  auto writer = data::CacheWriter::create(disk, options.cache_path, options.cache);
  if (!writer.ok()) return writer.error();
  TextBatch batch(*options.read.compute);
  const auto write_batch = [&] {
    return batch.featurize(featurizer, import.context_weight,
                           [&](const data::Record& record) { return (*writer)->add(record); });
  };
  data::RecordAssembler assembler;
  std::uint32_t labels = 0;
  auto report = read_texts(disk, options, [&](const data::JsonlRecord& record) -> Result<void> {
    const auto own = assembler.labels(record);
    if (!own.ok()) return own.error();
    if (!(*own).empty()) labels = std::max(labels, (*own).back() + 1);
    if (auto added = batch.add(record.text, record.context, *own); !added.ok()) return added;
    return batch.full() ? write_batch() : Result<void>();
  });
  if (!report.ok()) return report;
  if (auto written = write_batch(); !written.ok()) return written.error();
  if (import.context_words != nullptr) *import.context_words = batch.context_words();
  const data::NameTable& names = assembler.label_names();
  const auto& words = featurizer.state().features;
  const std::vector<std::string_view> feature_names(words.begin(), words.end());
  report->features = featurizer.size();
  report->labels = std::max(labels, names.size());
  auto done = (*writer)->finish({.features = report->features,
                                 .labels = report->labels,
                                 .feature_names = feature_names,
                                 .label_names = names.names()});
  if (!done.ok()) return done.error();
  return report;
}

}  // namespace gossamer::text
