// SPDX-License-Identifier: Apache-2.0
#include "commands/records/training_data.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "commands/records/import_space.h"
#include "commands/records/text_batch.h"
#include "host/api/files.h"
#include "learn/data/cache_writer.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/import.h"
#include "learn/data/read/jsonl_reader.h"
#include "learn/data/read/record_assembler.h"
#include "learn/data/read/session_reader.h"
#include "learn/data/read/word_reader.h"
#include "learn/data/read/xmlc_reader.h"

namespace gossamer::commands {
namespace {

// The first line that is not blank, or as much of it as fits.
Result<std::string> first_line(host::Disk& disk, const std::string& path) {
  auto source = data::open_bytes(disk, path);
  if (!source.ok()) return source.error();
  constexpr std::size_t kEnough = std::size_t{1} << 16;
  std::string text(kEnough, '\0');
  auto got = (*source)->read(std::as_writable_bytes(std::span(text)));
  if (!got.ok()) return got.error();
  text.resize(*got);
  const std::size_t begin = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (begin == std::string::npos) return std::string();
  return text.substr(begin, text.find('\n', begin) - begin);
}

// The error for a file in which no line is a record. The first line tells what is wrong with the file.
Error no_record(host::Disk& disk, const std::string& path, const Error& otherwise) {
  auto source = data::open_bytes(disk, path);
  if (!source.ok()) return source.error();
  const auto read = data::read_jsonl(**source, {}, [](const data::JsonlRecord&) { return Result<void>(); });
  if (read.ok()) return otherwise;
  Error error = read.error();
  error.fix = "check that this is the right file: none of its lines is a record";
  return error;
}

Error no_records_in(const std::string& directory) {
  return {.kind = ErrorKind::kFailed,
          .where = directory,
          .what = "there are no imported records in this directory",
          .got = "none of records.cache, records.jsonl, records.sessions and records.text",
          .expected = "a file of records, or a directory of 'gossamer data import'",
          .fix = "give the file, or import first: gossamer data import xmc FILE --out DIR"};
}

Error other_data(const std::string& path, std::string_view got, std::string expected) {
  return {.kind = ErrorKind::kUsage,
          .where = path,
          .what = "the data is not what data.format wants",
          .got = std::string(got),
          .expected = std::move(expected),
          .fix = "use the preset for such data, or leave data.format out"};
}

// The name of a format of lines of names; null for formats that the content tells apart.
const char* line_format(std::optional<sparse_engine::DataFormat> wanted) {
  if (wanted == sparse_engine::DataFormat::kSessions) return "sessions, one a line: ITEM ITEM ...";
  if (wanted == sparse_engine::DataFormat::kText) return "plain text, or a directory of 'data import text'";
  return nullptr;
}

// Refuses a data.format that may not overrule the content, because the file would be read as
// something else without an error.
Result<void> check_wanted(const Source& source, std::optional<sparse_engine::DataFormat> wanted) {
  if (!wanted.has_value()) return {};
  const bool sessions = source.format == RecordFormat::kSessions;
  const bool text = source.format == RecordFormat::kText;
  if (sessions == (wanted == sparse_engine::DataFormat::kSessions) &&
      text == (wanted == sparse_engine::DataFormat::kText)) {
    return {};
  }
  const char* const lines = line_format(wanted);
  return other_data(source.path, name(source.format),
                    lines != nullptr ? lines : "records of XMLC text or JSON lines");
}

// Tells JSON lines of text, of names and of numbers apart. The first record with a feature decides for the
// file. A line of another kind is a bad line later on.
Result<RecordFormat> jsonl_format(host::Disk& disk, const std::string& path) {
  auto source = data::open_bytes(disk, path);
  if (!source.ok()) return source.error();
  RecordFormat format = RecordFormat::kJsonlText;
  bool enough = false;
  const auto read = data::read_jsonl(
      **source, {.skip_bad = UINT64_MAX}, [&](const data::JsonlRecord& record) -> Result<void> {
        using Kind = data::JsonlRecord::Kind;
        const bool text = record.kind == Kind::kText;
        if (!text)
          format = record.kind == Kind::kFeatures ? RecordFormat::kJsonlNumbers : RecordFormat::kJsonlNames;
        enough = text || !record.value.empty();
        if (!enough) return {};
        return Error{.kind = ErrorKind::kFailed, .where = "seen", .what = "enough"};
      });
  if (enough || read.ok()) return format;
  return no_record(disk, path, read.error());
}

std::function<Result<void>(const data::ReadProgress&)> show(run::Progress& progress,
                                                            const std::function<bool()>& stop) {
  return [&progress, &stop](const data::ReadProgress& now) -> Result<void> {
    if (stop && stop()) return Error{.kind = ErrorKind::kFailed, .where = "import", .what = "stopped"};
    if (progress.due()) {
      const std::string detail = run::human_count(now.records) + " records";
      progress.update({.done = now.bytes / 1'000'000, .total = 0, .unit = "MB", .detail = detail});
    }
    return {};
  };
}

data::ImportOptions import_options(const run::NodeHost& host, const ImportRequest& request,
                                   const std::vector<std::string>& paths) {
  return {.sources = paths,
          .cache_path = request.cache_path,
          .read = {.skip_bad = request.skip_bad, .compute = &host.compute}};
}

Error wants_text(std::string_view got) {
  return {.kind = ErrorKind::kBadData,
          .where = {},
          .what = "the record is of another kind than the first",
          .got = std::string(got),
          .expected = R"(records with "text", like the first)",
          .fix = "put text and features into files of their own"};
}

// The first pass over text, which counts the vocabulary. Bad lines are left for the second pass to report.
Result<text::FeaturizerState> count_vocabulary(const run::NodeHost& host, const ImportRequest& request,
                                               const data::ImportOptions& options) {
  std::vector<text::FeatureCounter> counters(static_cast<std::size_t>(host.compute.workers()),
                                             text::FeatureCounter(featurizer_options(request.text)));
  TextBatch batch(host.compute);
  run::Progress progress(host.console, host.clock, "counting words", host.verbosity);
  data::ImportOptions lenient = options;
  lenient.read.skip_bad = UINT64_MAX;
  lenient.read.progress = show(progress, request.stop);
  const auto read = data::read_sources(
      host.disk, lenient, [&](data::ByteSource& source, const data::ReadOptions& read_options) {
        return data::read_jsonl(source, read_options, [&](const data::JsonlRecord& record) -> Result<void> {
          if (record.kind != data::JsonlRecord::Kind::kText) return wants_text("features");
          auto added = batch.add(record.text, {}, {});
          if (added.ok() && batch.full()) batch.count(counters);
          return added;
        });
      });
  if (!read.ok()) return read.error();
  batch.count(counters);
  for (std::size_t c = 1; c < counters.size(); ++c) counters[0].merge(counters[c]);
  return counters[0].finish();
}

// The second pass over text, which makes records of known features.
Result<Imported> import_text(const run::NodeHost& host, const ImportRequest& request,
                             data::ImportOptions options) {
  auto state = count_vocabulary(host, request, options);
  if (!state.ok()) return state.error();
  const text::Featurizer featurizer(std::move(*state));
  TextBatch batch(host.compute);
  const auto context_weight = static_cast<float>(request.text.context_weight);
  data::RecordAssembler assembler;
  auto writer = data::CacheWriter::create(host.disk, request.cache_path);
  if (!writer.ok()) return writer.error();
  run::Progress progress(host.console, host.clock, "reading", host.verbosity);
  options.read.progress = show(progress, request.stop);
  std::uint32_t labels = 0;
  const auto write_batch = [&] {
    return batch.featurize(featurizer, context_weight,
                           [&](const data::Record& record) { return (*writer)->add(record); });
  };
  auto report = data::read_sources(
      host.disk, options, [&](data::ByteSource& source, const data::ReadOptions& read_options) {
        return data::read_jsonl(source, read_options, [&](const data::JsonlRecord& record) -> Result<void> {
          if (record.kind != data::JsonlRecord::Kind::kText) return wants_text("features");
          auto own = assembler.labels(record);
          if (!own.ok()) return own.error();
          if (!(*own).empty()) labels = std::max(labels, (*own).back() + 1);
          if (auto added = batch.add(record.text, record.context, *own); !added.ok()) return added;
          return batch.full() ? write_batch() : Result<void>();
        });
      });
  if (!report.ok()) return report.error();
  if (auto written = write_batch(); !written.ok()) return written.error();
  const auto& names = assembler.label_names().names();
  const auto& words = featurizer.state().features;
  const std::vector<std::string_view> feature_names(words.begin(), words.end());
  auto done = (*writer)->finish({.features = featurizer.size(),
                                 .labels = std::max(labels, assembler.label_names().size()),
                                 .feature_names = feature_names,
                                 .label_names = names});
  if (!done.ok()) return done.error();
  (*report).features = featurizer.size();
  (*report).labels = std::max(labels, assembler.label_names().size());
  return Imported{.report = std::move(*report), .featurizer = featurizer.state()};
}

Result<Imported> import_features(const run::NodeHost& host, const data::ImportOptions& options,
                                 RecordFormat format, const sparse_engine::SessionsConfig& sessions) {
  if (format == RecordFormat::kSessions) {
    auto report = data::import_sessions(host.disk, options, line_shape(sessions));
    if (!report.ok()) return report.error();
    return Imported{.report = std::move(*report), .featurizer = {}};
  }
  if (format == RecordFormat::kXmc) {
    auto report = data::import_xmlc(host.disk, options);
    if (!report.ok()) return report.error();
    return Imported{.report = std::move(*report), .featurizer = {}};
  }
  data::RecordAssembler assembler;
  auto report = data::import_jsonl(host.disk, options, assembler);
  if (!report.ok()) return report.error();
  return Imported{.report = std::move(*report), .featurizer = {}};
}

}  // namespace

const char* name(RecordFormat format) {
  switch (format) {
    case RecordFormat::kXmc: return "XMLC text";
    case RecordFormat::kJsonlNumbers: return "JSON lines of numbered features";
    case RecordFormat::kJsonlNames: return "JSON lines of named features";
    case RecordFormat::kJsonlText: return "JSON lines of text";
    case RecordFormat::kSessions: return "sessions";
    case RecordFormat::kText: return "plain text";
    case RecordFormat::kCache: return "imported records";
  }
  return "unknown";
}

Result<FeatureKind> feature_kind(const run::NodeHost& host, const Source& source) {
  switch (source.format) {
    case RecordFormat::kXmc:
    case RecordFormat::kJsonlNumbers: return FeatureKind::kNumbers;
    case RecordFormat::kJsonlNames: return FeatureKind::kNames;
    case RecordFormat::kJsonlText: return FeatureKind::kText;
    case RecordFormat::kSessions: return FeatureKind::kSessions;
    case RecordFormat::kText: return FeatureKind::kWords;
    case RecordFormat::kCache: break;
  }
  const auto dataset = data::CachedDataset::open(host.disk, source.path, host.compute);
  if (!dataset.ok()) return dataset.error();
  return feature_kind(**dataset);
}

Result<Source> find_source(host::Disk& disk, const std::string& path,
                           std::optional<sparse_engine::DataFormat> wanted) {
  if (path == "-" && !wanted.has_value()) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "data.format",
                 .what = "the format of standard input is not known",
                 .got = "auto",
                 .expected = "xmc, jsonl, sessions or text",
                 .fix = "say which: data.format=xmc, for example"};
  }
  if (path == "-") {
    // In the order of DataFormat.
    constexpr std::array kFormats = {RecordFormat::kXmc, RecordFormat::kJsonlText, RecordFormat::kSessions,
                                     RecordFormat::kText};
    return Source{.path = path, .format = kFormats[static_cast<std::size_t>(*wanted)]};
  }
  for (const auto& [file, format] : {std::pair("/records.cache", RecordFormat::kCache),
                                     std::pair("/records.jsonl", RecordFormat::kJsonlText),
                                     std::pair("/records.sessions", RecordFormat::kSessions),
                                     std::pair("/records.text", RecordFormat::kText)}) {
    auto there = disk.exists(path + file);
    if (!there.ok() || !*there) continue;
    const Source source{.path = path + file, .format = format};
    if (auto done = check_wanted(source, wanted); !done.ok()) return done.error();
    if (format != RecordFormat::kJsonlText) return source;
    auto jsonl = jsonl_format(disk, source.path);
    if (!jsonl.ok()) return jsonl.error();
    return Source{.path = source.path, .format = *jsonl};
  }
  if (disk.list(path).ok()) return no_records_in(path);
  auto line = first_line(disk, path);
  if (!line.ok()) return line.error();
  if (const char* const lines = line_format(wanted); lines != nullptr) {
    if ((*line).starts_with("{")) return other_data(path, "JSON lines", lines);
    const bool sessions = wanted == sparse_engine::DataFormat::kSessions;
    return Source{.path = path, .format = sessions ? RecordFormat::kSessions : RecordFormat::kText};
  }
  const bool jsonl =
      wanted.has_value() ? *wanted == sparse_engine::DataFormat::kJsonl : (*line).starts_with("{");
  if (!jsonl) return Source{.path = path, .format = RecordFormat::kXmc};
  auto format = jsonl_format(disk, path);
  if (!format.ok()) return format.error();
  return Source{.path = path, .format = *format};
}

data::LineShape line_shape(const sparse_engine::SessionsConfig& config) {
  return {.last = config.last, .decay = static_cast<float>(config.decay)};
}

text::FeaturizerOptions featurizer_options(const sparse_engine::TextConfig& config) {
  return {.stems = config.stems,
          .subword_min = config.subword_min,
          .subword_max = config.subword_max,
          .min_document_frequency = config.min_df,
          .max_features = config.max_features,
          .stem_weight = static_cast<float>(config.stem_weight),
          .subword_weight = static_cast<float>(config.subword_weight)};
}

Result<Imported> import_records(const run::NodeHost& host, const ImportRequest& request) {
  std::vector<std::string> paths;
  paths.reserve(request.sources.size());
  for (const Source& source : request.sources) paths.push_back(source.path);
  data::ImportOptions options = import_options(host, request, paths);
  const RecordFormat format = request.sources.front().format;
  // The space for text and sessions cannot be estimated: it depends on the
  // vocabulary, or on the sessions' lengths.
  if (format != RecordFormat::kJsonlText && format != RecordFormat::kSessions) {
    const ImportEstimate estimate = estimate_import(host.disk, request.sources);
    if (auto fits = check_import_space(host, estimate, host::parent(request.cache_path)); !fits.ok()) {
      return fits.error();
    }
  }
  Result<Imported> imported = Imported{};
  if (format == RecordFormat::kJsonlText) {
    imported = import_text(host, request, std::move(options));
  } else {
    run::Progress progress(host.console, host.clock, "reading", host.verbosity);
    options.read.progress = show(progress, request.stop);
    imported = import_features(host, options, format, request.sessions);
  }
  if (imported.ok() && imported->report.skipped > 0) host.say(describe_skipped(imported->report));
  return imported;
}

Result<void> check_records(const run::NodeHost& host, const Source& source, std::uint64_t skip_bad) {
  if (source.format == RecordFormat::kCache) return {};
  auto bytes = data::open_bytes(host.disk, source.path);
  if (!bytes.ok()) return bytes.error();
  const data::ReadOptions options{.skip_bad = skip_bad, .compute = &host.compute};
  const auto nothing = [](const auto&) { return Result<void>(); };
  const auto read = [&] {
    if (source.format == RecordFormat::kXmc) return data::read_xmlc(**bytes, options, nothing);
    if (source.format == RecordFormat::kSessions) return data::read_sessions(**bytes, options, nothing);
    if (source.format == RecordFormat::kText) return data::read_words(**bytes, options, nothing);
    return data::read_jsonl(**bytes, options, nothing);
  };
  const auto report = read();
  if (!report.ok()) return report.error();
  return {};
}

std::string describe_skipped(const data::ReadReport& report) {
  if (report.skipped == 0) return "";
  std::string text = fmt::format("left out {} bad lines:", run::human_count(report.skipped));
  for (const Error& example : report.examples) text += "\n  " + example.message();
  if (report.skipped > report.examples.size()) text += "\n  ...";
  return text;
}

}  // namespace gossamer::commands
