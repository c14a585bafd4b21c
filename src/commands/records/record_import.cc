// SPDX-License-Identifier: Apache-2.0
#include "commands/records/record_import.h"

#include <fmt/format.h>

#include <utility>

#include "commands/records/import_space.h"
#include "commands/records/record_formats.h"
#include "commands/records/vocabulary_file.h"
#include "host/api/files.h"
#include "learn/data/read/record_assembler.h"
#include "learn/text/text_import.h"

namespace gossamer::commands {
namespace {

text::FeaturizerOptions featurizer_options(const sparse_engine::TextConfig& config) {
  return {.stems = config.stems,
          .subword_min = config.subword_min,
          .subword_max = config.subword_max,
          .min_document_frequency = config.min_df,
          .max_features = config.max_features,
          .stem_weight = static_cast<float>(config.stem_weight),
          .subword_weight = static_cast<float>(config.subword_weight)};
}

}  // namespace

data::ReadOptions ImportProgress::shown(data::ReadOptions options) {
  options.progress = [this](const data::ReadProgress& now) -> Result<void> {
    if (request_.stop && request_.stop())
      return Error{.kind = ErrorKind::kFailed, .where = "import", .what = "stopped"};
    if (bar_.due()) {
      const std::string detail = fmt::format("{} {}", run::human_count(now.records), unit_);
      bar_.update({.done = now.bytes / 1'000'000, .total = 0, .unit = "MB", .detail = detail});
    }
    return {};
  };
  return options;
}

data::ImportOptions ImportProgress::shown(data::ImportOptions options) {
  options.read = shown(std::move(options.read));
  return options;
}

Result<data::ReadReport> import_xmlc(const run::NodeHost& host, const ImportRequest& request,
                                     const data::ImportOptions& options) {
  ImportProgress progress(host, request, "reading");
  return data::import_xmlc(host.disk, progress.shown(options));
}

Result<data::ReadReport> import_jsonl(const run::NodeHost& host, const ImportRequest& request,
                                      const data::ImportOptions& options) {
  ImportProgress progress(host, request, "reading");
  data::RecordAssembler assembler;
  return data::import_jsonl(host.disk, progress.shown(options), assembler);
}

Result<data::ReadReport> import_sessions(const run::NodeHost& host, const ImportRequest& request,
                                         const data::ImportOptions& options) {
  ImportProgress progress(host, request, "reading");
  return data::import_sessions(host.disk, progress.shown(options), line_shape(request.sessions));
}

Result<data::ReadReport> import_text(const run::NodeHost& host, const ImportRequest& request,
                                     const data::ImportOptions& options) {
  auto state = [&] {
    ImportProgress progress(host, request, "counting words");
    return text::count_vocabulary(host.disk, progress.shown(options), featurizer_options(request.text));
  }();
  if (!state.ok()) return state.error();
  const text::Featurizer featurizer(*std::move(state));
  auto report = [&] {
    ImportProgress progress(host, request, "reading");
    return text::import_text(
        host.disk, progress.shown(options),
        {.featurizer = featurizer, .context_weight = static_cast<float>(request.text.context_weight)});
  }();
  if (!report.ok()) return report;
  const std::string vocabulary = host::parent(request.cache_path) + "/vocabulary.json";
  if (auto done = write_vocabulary(host.disk, vocabulary, featurizer.state()); !done.ok())
    return done.error();
  return report;
}

data::LineShape line_shape(const sparse_engine::SessionsConfig& config) {
  return {.last = config.last, .decay = static_cast<float>(config.decay)};
}

Result<data::ReadReport> import_records(const run::NodeHost& host, const ImportRequest& request) {
  std::vector<std::string> paths;
  for (const Source& source : request.sources) paths.push_back(source.path);
  const RecordRow& row = row_of(request.sources.front().format);
  // What `data import` copies makes a cache whose size depends on the vocabulary, or on the sessions'
  // lengths.
  if (row.copy == nullptr) {
    const ImportEstimate estimate = estimate_import(host.disk, request.sources);
    auto fits = check_import_space(host, estimate, host::parent(request.cache_path));
    if (!fits.ok()) return fits.error();
  }
  auto report = row.import(host, request,
                           {.sources = paths,
                            .cache_path = request.cache_path,
                            .read = {.skip_bad = request.skip_bad, .compute = &host.compute}});
  if (report.ok() && report->skipped > 0) host.say(describe_skipped(*report));
  return report;
}

std::string describe_skipped(const data::ReadReport& report) {
  if (report.skipped == 0) return "";
  std::string text = fmt::format("left out {} bad lines:", run::human_count(report.skipped));
  for (const Error& example : report.examples) text += "\n  " + example.message();
  if (report.skipped > report.examples.size()) text += "\n  ...";
  return text;
}

}  // namespace gossamer::commands
