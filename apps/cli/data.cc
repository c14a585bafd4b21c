// SPDX-License-Identifier: Apache-2.0
//
// gossamer data import, data inspect.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/cli/arguments.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "base/nearest_name.h"
#include "commands/engine/engine_list.h"
#include "commands/records/data_import.h"

namespace gossamer::cli {
namespace {

// A kind of data, and the engine that imports it.
struct FoundKind {
  const commands::EngineEntry& engine;
  const commands::ImportKind& kind;
};

Result<FoundKind> find_kind(const commands::EngineList& engines, const std::string& word) {
  std::vector<std::string_view> names;
  for (const commands::EngineEntry& engine : engines.all()) {
    for (const commands::ImportKind& kind : engine.import_kinds) {
      if (kind.name == word) return FoundKind{.engine = engine, .kind = kind};
      names.push_back(kind.name);
    }
  }
  return Error{.kind = ErrorKind::kUsage,
               .where = {},
               .what = fmt::format("there is no kind of data '{}'", word),
               .got = {},
               .expected = fmt::format("a kind such as '{}'", nearest_name(word, names)),
               .fix = "'gossamer data import --help' lists the kinds"};
}

// "xmc, text or dictionary".
std::string one_of(std::vector<std::string> words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  const std::string last = words.back();
  words.pop_back();
  return fmt::format("{} or {}", fmt::join(words, ", "), last);
}

// "xmc (libsvm/XMLC text), text (plain words) or dictionary".
std::string kinds_help(const commands::EngineList& engines) {
  std::vector<std::string> words;
  for (const commands::EngineEntry& engine : engines.all()) {
    for (const commands::ImportKind& kind : engine.import_kinds)
      words.push_back(kind.help.empty() ? std::string(kind.name)
                                        : fmt::format("{} ({})", kind.name, kind.help));
  }
  return one_of(std::move(words));
}

// The kinds of data that have this flag.
std::vector<std::string> kinds_with(const commands::EngineList& engines, std::string_view flag) {
  std::vector<std::string> kinds;
  for (const commands::EngineEntry& engine : engines.all()) {
    for (const commands::ImportKind& kind : engine.import_kinds) {
      if (std::ranges::find(kind.flags, flag) != kind.flags.end()) kinds.emplace_back(kind.name);
    }
  }
  return kinds;
}

// Refuses flags that would do nothing for this kind of data.
Result<void> check_flags(const commands::EngineList& engines, const Parser& parser, const std::string& kind) {
  for (const std::string flag :
       {"--skip-bad", "--as-is", "--test", "--keep", "--plain", "--tokenizer", "--vocabulary"}) {
    const std::vector<std::string> able = kinds_with(engines, flag);
    if (!parser.given(flag) || std::ranges::find(able, kind) != able.end()) continue;
    return Error{.kind = ErrorKind::kUsage,
                 .where = flag,
                 .what = fmt::format("the flag is not for {} data", kind),
                 .got = flag,
                 .expected = one_of(able) + " data",
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

struct ImportFlags {
  CommonFlags common;
  commands::ImportFiles wanted;
  std::string skip_bad = "0";
  std::string held_out = "5000";
  std::string vocabulary;
};

Parser make_import_parser(Context& context, const Command& self, ImportFlags& flags) {
  commands::ImportFiles& wanted = flags.wanted;
  Parser parser({self.name, self.help, self.example});
  parser.add_option("KIND", wanted.kind, kinds_help(context.engines)).required().type_name("");
  parser.add_option("SRC", wanted.sources, "files, plain, .gz or .zst; lm: or folders; - is standard input")
      .required()
      .type_name("");
  parser.add_option("--out", wanted.directory, "directory for the records, missing or empty")
      .required()
      .type_name("DIR");
  parser.add_option("--skip-bad", flags.skip_bad, "leave out up to N bad lines; lm: or files; default 0")
      .type_name("N");
  parser.add_flag("--as-is", wanted.as_is,
                  "sessions, text: take lines that look like CSV or another format as they are");
  parser.add_option("--test", flags.held_out, "dictionary: definitions to hold out for testing; default 5000")
      .type_name("N");
  parser
      .add_option("--keep", wanted.keep,
                  "dictionary: no definition of this headword is held out; may be repeated")
      .type_name("WORD")
      .one_value_each();
  parser.add_flag(
      "--plain", wanted.plain,
      "dictionary: definitions only; else each makes a second record with a \"context\" from others");
  parser
      .add_option("--tokenizer", wanted.tokenizer,
                  "lm: bytes; sentencepiece, trained on the text; or FILE.model of SentencePiece, or its "
                  "folder; default bytes")
      .type_name("WORD");
  parser
      .add_option("--vocabulary", flags.vocabulary, "lm: tokens of a tokenizer that is trained; default 8192")
      .type_name("N");
  add_threads(parser, flags.common);
  add_json(parser, flags.common, "one JSON object with the counts");
  add_quiet(parser, flags.common);
  return parser;
}

Result<ExitStatus> run_import(Context& context, const Command& self, std::span<const std::string> arguments) {
  ImportFlags flags;
  auto parser = make_import_parser(context, self, flags);
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;

  commands::ImportFiles& wanted = flags.wanted;
  const auto found = find_kind(context.engines, wanted.kind);
  if (found.ok()) {
    if (auto done = check_flags(context.engines, parser, wanted.kind); !done.ok()) return done.error();
  }
  if (auto done = check_sources(wanted.sources); !done.ok()) return done.error();
  if (!found.ok()) return found.error();
  const auto test = parse_count(flags.held_out, {.flag = "--test", .min = 0, .max = UINT32_MAX});
  if (!test.ok()) return test.error();
  wanted.held_out = static_cast<std::uint32_t>(*test);
  const auto count = parse_count(flags.skip_bad, {.flag = "--skip-bad", .min = 0, .max = UINT32_MAX});
  if (!count.ok()) return count.error();
  wanted.skip_bad = *count;
  if (parser.given("--vocabulary")) {
    const auto most = parse_count(flags.vocabulary, {.flag = "--vocabulary", .min = 1, .max = UINT32_MAX});
    if (!most.ok()) return most.error();
    wanted.vocabulary = static_cast<std::uint32_t>(*most);
  }
  auto machine = Machine::create(context, flags.common);
  if (!machine.ok()) return machine.error();
  const auto report = found->engine.import((*machine).host(), wanted);
  if (!report.ok()) return report.error();
  context.output.write(flags.common.json ? report->json + "\n" : report->text);
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
  for (const commands::EngineEntry& engine : context.engines.all()) {
    if (!engine.inspect) continue;
    const auto report = engine.inspect((*machine).host(), directory);
    if (!report.ok()) return report.error();
    if (!*report) continue;
    context.output.write(flags.json ? (**report).json + "\n" : (**report).text);
    return 0;
  }
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
          "  gossamer data import lm books/ --out data/books\n"
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
