// SPDX-License-Identifier: Apache-2.0
#include "commands/records/record_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "commands/records/import_space.h"
#include "commands/records/record_formats.h"
#include "commands/records/vocabulary_file.h"
#include "host/api/files.h"

namespace gossamer::commands {
namespace {

const RecordRow& format_row(const ImportRequest& request) { return row_of(request.sources.front().format); }

// Options that show on the bar how far an import is, in MB and in records, and end it when it is asked to
// stop.
data::ImportOptions shown(const ImportRequest& request, data::ImportOptions options, run::Progress& bar,
                          std::string_view noun) {
  options.read.progress = [&request, &bar, noun](const data::ReadProgress& now) -> Result<void> {
    if (request.stop && request.stop())
      return Error{.kind = ErrorKind::kFailed, .where = "import", .what = "stopped"};
    if (bar.due()) {
      const std::string detail = run::counted(now.records, noun);
      bar.update({.done = now.bytes / 1'000'000, .total = 0, .unit = "MB", .detail = detail});
    }
    return {};
  };
  return options;
}

// The first pass, over records of text.
Result<text::FeaturizerState> count(const run::NodeHost& host, const ImportRequest& request,
                                    const data::ImportOptions& options) {
  run::Progress bar(host.console, host.clock, "counting words", host.verbosity);
  return format_row(request).count(
      {.host = host, .request = request, .options = shown(request, options, bar, "record"), .progress = bar});
}

// Texts of which each word stands in too few: the file may be right, and too small for the setting.
Error no_common_word(const ImportRequest& request, const data::ReadReport& report) {
  return {
      .kind = ErrorKind::kBadData,
      .where = request.sources.front().path,
      .what = "nothing to train on",
      .got = fmt::format("{}, and no word that stands in {} of them", run::counted(report.records, "record"),
                         request.text.min_df),
      .expected = fmt::format("words that stand in text.min_df = {} records or more", request.text.min_df),
      .fix = "set text.min_df=1, or give more records"};
}

Result<data::ReadReport> import(const run::NodeHost& host, const ImportRequest& request,
                                const data::ImportOptions& options) {
  const RecordRow& row = format_row(request);
  std::optional<text::Featurizer> featurizer;
  if (row.count != nullptr) {
    auto state = count(host, request, options);
    if (!state.ok()) return state.error();
    featurizer.emplace(*std::move(state));
  }
  // It is there before the records are, so that none are taken for records of numbers.
  if (featurizer) {
    const std::string path = host::parent(request.cache_path) + "/vocabulary.json";
    if (auto made = host.disk.make_directories(host::parent(path)); !made.ok()) return made.error();
    if (auto written = write_vocabulary(host.disk, path, featurizer->state()); !written.ok())
      return written.error();
  }
  run::Progress bar(host.console, host.clock, "reading", host.verbosity);
  auto report = row.import({.host = host,
                            .request = request,
                            .options = shown(request, options, bar, row.record),
                            .progress = bar,
                            .featurizer = featurizer.has_value() ? &*featurizer : nullptr});
  if (report.ok() && featurizer && featurizer->size() == 0 && request.text.min_df > 1)
    return no_common_word(request, *report);
  return report;
}

}  // namespace

data::LineShape line_shape(const sparse_engine::SessionsConfig& config) {
  return {.last = config.last, .decay = static_cast<float>(config.decay)};
}

Result<data::ReadReport> import_records(const run::NodeHost& host, const ImportRequest& request) {
  std::vector<std::string> paths;
  for (const Source& source : request.sources) paths.push_back(source.path);
  // What `data import` copies makes a cache whose size depends on the vocabulary, or on the sessions'
  // lengths.
  if (format_row(request).copy == nullptr) {
    const ImportEstimate estimate = estimate_import(host.disk, request.sources);
    auto fits = check_import_space(host, estimate, host::parent(request.cache_path));
    if (!fits.ok()) return fits.error();
  }
  const auto open = [&](const std::string& path) {
    const auto of_path = [&path](const Source& source) { return source.path == path; };
    return open_source(host.disk, *std::ranges::find_if(request.sources, of_path));
  };
  auto report = import(host, request,
                       {.sources = paths,
                        .cache_path = request.cache_path,
                        .read = {.skip_bad = request.skip_bad, .compute = &host.compute},
                        .open = open});
  if (report.ok() && report->skipped > 0) host.warn(describe_skipped(*report));
  return report;
}

std::string describe_skipped(const data::ReadReport& report) {
  if (report.skipped == 0) return "";
  std::string text = fmt::format("left out {}:", run::counted(report.skipped, "bad line"));
  for (const Error& example : report.examples) text += "\n  " + example.message();
  if (report.skipped > report.examples.size()) text += "\n  ...";
  return text;
}

}  // namespace gossamer::commands
