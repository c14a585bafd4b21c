// SPDX-License-Identifier: Apache-2.0
//
// gossamer data import, data inspect.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "apps/cli/arguments.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "base/human_bytes.h"
#include "base/nearest_name.h"
#include "commands/records/data_import.h"
#include "commands/records/dictionary_import.h"
#include "commands/records/record_formats.h"

namespace gossamer::cli {
namespace {

constexpr std::array<std::string_view, 5> kKinds = {"xmc", "jsonl", "sessions", "text", "dictionary"};

Result<data::RecordFormat> parse_kind(const std::string& word) {
  if (const auto format = data::record_format(word); format.has_value()) return *format;
  return Error{.kind = ErrorKind::kUsage,
               .where = {},
               .what = fmt::format("there is no kind of data '{}'", word),
               .got = {},
               .expected = fmt::format("a kind such as '{}'", nearest_name(word, kKinds)),
               .fix = "'gossamer data import --help' lists the kinds"};
}

std::string summary_json(const commands::DataImportResult& result) {
  nlohmann::ordered_json json = {{"records", result.report.records},
                                 {"features", result.report.features},
                                 {"labels", result.report.labels},
                                 {"bytes", result.report.bytes},
                                 {"skipped", result.report.skipped},
                                 {"format", commands::name(result.format)},
                                 {"skipped_examples", nlohmann::ordered_json::array()},
                                 {"path", result.path}};
  for (const Error& example : result.report.examples) json["skipped_examples"].push_back(example.message());
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string summary_text(const commands::DataImportResult& result) {
  std::string text =
      fmt::format(fmt::runtime(commands::row_of(result.format).told), run::human_count(result.report.records),
                  run::human_count(result.report.features), run::human_count(result.report.labels));
  return text + fmt::format(" ({}; {} read, {} bad lines left out) in {}\n", commands::name(result.format),
                            human_bytes(result.report.bytes), run::human_count(result.report.skipped),
                            result.path);
}

std::string report_json(const text::DictionaryReport& report, const std::string& directory) {
  const nlohmann::ordered_json json = {{"definitions", report.definitions},
                                       {"headwords", report.headwords},
                                       {"train", report.train},
                                       {"test", report.test},
                                       {"near_copies", report.near_copies},
                                       {"path", directory}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string report_text(const text::DictionaryReport& report, const std::string& directory) {
  return fmt::format(
      "{} definitions of {} headwords: {} to train on in {}/records.jsonl, {} held out in {}/test.jsonl\n"
      "({} more would have been held out, but another definition says nearly the same)\n",
      run::human_count(report.definitions), run::human_count(report.headwords),
      run::human_count(report.train), directory, run::human_count(report.test), directory,
      run::human_count(report.near_copies));
}

Result<ExitStatus> import_dictionary(Context& context, const CommonFlags& flags,
                                     const commands::DictionaryImportRequest& request) {
  auto machine = Machine::create(context, flags);
  if (!machine.ok()) return machine.error();
  auto report = commands::import_dictionary_files((*machine).host(), request);
  if (!report.ok()) return report.error();
  context.output.write(flags.json ? report_json(*report, request.directory) + "\n"
                                  : report_text(*report, request.directory));
  return 0;
}

// Refuses flags that would do nothing for this kind of data.
Result<void> check_flags(const Parser& parser, const std::string& kind) {
  const bool dictionary = kind == "dictionary";
  const std::vector<std::string> foreign = dictionary
                                               ? std::vector<std::string>{"--skip-bad"}
                                               : std::vector<std::string>{"--test", "--keep", "--plain"};
  for (const std::string& flag : foreign) {
    if (!parser.given(flag)) continue;
    return Error{.kind = ErrorKind::kUsage,
                 .where = flag,
                 .what = fmt::format("the flag is not for {} data", kind),
                 .got = flag,
                 .expected = dictionary ? "xmc, jsonl, sessions or text data" : "a dictionary",
                 .fix = "leave it out"};
  }
  return {};
}

// Refuses standard input as a second source, because it can be read only once.
Result<void> check_sources(const std::vector<std::string>& sources) {
  if (std::ranges::count(sources, "-") < 2) return {};
  return Error{.kind = ErrorKind::kUsage,
               .where = "SRC",
               .what = "standard input is given twice",
               .got = fmt::format("'{}'", fmt::join(sources, " ")),
               .expected = "'-' at most once",
               .fix = "join the inputs before: cat A B | gossamer data import ..."};
}

Result<ExitStatus> run_import(Context& context, const Command& self, std::span<const std::string> arguments) {
  CommonFlags flags;
  std::string kind;
  std::string skip_bad = "0";
  std::string held_out = "5000";
  bool plain = false;
  std::vector<std::string> keep;
  commands::DataImportRequest request;
  Parser parser({self.name, self.help, self.example});
  parser
      .add_option("KIND", kind,
                  "xmc (libsvm/XMLC text), jsonl ({\"text\" [, \"context\"]|\"features\", \"labels\"}), "
                  "sessions (ITEM ITEM "
                  "... [TAB TARGET]), text (plain words) or dictionary")
      .required()
      .type_name("");
  parser.add_option("SRC", request.sources, "files, plain, .gz or .zst; - is standard input")
      .required()
      .type_name("");
  parser.add_option("--out", request.directory, "directory for the records, missing or empty")
      .required()
      .type_name("DIR");
  parser.add_option("--skip-bad", skip_bad, "leave out up to N bad lines; default 0").type_name("N");
  parser.add_option("--test", held_out, "dictionary: definitions to hold out for testing; default 5000")
      .type_name("N");
  parser.add_option("--keep", keep, "dictionary: no definition of this headword is held out; may be repeated")
      .type_name("WORD")
      .one_value_each();
  parser.add_flag(
      "--plain", plain,
      "dictionary: definitions only; else each makes a second record with a \"context\" from others");
  add_threads(parser, flags);
  add_json(parser, flags, "one JSON object with the counts");
  add_quiet(parser, flags);
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;

  if (std::ranges::find(kKinds, kind) != kKinds.end()) {
    if (auto done = check_flags(parser, kind); !done.ok()) return done.error();
  }
  if (auto done = check_sources(request.sources); !done.ok()) return done.error();
  if (kind == "dictionary") {
    auto test = parse_count(held_out, {.flag = "--test", .min = 0, .max = UINT32_MAX});
    if (!test.ok()) return test.error();
    return import_dictionary(context, flags,
                             {.sources = request.sources,
                              .directory = request.directory,
                              .test = static_cast<std::uint32_t>(*test),
                              .keep = keep,
                              .context = !plain});
  }
  auto format = parse_kind(kind);
  if (!format.ok()) return format.error();
  request.kind = *format;
  auto count = parse_count(skip_bad, {.flag = "--skip-bad", .min = 0, .max = UINT32_MAX});
  if (!count.ok()) return count.error();
  request.skip_bad = *count;
  auto machine = Machine::create(context, flags);
  if (!machine.ok()) return machine.error();
  auto result = commands::import_data((*machine).host(), request);
  if (!result.ok()) return result.error();
  context.output.write(flags.json ? summary_json(*result) + "\n" : summary_text(*result));
  return 0;
}

Result<ExitStatus> run_inspect(Context& context, const Command& self,
                               std::span<const std::string> arguments) {
  CommonFlags flags;
  std::string directory;
  Parser parser({self.name, self.help, self.example});
  parser.add_option("DIR", directory, "of 'data import', or of a run").required().type_name("");
  add_threads(parser, flags);
  add_json(parser, flags, "one JSON object");
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;

  auto machine = Machine::create(context, flags);
  if (!machine.ok()) return machine.error();
  auto look = commands::inspect_data((*machine).host(), directory);
  if (!look.ok()) return look.error();
  context.output.write(flags.json ? commands::to_json(*look) + "\n" : commands::to_text(*look));
  return 0;
}

}  // namespace

Command data_import_command() {
  return {
      .name = "data import",
      .help = "checks records once and keeps them in a form that opens quickly",
      .example =
          "A run takes the directory as data.train or data.test. A dictionary is NAME.index with "
          "NAME.dict[.dz]\n"
          "(dictd), data.noun|verb|adj|adv (WordNet), *.jsonl, or a directory of them; the definitions held\n"
          "out for testing are in DIR/test.jsonl.\n\n"
          "Example:\n"
          "  gossamer data import xmc train.txt.gz --out data/train\n"
          "  gossamer train xmc data.train=data/train --out runs/first\n"
          "  gossamer data import sessions clicks.txt.zst --out data/clicks\n"
          "  gossamer data import text wiki.txt.zst --out data/wiki\n"
          "  gossamer data import dictionary gcide.index gcide.dict.dz --out data/gcide",
      .run = run_import};
}

Command data_inspect_command() {
  return {.name = "data inspect",
          .help = "what is in imported data: counts, frequent labels, examples",
          .example = "Example:\n  gossamer data inspect data/train",
          .run = run_inspect};
}

}  // namespace gossamer::cli
