// SPDX-License-Identifier: Apache-2.0
//
// gossamer export: a model's weights as one file for other tools.
#include "apps/cli/arguments.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "commands/engine/engine_list.h"
#include "host/posix/signals.h"

namespace gossamer::cli {
namespace {

struct ExportFlags {
  CommonFlags common;
  std::string directory;
  std::string format;
  std::string out;
  bool labels = false;
};

Result<ExitStatus> export_weights(Context& context, const ExportFlags& flags) {
  const auto engine = context.engines.of_directory(context.disk, flags.directory);
  if (!engine.ok()) return engine.error();
  const auto able = context.engines.ability(**engine, &commands::EngineEntry::export_weights,
                                            "exports weights", flags.directory);
  if (!able.ok()) return able.error();
  auto machine = Machine::create(context, flags.common);
  if (!machine.ok()) return machine.error();
  const host::PosixSignals signals;
  const auto report = (*able)((*machine).host(), {.directory = flags.directory,
                                                  .format = flags.format,
                                                  .out = flags.out,
                                                  .labels = flags.labels,
                                                  .stop = [&signals] { return signals.stop_requested(); }});
  if (!report.ok()) return report.error();
  if (report->stopped) return 128 + signals.signal_number();
  context.output.write(flags.common.json ? report->json + "\n" : report->text);
  return 0;
}

Result<ExitStatus> run_export(Context& context, const Command& self, std::span<const std::string> arguments) {
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
      .run = run_export};
}

}  // namespace gossamer::cli
