// SPDX-License-Identifier: Apache-2.0
#include "commands/predict/weights_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/human_bytes.h"
#include "base/nearest_name.h"
#include "commands/predict/model_export.h"
#include "commands/predict/prediction.h"

namespace gossamer::commands {
namespace {

struct FormatRow {
  std::string_view name;
  ExportFormat format;
  std::string_view file;     // the default's name in DIR
  std::string_view entries;  // what is counted
  std::string_view python;   // two lines, {} is the path
};
constexpr std::array<FormatRow, 3> kFormats = {
    {{"safetensors", ExportFormat::kSafetensors, "weights.safetensors", "tensors",
      "from safetensors.numpy import load_file\nweights = load_file({})"},
     {"torch", ExportFormat::kTorch, "weights.pt", "tensors",
      "import torch\nweights = torch.load({}, weights_only=True)"},
     {"word2vec", ExportFormat::kWord2vec, "vectors.txt", "vectors",
      "from gensim.models import KeyedVectors\nvectors = KeyedVectors.load_word2vec_format({})"}}};

Result<FormatRow> find_format(const std::string& word) {
  std::vector<std::string_view> names;
  for (const FormatRow& row : kFormats) {
    if (row.name == word) return row;
    names.push_back(row.name);
  }
  return Error{.kind = ErrorKind::kUsage,
               .where = "--format",
               .what = fmt::format("there is no format '{}'", word),
               .got = {},
               .expected = fmt::format("a format such as '{}' (all: {})", nearest_name(word, names),
                                       fmt::join(names, ", ")),
               .fix = "'gossamer export --help' says what each is for"};
}

std::string report_json(const FormatRow& row, const ExportResult& result, const std::string& path) {
  nlohmann::ordered_json json = {
      {"path", path}, {"format", row.name}, {"bytes", result.bytes}, {row.entries, result.entries}};
  if (row.format == ExportFormat::kWord2vec) json["left_out"] = result.repeated;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string report_text(const FormatRow& row, const ExportResult& result, const std::string& path) {
  const std::string quoted =
      nlohmann::json(path).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string text = fmt::format("{}: {} {}, {}; in Python:\n", path, run::human_count(result.entries),
                                 row.entries, human_bytes(result.bytes));
  return text + fmt::format(fmt::runtime(row.python), quoted) + "\n";
}

}  // namespace

Result<Report> export_weights(const run::NodeHost& host, const ExportModel& wanted) {
  const auto row = find_format(wanted.format);
  if (!row.ok()) return row.error();
  if (wanted.labels && row->format != ExportFormat::kWord2vec) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--labels",
                 .what = fmt::format("the flag is not for format {}", row->name),
                 .got = "--labels",
                 .expected = "--format word2vec; the other formats hold both",
                 .fix = "leave it out"};
  }
  auto model = open_model(host, wanted.directory);
  if (!model.ok()) return model.error();
  const std::string path =
      wanted.out.empty() ? fmt::format("{}/{}", wanted.directory, row->file) : wanted.out;
  const auto stop_requested = [&wanted] { return wanted.stop && wanted.stop(); };
  const auto result = export_model(host.disk, *model,
                                   {.path = path,
                                    .format = row->format,
                                    .vectors = wanted.labels ? VectorsOf::kLabels : VectorsOf::kFeatures,
                                    .stop_requested = stop_requested});
  if (!result.ok()) return result.error();
  if (result->stopped) return Report{.json = {}, .text = {}, .stopped = true};
  if (result->repeated > 0) {
    host.warn(fmt::format("{} left out: the name without blanks is the same as another's",
                          run::counted(result->repeated, "vector")));
  }
  return Report{.json = report_json(*row, *result, path), .text = report_text(*row, *result, path)};
}

}  // namespace gossamer::commands
