// SPDX-License-Identifier: Apache-2.0
#include "commands/records/files_import.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/human_bytes.h"
#include "commands/records/data_import.h"
#include "commands/records/dictionary_import.h"
#include "commands/records/record_formats.h"

namespace gossamer::commands {
namespace {

using Json = nlohmann::ordered_json;
using data::RecordFormat;

constexpr std::string_view kDictionary = "dictionary";

constexpr std::array<std::string_view, 1> kRecordFlags = {"--skip-bad"};
constexpr std::array<std::string_view, 2> kLineFlags = {"--skip-bad", "--as-is"};
constexpr std::array<std::string_view, 3> kDictionaryFlags = {"--test", "--keep", "--plain"};

struct RecordKind {
  ImportKind kind;
  RecordFormat format;
};
constexpr std::array<RecordKind, 4> kRecords = {
    {{{"xmc", "libsvm/XMLC text", kRecordFlags}, RecordFormat::kXmc},
     {{"jsonl", "{\"text\" [, \"context\"]|\"features\", \"labels\"}", kRecordFlags},
      RecordFormat::kJsonlText},
     {{"sessions", "ITEM ITEM ... [TAB TARGET]", kLineFlags}, RecordFormat::kSessions},
     {{"text", "plain words", kLineFlags}, RecordFormat::kText}}};

std::string json_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string summary_json(const DataImportResult& result) {
  Json json = {{"records", result.report.records},  {"features", result.report.features},
               {"labels", result.report.labels},    {"bytes", result.report.bytes},
               {"skipped", result.report.skipped},  {"format", name(result.format)},
               {"skipped_examples", Json::array()}, {"path", result.path}};
  for (const Error& example : result.report.examples) json["skipped_examples"].push_back(example.message());
  return json_text(json);
}

std::string summary_text(const DataImportResult& result) {
  const RecordRow& row = row_of(result.format);
  const std::string text =
      fmt::format(fmt::runtime(row.told), run::counted(result.report.records, row.record),
                  run::counted(result.report.features, "feature"),
                  run::counted(result.report.labels, row.label), run::human_count(result.report.labels));
  return text + fmt::format(" ({}; {} read, {} left out) in {}\n", name(result.format),
                            human_bytes(result.report.bytes), run::counted(result.report.skipped, "bad line"),
                            result.path);
}

std::string dictionary_json(const text::DictionaryReport& report, const std::string& directory) {
  return json_text({{"definitions", report.definitions},
                    {"headwords", report.headwords},
                    {"train", report.train},
                    {"test", report.test},
                    {"near_copies", report.near_copies},
                    {"left_out", report.left_out},
                    {"path", directory}});
}

std::string dictionary_text(const text::DictionaryReport& report, const std::string& directory) {
  std::string text = fmt::format(
      "{} definitions of {} headwords: {} to train on in {}/records.jsonl, {} held out in {}/test.jsonl\n"
      "({} more would have been held out, but another definition says nearly the same)\n",
      run::human_count(report.definitions), run::human_count(report.headwords),
      run::human_count(report.train), directory, run::human_count(report.test), directory,
      run::human_count(report.near_copies));
  if (report.left_out > 0)
    text += fmt::format("({} left out: no word, or no name)\n", run::human_count(report.left_out));
  return text;
}

Result<Report> import_dictionary(const run::NodeHost& host, const ImportFiles& wanted) {
  const auto report = import_dictionary_files(host, {.sources = wanted.sources,
                                                     .directory = wanted.directory,
                                                     .test = wanted.held_out,
                                                     .keep = wanted.keep,
                                                     .context = !wanted.plain});
  if (!report.ok()) return report.error();
  return Report{.json = dictionary_json(*report, wanted.directory),
                .text = dictionary_text(*report, wanted.directory)};
}

}  // namespace

std::vector<ImportKind> import_kinds() {
  std::vector<ImportKind> kinds;
  for (const RecordKind& one : kRecords) kinds.push_back(one.kind);
  kinds.push_back({.name = kDictionary, .flags = kDictionaryFlags});
  return kinds;
}

Result<Report> import_files(const run::NodeHost& host, const ImportFiles& wanted) {
  if (wanted.kind == kDictionary) return import_dictionary(host, wanted);
  const RecordKind* found = nullptr;
  for (const RecordKind& one : kRecords) {
    if (one.kind.name == wanted.kind) found = &one;
  }
  CHECK(found != nullptr, wanted.kind);
  const auto result = import_data(host, {.kind = found->format,
                                         .sources = wanted.sources,
                                         .directory = wanted.directory,
                                         .skip_bad = wanted.skip_bad,
                                         .as_is = wanted.as_is});
  if (!result.ok()) return result.error();
  return Report{.json = summary_json(*result), .text = summary_text(*result)};
}

}  // namespace gossamer::commands
