// SPDX-License-Identifier: Apache-2.0
#include "commands/records/data_import.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/printable.h"
#include "commands/records/import_space.h"
#include "commands/records/line_copy.h"
#include "commands/records/record_formats.h"
#include "commands/records/record_import.h"
#include "learn/data/cached_dataset.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/jsonl_reader.h"
#include "learn/data/read/record_assembler.h"
#include "learn/text/words.h"
#include "run/output_directory.h"

namespace gossamer::commands {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json labels_json(const data::JsonlRecord& record) {
  Json labels = Json::array();
  for (const std::uint32_t number : record.label_number) labels.push_back(number);
  for (const std::string_view name : record.label_name) labels.push_back(name);
  return labels;
}

std::string show_record(const data::Dataset& dataset, RecordIndex i) {
  constexpr std::size_t kShown = 8;
  const data::Record record = dataset.record(i);
  std::string text = "labels";
  for (const std::uint32_t label : record.labels.first(std::min(kShown, record.labels.size()))) {
    text += dataset.has_label_names() ? fmt::format(" '{}'", dataset.label_name(label))
                                      : fmt::format(" {}", label);
  }
  text += record.labels.size() > kShown ? " ...; features" : "; features";
  for (std::size_t k = 0; k < std::min(kShown, record.features.index.size()); ++k) {
    const std::uint32_t feature = record.features.index[k];
    text += dataset.has_feature_names()
                ? fmt::format(" {}:{}", dataset.feature_name(feature), record.features.value[k])
                : fmt::format(" {}:{}", feature, record.features.value[k]);
  }
  return record.features.index.size() > kShown ? text + " ..." : text;
}

// A text may be a book. An example shows a line or two of it.
std::string beginning(std::string_view text) {
  constexpr std::size_t kShown = 160;
  if (text.size() <= kShown) return std::string(text);
  text = text.substr(0, kShown);
  return std::string(text.substr(0, text::valid_utf8_prefix(text))) + " ...";
}

}  // namespace

void count_labels(std::span<const std::uint32_t> labels, LabelUse& counts, DataLook& look) {
  ++look.records;
  look.label_entries += labels.size();
  if (labels.empty()) ++look.records_without_labels;
  for (const std::uint32_t label : labels) ++counts[label];
}

void rank_labels(const LabelUse& counts, FunctionRef<std::string(std::uint32_t)> label_name, DataLook& look) {
  look.labels_unused = look.labels - counts.size();
  std::vector<std::pair<std::uint32_t, std::uint64_t>> order(counts.begin(), counts.end());
  look.labels_used_once = static_cast<std::uint64_t>(
      std::ranges::count_if(order, [](const auto& use) { return use.second == 1; }));
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(10, order.size()));
  std::partial_sort(order.begin(), middle, order.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  for (auto it = order.begin(); it != middle; ++it)
    look.frequent_labels.emplace_back(label_name(it->first), it->second);
}

Result<data::ReadReport> copy_text(const run::NodeHost& host, const DataImportRequest& request,
                                   const std::string& path) {
  data::RecordAssembler assembler;  // refuses names of labels among numbers
  return copy_lines(
      host, {.request = request, .path = path, .unit = "records"},
      [&assembler](data::ByteSource& source, const data::ReadOptions& options, run::LineFile& file) {
        return data::read_jsonl(source, options, [&](const data::JsonlRecord& record) -> Result<void> {
          if (record.kind != data::JsonlRecord::Kind::kText) {
            return Error{.kind = ErrorKind::kBadData,
                         .where = {},
                         .what = "the record is of another kind than the first",
                         .got = R"("features")",
                         .expected = R"("text", like the first record)",
                         .fix = "import text and features into directories of their own"};
          }
          const auto labels = assembler.labels(record);
          if (!labels.ok()) return labels.error();
          Json line{{"text", record.text}, {"labels", labels_json(record)}};
          if (!record.context.empty()) line["context"] = record.context;
          return file.line(dump(line));
        });
      });
}

Result<DataLook> look_at_text(const run::NodeHost& host, const std::string& path) {
  auto source = data::open_bytes(host.disk, path);
  if (!source.ok()) return source.error();
  DataLook look;
  LabelUse counts;
  data::RecordAssembler assembler;
  const auto read = data::read_jsonl(
      **source, {.compute = &host.compute}, [&](const data::JsonlRecord& record) -> Result<void> {
        auto labels = assembler.labels(record);
        if (!labels.ok()) return labels.error();
        count_labels(*labels, counts, look);
        for (const std::uint32_t label : *labels) look.labels = std::max(look.labels, label + 1);
        if (look.examples.size() < 3) {
          look.examples.push_back(dump({{"text", beginning(record.text)}, {"labels", labels_json(record)}}));
        }
        return {};
      });
  if (!read.ok()) return read.error();
  const data::NameTable& names = assembler.label_names();
  rank_labels(
      counts,
      [&names](std::uint32_t label) {
        return label < names.size() ? std::string(names.name(label)) : fmt::format("{}", label);
      },
      look);
  return look;
}

Result<DataLook> look_at_cache(const run::NodeHost& host, const std::string& path) {
  auto opened = data::CachedDataset::open(host.disk, path, host.compute);
  if (!opened.ok()) return opened.error();
  const data::Dataset& dataset = **opened;
  DataLook look;
  LabelUse counts;
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    count_labels(dataset.record(RecordIndex(i)).labels, counts, look);
    if (i < 3) look.examples.push_back(show_record(dataset, RecordIndex(i)));
  }
  look.features = dataset.features();
  look.labels = dataset.labels();
  look.feature_entries = dataset.feature_entries();
  rank_labels(
      counts,
      [&dataset](std::uint32_t label) {
        return dataset.has_label_names() ? std::string(dataset.label_name(label)) : fmt::format("{}", label);
      },
      look);
  return look;
}

Result<DataImportResult> import_data(const run::NodeHost& host, const DataImportRequest& request) {
  const auto first = find_source(host.disk, request.sources.front(), request.kind, request.as_is);
  if (!first.ok()) return first.error();
  const RecordRow& row = row_of(first->format);
  const std::string records = fmt::format("{}/{}", request.directory, row.imported);
  auto out = run::OutputDirectory::open(host.disk, request.directory);
  if (!out.ok()) return out.error();
  std::vector<Source> sources;
  for (const std::string& path : request.sources) {
    const auto source = find_source(host.disk, path, request.kind, request.as_is);
    if (!source.ok()) return source.error();
    sources.push_back({.path = path, .format = row.format});
  }
  const auto import = [&]() -> Result<data::ReadReport> {
    if (row.copy == nullptr)
      return import_records(host, {.sources = sources, .cache_path = records, .skip_bad = request.skip_bad});
    const ImportEstimate estimate = estimate_import(host.disk, sources);
    if (auto fits = check_import_space(host, estimate, request.directory); !fits.ok()) return fits.error();
    auto copied = row.copy(host, request, records);
    if (copied.ok() && copied->skipped > 0) host.warn(describe_skipped(*copied));
    return copied;
  };
  auto report = import();
  if (!report.ok()) return report.error();
  if (auto kept = (*out).keep(); !kept.ok()) return kept.error();
  if (lacks_labels(*first, *report)) host.warn(no_labels(*first, &*report).message());
  if (const std::string some = describe_unlabelled(*first, *report); !some.empty()) host.warn(some);
  return DataImportResult{.report = *std::move(report), .path = records, .format = row.format};
}

Result<DataLook> inspect_data(const run::NodeHost& host, const std::string& directory) {
  std::vector<Source> places;
  for (const data::RecordFormat format : kImportedFormats)
    places.push_back({.path = fmt::format("/{}", row_of(format).imported), .format = format});
  places.insert(places.begin() + 1, {.path = "/cache/train.cache", .format = data::RecordFormat::kCache});
  for (const Source& place : places) {
    auto there = host.disk.exists(directory + place.path);
    if (!there.ok()) return there.error();
    if (*there) return row_of(place.format).look(host, directory + place.path);
  }
  return Error{.kind = ErrorKind::kFailed,
               .where = directory,
               .what = "there are no imported records in this directory",
               .got = "none of records.cache, .jsonl, .sessions, .text and cache/train.cache",
               .expected = "a directory of 'gossamer data import', or of a run",
               .fix = "check the path, or import first: gossamer data import xmc FILE --out DIR"};
}

std::string to_text(const DataLook& look) {
  const auto mean = [&look](std::uint64_t entries) {
    return look.records == 0 ? 0.0 : static_cast<double>(entries) / static_cast<double>(look.records);
  };
  std::string text = fmt::format("records   {} ({} without labels)\n", run::human_count(look.records),
                                 run::human_count(look.records_without_labels));
  text += look.features == 0 ? "features  text\n"
                             : fmt::format("features  {} ({:.1f} a record)\n",
                                           run::human_count(look.features), mean(look.feature_entries));
  text += fmt::format("labels    {} ({:.1f} a record; {} unused, {} in one record only)\n",
                      run::human_count(look.labels), mean(look.label_entries),
                      run::human_count(look.labels_unused), run::human_count(look.labels_used_once));
  text += "most frequent labels\n";
  for (const auto& [label, count] : look.frequent_labels) {
    text += fmt::format("  {:>10}  {}\n", run::human_count(count), visible(label));
  }
  text += "first records\n";
  for (const std::string& example : look.examples) text += fmt::format("  {}\n", visible(example));
  return text;
}

std::string to_json(const DataLook& look) {
  Json json = {{"records", look.records},
               {"features", look.features},
               {"labels", look.labels},
               {"feature_entries", look.feature_entries},
               {"label_entries", look.label_entries},
               {"records_without_labels", look.records_without_labels},
               {"labels_unused", look.labels_unused},
               {"labels_used_once", look.labels_used_once},
               {"frequent_labels", Json::array()},
               {"examples", look.examples}};
  for (const auto& [label, count] : look.frequent_labels) {
    json["frequent_labels"].push_back({{"label", label}, {"records", count}});
  }
  return dump(json);
}

}  // namespace gossamer::commands
