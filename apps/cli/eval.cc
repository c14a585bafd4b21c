// SPDX-License-Identifier: Apache-2.0
//
// gossamer eval: how good a model is on a test set.

#include <string>

#include "apps/cli/answering.h"
#include "apps/cli/arguments.h"
#include "apps/cli/cluster_words.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "commands/engine/engine_list.h"

namespace gossamer::cli {
namespace {

struct EvalFlags {
  CommonFlags common;
  AnswerFlags answer;
  std::string data;
  std::string skip_bad = "0";
  std::string baseline;
};

// A place for files that are gone at the end; empty where there is none.
std::string scratch_directory() {
  auto directory = own_directory("measuring");
  return directory.ok() ? *std::move(directory) : std::string();
}

Result<ExitStatus> evaluate(Context& context, const Parser& parser, const EvalFlags& flags) {
  auto skip_bad = parse_count(flags.skip_bad, {.flag = "--skip-bad", .min = 0, .max = UINT32_MAX});
  if (!skip_bad.ok()) return skip_bad.error();
  const auto engine = context.engines.of_directory(context.disk, flags.answer.directory);
  if (!engine.ok()) return engine.error();
  const auto able = context.engines.ability(**engine, &commands::EngineEntry::evaluate,
                                            "measures models on test records", flags.answer.directory);
  if (!able.ok()) return able.error();
  auto known = check_model_flags(context, parser, flags.answer.directory,
                                 {"--net-alone", "--baseline", "--retrieval", "--nodes", "--join-at"});
  if (!known.ok()) return known.error();
  auto model = model_to_open(context, flags.answer, 0, {});
  if (!model.ok()) return model.error();
  auto machine = Machine::create(context, flags.common);
  if (!machine.ok()) return machine.error();
  const auto measured = (*able)((*machine).host(), {.model = *std::move(model),
                                                    .data = flags.data,
                                                    .skip_bad = *skip_bad,
                                                    .baseline = flags.baseline,
                                                    .scratch = scratch_directory()});
  if (!measured.ok()) return measured.error();
  context.output.write(flags.common.json ? measured->json + "\n" : measured->text);
  return 0;
}

Result<ExitStatus> run_eval(Context& context, const Command& self, std::span<const std::string> arguments) {
  EvalFlags flags;
  Parser parser({self.name, self.help, self.example});
  parser.add_option("DIR", flags.answer.directory, "of a finished run, or its model/")
      .required()
      .type_name("");
  parser
      .add_option("--data", flags.data,
                  "test records, or for a language model a text: a file, or a directory of 'data import'")
      .required()
      .type_name("FILE");
  parser.add_flag("--net-alone", flags.answer.net_alone, "without the training records that the model keeps");
  parser
      .add_option("--baseline", flags.baseline,
                  "nearest (labels of the nearest training records) or frequent (labels seen most): what the "
                  "model has to beat")
      .type_name("NAME");
  parser
      .add_option("--retrieval", flags.answer.retrieval,
                  "exact, or lsh (hash tables find the net's labels; what they miss is measured as "
                  "retrieval@10 and @100)")
      .type_name("NAME");
  add_nodes(parser, flags.answer);
  parser.add_option("--skip-bad", flags.skip_bad, "leave out up to N bad lines; default 0").type_name("N");
  add_threads(parser, flags.common);
  add_json(parser, flags.common, "one JSON object; metrics unrounded, in percent but for a language model");
  add_quiet(parser, flags.common);
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;
  return evaluate(context, parser, flags);
}

}  // namespace

Command eval_command() {
  return {.name = "eval",
          .help = "measures a model on test records, or on a text",
          .example =
              "Example:\n  gossamer eval runs/first --data test.txt.gz --json\n"
              "  gossamer eval runs/lm --data other-book.txt",
          .run = run_eval};
}

}  // namespace gossamer::cli
