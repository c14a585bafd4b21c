// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/answering.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "apps/cli/cluster_words.h"
#include "base/shell_word.h"
#include "commands/engine/engine_list.h"
#include "commands/engine/run_request.h"
#include "host/posix/child_process.h"

namespace gossamer::cli {
namespace {

std::function<Result<void>(const host::Endpoint&, const std::string&)> print_join(Context& context) {
  return [&context](const host::Endpoint& at, const std::string& token) {
    context.console.write(
        fmt::format("gossamer join {} --token {} --in-place\n", host::to_string(at), token));
    return Result<void>();
  };
}

Result<std::optional<double>> parse_threshold(const std::string& text) {
  return parse_number(text, {.flag = "--threshold", .most = 1, .expected = "a probability between 0 and 1"});
}

// Nothing where this process is to have the model.
Result<std::optional<commands::ModelNodes>> model_nodes(Context& context, const AnswerFlags& flags) {
  using Wanted = std::optional<commands::ModelNodes>;
  if (flags.nodes.empty() && flags.join_at.empty()) return Wanted();
  if (flags.nodes.empty()) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--join-at",
                 .what = "it is not known how many nodes are to come",
                 .expected = "--nodes N beside it",
                 .fix = "add --nodes"};
  }
  const auto nodes = parse_count(flags.nodes, {.flag = "--nodes", .min = 1, .max = commands::kMostOwnNodes});
  if (!nodes.ok()) return nodes.error();
  std::optional<host::Endpoint> join_at;
  if (!flags.join_at.empty()) {
    const auto at = parse_at(flags.join_at, "--join-at");
    if (!at.ok()) return at.error();
    if (node::is_wildcard(at->host)) {
      return Error{.kind = ErrorKind::kUsage,
                   .where = "--join-at",
                   .what = "others cannot reach this address",
                   .got = flags.join_at,
                   .expected = "an address of this machine",
                   .fix = "write the one by which the nodes reach it"};
    }
    join_at = *at;
  }
  auto directory = own_directory("serving");
  if (!directory.ok()) return directory.error();
  return Wanted(commands::ModelNodes{.nodes = *nodes,
                                     .join_at = join_at,
                                     .joined_at = join_at ? print_join(context) : nullptr,
                                     .directory = *std::move(directory),
                                     .program = host::own_program(),
                                     .program_name = program_name()});
}

}  // namespace

Result<std::optional<double>> parse_number(const std::string& text, const NumberRule& rule) {
  using Number = std::optional<double>;
  if (text.empty()) return Number();
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value >= 0 && value <= rule.most) return Number(value);
  return Error{.kind = ErrorKind::kUsage,
               .where = std::string(rule.flag),
               .what = "cannot use the value",
               .got = "'" + text + "'",
               .expected = std::string(rule.expected),
               .fix = "write it as 0.5"};
}

void add_nodes(Parser& parser, AnswerFlags& flags) {
  parser
      .add_option("--nodes", flags.nodes,
                  "processes of this machine that have the model in parts; exact lists")
      .type_name("N");
  parser
      .add_option(
          "--join-at", flags.join_at,
          "where the N nodes join from other machines, which have DIR under the same path; prints how")
      .type_name("HOST:PORT");
}

void add_answering(Parser& parser, AnswerFlags& flags) {
  parser.add_option("DIR", flags.directory, "of a finished run, or its model/").required().type_name("");
  parser.add_flag("--net-alone", flags.net_alone, "without the training records that the model keeps");
  parser
      .add_option("--retrieval", flags.retrieval,
                  "exact, or lsh (hash tables find the net's labels; 'eval' measures what they miss)")
      .type_name("NAME");
  parser
      .add_option("--threshold", flags.threshold,
                  "leave out labels with less probability than P (0..1); an answer may then have none")
      .type_name("P");
  add_nodes(parser, flags);
}

Result<commands::OpenModel> model_to_open(Context& context, const AnswerFlags& flags, std::size_t top,
                                          std::function<bool()> stop) {
  const auto threshold = parse_threshold(flags.threshold);
  if (!threshold.ok()) return threshold.error();
  auto nodes = model_nodes(context, flags);
  if (!nodes.ok()) return nodes.error();
  return commands::OpenModel{.directory = *nodes ? absolute_path(flags.directory) : flags.directory,
                             .top = top,
                             .net_alone = flags.net_alone,
                             .retrieval = flags.retrieval,
                             .nodes = *std::move(nodes),
                             .stop = std::move(stop),
                             .threshold = *threshold};
}

Result<std::unique_ptr<commands::QuerySession>> open_answering(
    Context& context, const run::NodeHost& host,
    commands::EngineEntry::OpenSession commands::EngineEntry::* open, const commands::OpenModel& model) {
  const auto engine = context.engines.of_directory(host.disk, model.directory);
  if (!engine.ok()) return engine.error();
  const auto able = context.engines.ability(**engine, open, "answers queries", model.directory);
  if (!able.ok()) return able.error();
  return (*able)(host, model);
}

Result<void> check_model_flags(Context& context, const Parser& parser, const std::string& directory,
                               std::initializer_list<std::string_view> flags) {
  const auto there = context.disk.exists(directory);
  if (!there.ok() || !*there) return {};
  const auto engine = context.engines.of_directory(context.disk, directory);
  if (!engine.ok()) return engine.error();
  for (const std::string_view flag : flags) {
    const auto knows = [flag](const commands::EngineEntry& one) {
      return std::ranges::find(one.model_flags, flag) != one.model_flags.end();
    };
    if (!parser.given(std::string(flag)) || knows(**engine)) continue;
    std::vector<std::string_view> able;
    for (const commands::EngineEntry& one : context.engines.all()) {
      if (knows(one)) able.push_back(one.name);
    }
    return Error{.kind = ErrorKind::kUsage,
                 .where = std::string(flag),
                 .what = fmt::format("the flag is not for models of the engine '{}'", (*engine)->name),
                 .got = fmt::format("{}, and such a model in {}", flag, directory),
                 .expected = fmt::format("a model of: {}", fmt::join(able, ", ")),
                 .fix = "leave the flag out"};
  }
  return {};
}

std::string model_line(const commands::EngineEntry& engine, const std::string& directory) {
  const std::string line = fmt::format("the model is in {}/model", directory);
  return engine.predict ? fmt::format("{}; try: gossamer predict {} ...", line, shell_word(directory)) : line;
}

}  // namespace gossamer::cli
