// SPDX-License-Identifier: Apache-2.0
//
// gossamer predict: answers queries, one JSON line each.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "apps/cli/answering.h"
#include "apps/cli/arguments.h"
#include "apps/cli/command.h"
#include "apps/cli/line_input.h"
#include "apps/cli/machine.h"
#include "base/printable.h"
#include "commands/engine/query_session.h"

namespace gossamer::cli {
namespace {

struct PredictFlags {
  CommonFlags common;
  AnswerFlags answer;
  std::vector<std::string> queries;
  // For models that make texts; empty: as the model does.
  std::string tokens;
  std::string temperature;
  std::string top_k;
  std::string seed;
};

// Files are asked as texts: their names stand where queries do. A user who means their lines is told, but
// not for each of many.
class FileRemarks {
 public:
  FileRemarks(Context& context, const run::NodeHost& host) : context_(context), host_(host) {}

  void look_at(const std::string& query) {
    if (looks_ == 0 || query.empty() || query.front() == '{' || query.size() > kLongestPath) return;
    --looks_;
    const auto there = context_.disk.exists(query);
    if (!there.ok() || !*there || context_.disk.list(query).ok()) return;
    host_.warn(
        fmt::format("'{0}' is asked as a query, but there is a file of this name; to ask its lines: "
                    "gossamer predict DIR < {0}",
                    visible(query)));
    if (++told_ == kMostTold) looks_ = 0;
  }

 private:
  static constexpr std::size_t kLongestPath = 4096;
  static constexpr int kMostTold = 3;

  Context& context_;
  const run::NodeHost& host_;
  int looks_ = 1000;
  int told_ = 0;
};

Result<void> answer_arguments(Context& context, commands::QuerySession& session,
                              const std::vector<std::string>& texts) {
  std::vector<commands::Query> queries;
  queries.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    queries.push_back({.text = texts[i], .place = fmt::format("argument {}", i + 1)});
  }
  return session.answer(queries, [&context](std::string_view json) { context.output.line(json); });
}

// Answers the lines that have arrived before it waits for more.
Result<void> answer_stdin(Context& context, commands::QuerySession& session, FileRemarks& remarks) {
  LineInput input;
  std::uint64_t number = 0;
  for (;;) {
    auto lines = input.next();
    if (!lines.ok()) return lines.error();
    if ((*lines).empty()) return {};
    std::vector<commands::Query> queries;
    for (std::string& line : *lines) {
      ++number;
      remarks.look_at(line);
      queries.push_back({.text = std::move(line), .place = fmt::format("stdin:{}", number)});
    }
    auto done = session.answer(queries, [&context](std::string_view json) { context.output.line(json); });
    auto flushed = context.output.flush();
    if (!done.ok()) return done;
    if (context.output.reader_left()) return {};
    if (!flushed.ok()) return flushed;
  }
}

// Warns of queries whose answers may not be what the user meant.
void remark(const run::NodeHost& host, const commands::QuerySession& session) {
  if (const std::uint64_t nothing = session.nothing_known(); nothing > 0) {
    host.warn(
        nothing == 1
            ? std::string("1 query was blank, or the model knows none of its words or features; its answer "
                          "has \"nothing_known\"")
            : fmt::format("{} queries were blank, or the model knows none of their words or features; their "
                          "answers have \"nothing_known\"",
                          run::human_count(nothing)));
  }
  const commands::IgnoredKeys keys = session.ignored_keys();
  if (keys.queries == 0) return;
  host.warn(
      fmt::format("{} had keys that nothing looks at, such as '{}'; the answers name them in "
                  "\"ignored_keys\"",
                  run::counted(keys.queries, "query"), visible(keys.first)));
}

// "-" alone stands for standard input, as it does elsewhere.
Result<bool> reads_stdin(const std::vector<std::string>& queries) {
  const bool dash = std::ranges::find(queries, "-") != queries.end();
  if (!dash || queries.size() == 1) return dash || queries.empty();
  return Error{.kind = ErrorKind::kUsage,
               .where = "TEXT",
               .what = "standard input is asked beside other queries",
               .got = fmt::format("'-' and {} more", queries.size() - 1),
               .expected = "'-' alone, or queries",
               .fix = "leave '-' out, or give all queries as lines of standard input"};
}

// Nothing for an empty text.
Result<std::optional<std::uint64_t>> parse_optional(const std::string& text, const CountRule& rule) {
  using Count = std::optional<std::uint64_t>;
  if (text.empty()) return Count();
  const auto count = parse_count(text, rule);
  return count.ok() ? Result<Count>(Count(*count)) : count.error();
}

// How texts go on.
Result<commands::TextWanted> text_wanted(const PredictFlags& flags) {
  const auto tokens =
      parse_optional(flags.tokens, {.flag = "--tokens", .min = 1, .max = commands::kMostNewTokens});
  if (!tokens.ok()) return tokens.error();
  const auto temperature = parse_number(
      flags.temperature,
      {.flag = "--temperature", .most = commands::kMostTemperature, .expected = "a number in 0..1000"});
  if (!temperature.ok()) return temperature.error();
  const auto top_k = parse_optional(flags.top_k, {.flag = "--top-k", .min = 0, .max = UINT32_MAX});
  if (!top_k.ok()) return top_k.error();
  const auto seed = parse_optional(flags.seed, {.flag = "--seed", .min = 0, .max = commands::kMostTextSeed});
  if (!seed.ok()) return seed.error();
  commands::TextWanted wanted{.tokens = *tokens, .temperature = *temperature, .seed = *seed};
  if (*top_k) wanted.top_k = static_cast<std::uint32_t>(**top_k);
  return wanted;
}

Result<ExitStatus> predict(Context& context, const Parser& parser, const PredictFlags& flags) {
  const auto lines = reads_stdin(flags.queries);
  if (!lines.ok()) return lines.error();
  auto top = parse_count(flags.answer.top, {.flag = "--top", .min = 1, .max = 10'000});
  if (!top.ok()) return top.error();
  const auto text = text_wanted(flags);
  if (!text.ok()) return text.error();
  auto known = check_model_flags(context, parser, flags.answer.directory,
                                 {"--top", "--net-alone", "--retrieval", "--threshold", "--nodes",
                                  "--join-at", "--tokens", "--temperature", "--top-k", "--seed"});
  if (!known.ok()) return known.error();
  auto model = model_to_open(context, flags.answer, *top, {});
  if (!model.ok()) return model.error();
  model->text = *text;
  auto machine = Machine::create(context, flags.common);
  if (!machine.ok()) return machine.error();
  const run::NodeHost host = (*machine).host();
  auto answering = open_answering(context, host, &commands::EngineEntry::predict, *model);
  if (!answering.ok()) return answering.error();
  if (*lines && context.console.terminal() && ::isatty(STDIN_FILENO) != 0) {
    host.say("one query a line; Ctrl-D ends");
  }
  FileRemarks remarks(context, host);
  for (const std::string& query : flags.queries) remarks.look_at(query);
  const auto done = *lines ? answer_stdin(context, **answering, remarks)
                           : answer_arguments(context, **answering, flags.queries);
  remark(host, **answering);
  if (!done.ok()) return done.error();
  return 0;
}

Result<ExitStatus> run_predict(Context& context, const Command& self,
                               std::span<const std::string> arguments) {
  PredictFlags flags;
  Parser parser({self.name, self.help, self.example});
  add_answering(parser, flags.answer);
  parser.add_option("TEXT", flags.queries, "queries; none, or -: the lines of standard input")
      .type_name("")
      .may_be_empty();
  parser.add_option("--top", flags.answer.top, "labels to answer with; default 5").type_name("K");
  parser.add_option("--tokens", flags.tokens, "lm: tokens to add to a prompt at most; default 200")
      .type_name("N");
  parser
      .add_option("--temperature", flags.temperature,
                  "lm: below 1 likely tokens are drawn more often, above 1 less; 0: the best; default 1")
      .type_name("X");
  parser.add_option("--top-k", flags.top_k, "lm: draw from the best K tokens; default 0: all").type_name("K");
  parser.add_option("--seed", flags.seed, "lm: another one gives another text; default 1").type_name("N");
  add_threads(parser, flags.common);
  add_json(parser, flags.common, "answers are JSON lines with and without it");
  add_quiet(parser, flags.common);
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;
  return predict(context, parser, flags);
}

}  // namespace

Command predict_command() {
  return {
      .name = "predict",
      .help = "answers queries with labels, or prompts with texts, one JSON line each",
      .example =
          "A query is a text for models of text, 'ITEM ITEM ...' for models of sessions, words for those "
          "of plain\n"
          "text, 'INDEX:VALUE "
          "...' for\n"
          "models of numbered features, or a JSON object {\"text\": ...}, {\"features\": [[INDEX, "
          "VALUE], ...]} or\n"
          "{\"features\": {\"NAME\": VALUE, ...}}, as in the training records.\n"
          "\"probability\" says how likely a label is right; --threshold 0.5 leaves out labels that are "
          "more likely "
          "wrong.\n"
          "Each line has an answer, a blank one too. \"unknown_features\" counts what the model does not "
          "know "
          "of a query;\n"
          "\"nothing_known\" says that nothing of it is known. A query has no \"context\": it and other "
          "keys are not\n"
          "looked at, and \"ignored_keys\" names them. \"labels\" may stand there, as in test records.\n"
          "For a language model a query is a prompt, or {\"text\": ... [, \"tokens\", \"temperature\", "
          "\"top_k\", \"seed\"]}.\n"
          "The answer is {\"text\", \"tokens\"}: prompt and what was added, and how many tokens that are.\n\n"
          "Example:\n  gossamer predict runs/dictionary \"the meat of a deer\" --top 3\n"
          "  gossamer predict runs/shop \"shoes socks laces\"\n"
          "  gossamer predict runs/lm \"Once upon\" --tokens 300 --temperature 0.8\n"
          "  tail -n +2 test.txt | gossamer predict runs/first > answers.jsonl",
      .run = run_predict};
}

}  // namespace gossamer::cli
