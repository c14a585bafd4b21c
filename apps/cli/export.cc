// SPDX-License-Identifier: Apache-2.0
//
// gossamer export: a model's weights as one file for other tools.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>

#include "apps/cli/arguments.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "base/human_bytes.h"
#include "base/nearest_name.h"
#include "commands/predict/model_export.h"
#include "commands/predict/prediction.h"
#include "host/posix/signals.h"

namespace gossamer::cli {
namespace {

struct FormatRow {
  std::string_view name;
  commands::ExportFormat format;
  std::string_view file;     // the default's name in DIR
  std::string_view entries;  // what is counted
  std::string_view python;   // two lines, {} is the path
};
constexpr std::array<FormatRow, 3> kFormats = {
    {{"safetensors", commands::ExportFormat::kSafetensors, "weights.safetensors", "tensors",
      "from safetensors.numpy import load_file\nweights = load_file({})"},
     {"torch", commands::ExportFormat::kTorch, "weights.pt", "tensors",
      "import torch\nweights = torch.load({}, weights_only=True)"},
     {"word2vec", commands::ExportFormat::kWord2vec, "vectors.txt", "vectors",
      "from gensim.models import KeyedVectors\nvectors = KeyedVectors.load_word2vec_format({})"}}};

struct ExportFlags {
  CommonFlags common;
  std::string directory;
  std::string format;
  std::string out;
  bool labels = false;
};

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

std::string report_json(const FormatRow& row, const commands::ExportResult& result, const std::string& path) {
  nlohmann::ordered_json json = {
      {"path", path}, {"format", row.name}, {"bytes", result.bytes}, {row.entries, result.entries}};
  if (row.format == commands::ExportFormat::kWord2vec) json["left_out"] = result.repeated;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string report_text(const FormatRow& row, const commands::ExportResult& result, const std::string& path) {
  const std::string quoted =
      nlohmann::json(path).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string text = fmt::format("{}: {} {}, {}; in Python:\n", path, run::human_count(result.entries),
                                 row.entries, human_bytes(result.bytes));
  return text + fmt::format(fmt::runtime(row.python), quoted) + "\n";
}

Result<ExitStatus> export_weights(Context& context, const ExportFlags& flags) {
  const auto row = find_format(flags.format);
  if (!row.ok()) return row.error();
  if (flags.labels && row->format != commands::ExportFormat::kWord2vec) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--labels",
                 .what = fmt::format("the flag is not for format {}", row->name),
                 .got = "--labels",
                 .expected = "--format word2vec; the other formats hold both",
                 .fix = "leave it out"};
  }
  auto machine = Machine::create(context, flags.common);
  if (!machine.ok()) return machine.error();
  const run::NodeHost host = (*machine).host();
  const host::PosixSignals signals;
  auto model = commands::open_model(host, flags.directory);
  if (!model.ok()) return model.error();
  const std::string path = flags.out.empty() ? fmt::format("{}/{}", flags.directory, row->file) : flags.out;
  const auto stop_requested = [&signals] { return signals.stop_requested(); };
  const auto result = commands::export_model(
      host.disk, *model,
      {.path = path,
       .format = row->format,
       .vectors = flags.labels ? commands::VectorsOf::kLabels : commands::VectorsOf::kFeatures,
       .stop_requested = stop_requested});
  if (!result.ok()) return result.error();
  if (result->stopped) return 128 + signals.signal_number();
  if (result->repeated > 0) {
    host.say(fmt::format("{} vectors are left out: without blanks their names are the same as another's",
                         run::human_count(result->repeated)));
  }
  context.output.write(flags.common.json ? report_json(*row, *result, path)
                                         : report_text(*row, *result, path));
  return 0;
}

Result<ExitStatus> run(Context& context, const Command& self, std::span<const std::string> arguments) {
  ExportFlags flags;
  Parser parser({self.name, self.help, self.example});
  parser.add_option("DIR", flags.directory, "of a finished run, or its model/").required().type_name("");
  parser.add_option("--format", flags.format, "safetensors, torch or word2vec")
      .required()
      .type_name("FORMAT");
  parser
      .add_option("--out", flags.out,
                  "the new file; default: weights.safetensors, weights.pt or vectors.txt in DIR")
      .type_name("FILE");
  parser.add_flag("--labels", flags.labels, "word2vec: the vectors of labels, not of features");
  add_json(parser, flags.common, "one JSON object: path, format, bytes, tensors or vectors");
  add_quiet(parser, flags.common);
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;
  return export_weights(context, flags);
}

}  // namespace

Command export_command() {
  return {
      .name = "export",
      .help = "writes the weights as one file that Python loads in two lines",
      .example =
          "safetensors: tensors with metadata. torch: the same as a dict for torch.load. word2vec: text,\n"
          "one named vector a line; blanks in names become '_'. Names in safetensors: name i is\n"
          "label_names.bytes[label_names.begin[i]:label_names.begin[i + 1]], in UTF-8.\n\n"
          "Example:\n"
          "  gossamer export runs/first --format safetensors --out first.safetensors\n"
          "  python3 -c 'from safetensors.numpy import load_file\n"
          "  print(load_file(\"first.safetensors\")[\"output.weight\"].shape)'\n\n"
          "  torch:     import torch\n"
          "             weights = torch.load(\"weights.pt\", weights_only=True)\n"
          "  word2vec:  from gensim.models import KeyedVectors\n"
          "             vectors = KeyedVectors.load_word2vec_format(\"vectors.txt\")",
      .run = run};
}

}  // namespace gossamer::cli
