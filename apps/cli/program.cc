// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/nearest_name.h"
#include "base/printable.h"
#include "cluster/admission/token.h"

namespace gossamer::cli {
namespace {

std::string general_help(std::span<const Command> commands) {
  std::string text =
      "Gossamer trains huge sparse classifiers on ordinary machines, and language models.\n\n"
      "Usage: gossamer COMMAND [ARGUMENTS] [key=value ...]\n\nCommands:\n";
  for (const Command& command : commands) text += fmt::format("  {:<20} {}\n", command.name, command.help);
  text +=
      "\n'gossamer COMMAND --help' explains a command, with an example.\n\n"
      "Example:\n"
      "  gossamer train xmc data.train=train.txt data.test=test.txt --out runs/first\n"
      "  gossamer predict runs/first '3:0.5 17:1.2'\n\n"
      "GOSSAMER_ISA=scalar|sse4|avx2|avx512|avx512-bf16 forces an instruction set.\n";
  return text;
}

std::optional<Command> find(std::span<const Command> commands, std::string_view name) {
  const auto it = std::ranges::find(commands, name, &Command::name);
  return it == commands.end() ? std::nullopt : std::optional(*it);
}

// Commands of which `word` is the first of two words: "data".
std::vector<std::string_view> second_words(std::span<const Command> commands, std::string_view word) {
  std::vector<std::string_view> words;
  for (const Command& command : commands) {
    if (command.name.size() > word.size() && command.name.starts_with(word) &&
        command.name[word.size()] == ' ') {
      words.push_back(command.name.substr(word.size() + 1));
    }
  }
  return words;
}

Error unknown_command(std::span<const Command> commands, std::string_view word) {
  std::vector<std::string_view> names;
  for (const Command& command : commands) {
    const std::string_view name = command.name.substr(0, command.name.find(' '));
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  Error error{.kind = ErrorKind::kUsage,
              .where = {},
              .what = fmt::format("there is no command '{}'", word),
              .got = {},
              .expected = fmt::format("a command such as '{}' (all: {})", nearest_name(word, names),
                                      fmt::join(names, ", ")),
              .fix = "'gossamer --help' lists all commands"};
  if (word.starts_with('-')) {
    error.what = "the command is missing";
    error.got = fmt::format("'{}'", word);
    error.expected = fmt::format("one of: {}; flags come after it", fmt::join(names, ", "));
  }
  return error;
}

Error unknown_second_word(std::string_view first, std::span<const std::string_view> words,
                          std::span<const std::string> rest) {
  Error error{.kind = ErrorKind::kUsage,
              .where = {},
              .what = fmt::format("'gossamer {}' needs one more word", first),
              .got = {},
              .expected = fmt::format("one of: {}", fmt::join(words, ", ")),
              .fix = "'gossamer --help' lists all commands"};
  if (!rest.empty()) {
    error.what = fmt::format("there is no command '{} {}'", first, rest[0]);
    error.expected = fmt::format("a command such as '{} {}'", first, nearest_name(rest[0], words));
  }
  return error;
}

int finish(Context& context, std::string_view name, Result<ExitStatus> done) {
  if (auto flushed = context.output.flush(); done.ok() && !flushed.ok()) {
    // The reader of `gossamer ... | head` wants no more, and no message either.
    if (context.output.reader_left()) return static_cast<int>(ErrorKind::kFailed);
    done = flushed.error();
  }
  if (done.ok()) return *done;
  context.console.write(render(done.error(), name));
  return static_cast<int>(done.error().kind);
}

bool asks_for_help(std::string_view word) { return word == "--help" || word == "-h" || word == "help"; }

int run_group(Context& context, std::span<const Command> commands, std::span<const std::string> arguments) {
  const std::string& first = arguments[0];
  const std::vector<std::string_view> words = second_words(commands, first);
  if (words.empty()) return finish(context, "", unknown_command(commands, first));
  if (arguments.size() > 1 && asks_for_help(arguments[1])) {
    for (const std::string_view word : words) {
      const std::optional<Command> command = find(commands, fmt::format("{} {}", first, word));
      const std::vector<std::string> help = {"--help"};
      const int status = finish(context, command->name, command->run(context, *command, help));
      if (status != 0) return status;
    }
    return 0;
  }
  return finish(context, first, unknown_second_word(first, words, arguments.subspan(1)));
}

// The lines of a fix, for a command stands on a line of its own. Names within have no line ends: they are
// quoted, or words of a shell.
std::string visible_lines(std::string_view text) {
  std::string out;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    out += visible(text.substr(0, end)) + "\n  ";
    text.remove_prefix(end + 1);
  }
  return out + visible(text);
}

}  // namespace

std::string render(const Error& error, std::string_view command) {
  std::string text = command.empty() ? "gossamer: " : fmt::format("gossamer {}: ", command);
  if (!error.where.empty()) text += visible(error.where) + ": ";
  text += visible(error.what) + "\n";
  const auto part = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<9} {}\n", name, value);
  };
  part("got", visible(error.got));
  part("expected", visible(error.expected));
  part("to do", visible_lines(error.fix));
  return cluster::hide_tokens(text);
}

int run_program(Context& context, std::span<const std::string> arguments) {
  const std::vector<Command> commands = all_commands();
  if (arguments.empty()) {
    context.console.write(general_help(commands));
    return static_cast<int>(ErrorKind::kUsage);
  }
  if (asks_for_help(arguments[0]) && arguments.size() == 1) {
    context.output.write(general_help(commands));
    return finish(context, "", 0);
  }
  std::vector<std::string> words(arguments.begin(), arguments.end());
  if (asks_for_help(words[0])) {  // "help train" is "train --help"
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (words[0] == "--version") words[0] = "version";
  for (const std::size_t length : {std::size_t{2}, std::size_t{1}}) {
    if (words.size() < length) continue;
    const std::string name = length == 2 ? words[0] + " " + words[1] : words[0];
    const std::optional<Command> command = find(commands, name);
    if (!command.has_value()) continue;
    return finish(context, name, command->run(context, *command, std::span(words).subspan(length)));
  }
  return run_group(context, commands, words);
}

}  // namespace gossamer::cli
