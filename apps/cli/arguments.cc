// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/arguments.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ranges>
#include <utility>

#include "base/nearest_name.h"

namespace gossamer::cli {
namespace {

Error usage(const CLI::App& parser, std::string what) {
  return {.kind = ErrorKind::kUsage,
          .where = {},
          .what = std::move(what),
          .got = {},
          .expected = {},
          .fix = fmt::format("'{} --help' shows all arguments and an example", parser.get_name())};
}

std::vector<std::string> flag_names(const CLI::App& parser) {
  std::vector<std::string> names;
  for (const CLI::Option* option : parser.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// "--out DIR" or "KIND", as the help shows it.
std::string spelling(const CLI::Option& option) {
  const std::string name = option.get_name();
  return option.get_positional() || option.get_type_name().empty() ? name
                                                                   : name + " " + option.get_type_name();
}

Error missing_argument(const CLI::App& parser) {
  for (const CLI::Option* option : parser.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    Error error = usage(parser, fmt::format("{} is missing", option->get_name()));
    error.expected = fmt::format("{}: {}", spelling(*option), option->get_description());
    return error;
  }
  return usage(parser, "an argument is missing");
}

// `message` is CLI11's, which begins with the option's name.
Error wrong_number_of_values(const CLI::App& parser, const std::string& message) {
  const std::string name = message.substr(0, message.find(':'));
  const bool repeated = message.find(": At Most 1 ") != std::string::npos;
  Error error =
      usage(parser, fmt::format("{} {}", name, repeated ? "is given more than once" : "needs a value"));
  if (const CLI::Option* option = parser.get_option_no_throw(name); option != nullptr) {
    error.expected = fmt::format("{}: {}", spelling(*option), option->get_description());
  }
  return error;
}

// `fault` goes on behind the option's name.
Error wrong_value(const CLI::App& parser, const CLI::Option& option, std::string_view fault) {
  Error error = usage(parser, fmt::format("{} {}", option.get_name(), fault));
  error.expected = fmt::format("{}: {}", spelling(option), option.get_description());
  return error;
}

// The library takes any word behind an option as its value. "--out --quiet" would make a directory of that
// name, and "--out= train.steps=9" likewise.
Result<void> check_values(const CLI::App& parser, std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (!words[i].starts_with("--")) continue;
    const std::size_t end = words[i].find('=');
    const CLI::Option* const option = parser.get_option_no_throw(words[i].substr(0, end));
    if (option == nullptr) continue;
    if (option->get_items_expected_max() == 0) {
      if (end == std::string::npos) continue;
      Error error = usage(parser, fmt::format("{} takes no value", option->get_name()));
      error.got = fmt::format("'{}'", words[i]);
      return error;
    }
    if (end != std::string::npos) {
      if (end + 1 == words[i].size()) return wrong_value(parser, *option, "needs a value");
      continue;
    }
    ++i;
    if (i < words.size() && words[i].starts_with("--")) {
      Error error = wrong_value(parser, *option, "needs a value");
      error.got = fmt::format("'{}'", words[i]);
      error.fix =
          fmt::format("write a value behind it, or {}={} if that is the value", option->get_name(), words[i]);
      return error;
    }
  }
  return {};
}

Error unknown_flag(const CLI::App& parser, const std::string& flag) {
  const std::vector<std::string> names = flag_names(parser);
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string word = flag.substr(0, flag.find('='));
  Error error = usage(parser, fmt::format("there is no flag {}", word));
  error.got = fmt::format("'{}'", flag);
  error.expected = fmt::format("a flag such as {}", nearest_name(word, views));
  return error;
}

// The library would split a word such as "[a, b]" at its commas where a list is read. A byte in front keeps
// it whole. What is bound is what the user wrote.
constexpr char kGuard = '\x01';
std::string guarded(const std::string& word) {
  return word.starts_with('[') && word.ends_with(']') ? kGuard + word : word;
}
void take_guard(std::string& value) {
  if (value.size() > 1 && value[0] == kGuard && value[1] == '[') value.erase(0, 1);
}

}  // namespace

Option& Option::required() {
  option_.required();
  return *this;
}
Option& Option::type_name(const std::string& name) {
  option_.type_name(name);
  return *this;
}
Option& Option::one_value_each() {
  option_.allow_extra_args(false);
  return *this;
}

Option& Option::may_be_empty() {
  empty_too_ = true;
  return *this;
}

Parser::Parser(const Grammar& grammar)
    : grammar_(
          std::make_unique<CLI::App>(std::string(grammar.help), fmt::format("gossamer {}", grammar.name))) {
  grammar_->allow_extras();
  grammar_->set_help_flag("-h,--help", "show this and stop");
  grammar_->footer(std::string(grammar.example));
  grammar_->get_formatter()->column_width(28);
}
Parser::Parser(Parser&&) noexcept = default;
Parser::~Parser() = default;

Option Parser::bind(Bound bound) {
  bound_.push_back(bound);
  return Option(*bound.option, bound_.back().empty_too);
}
Option Parser::add_option(const std::string& name, std::string& value, const std::string& help) {
  return bind({.option = grammar_->add_option(name, value, help), .value = &value, .values = nullptr});
}
Option Parser::add_option(const std::string& name, std::vector<std::string>& values,
                          const std::string& help) {
  return bind({.option = grammar_->add_option(name, values, help), .value = nullptr, .values = &values});
}
void Parser::add_flag(const std::string& name, bool& value, const std::string& help) {
  grammar_->add_flag(name, value, help);
}

Result<Parsed> Parser::parse(std::span<const std::string> arguments) {
  CLI::App& parser = *grammar_;
  if (auto checked = check_values(parser, arguments); !checked.ok()) return checked.error();
  std::vector<std::string> reversed;
  for (const std::string& word : std::views::reverse(arguments)) reversed.push_back(guarded(word));
  try {
    parser.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return Parsed::kHelp;
  } catch (const CLI::RequiredError&) {
    // A wrong flag is reported first, because it may explain a missing argument.
    for (const std::string& extra : parser.remaining()) {
      if (extra.starts_with("-") && extra != "-") return unknown_flag(parser, extra);
    }
    return missing_argument(parser);
  } catch (const CLI::ArgumentMismatch& error) {
    return wrong_number_of_values(parser, error.what());
  } catch (const CLI::ParseError& error) {
    Error wrong = usage(parser, "cannot read the arguments");
    wrong.got = fmt::format("'{}'", fmt::join(arguments, " "));
    wrong.expected = error.what();
    return wrong;
  }
  for (const Bound& one : bound_) {
    const std::span<std::string> values =
        one.value != nullptr ? std::span(one.value, 1) : std::span(*one.values);
    std::ranges::for_each(values, take_guard);
    if (one.option->count() > 0 && !one.empty_too && std::ranges::any_of(values, &std::string::empty))
      return wrong_value(parser, *one.option, "has an empty value");
  }
  bool flags_end = false;  // behind "--" a word that begins with a dash is no flag
  for (std::string extra : parser.remaining()) {
    if (extra == "--" && !std::exchange(flags_end, true)) continue;
    if (!flags_end && extra.starts_with("-") && extra != "-") return unknown_flag(parser, extra);
    take_guard(extra);
    Error wrong = usage(parser, "there is one argument too many");
    wrong.got = fmt::format("'{}'", extra);
    wrong.expected = "only the arguments of the command";
    return wrong;
  }
  return Parsed::kRun;
}

bool Parser::given(const std::string& name) const { return grammar_->count(name) > 0; }

std::string Parser::help() const { return grammar_->help(); }

Result<std::uint64_t> parse_count(std::string_view text, const CountRule& rule) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value >= rule.min && value <= rule.max) return value;
  return Error{.kind = ErrorKind::kUsage,
               .where = std::string(rule.flag),
               .what = "cannot use the value",
               .got = fmt::format("'{}'", text),
               .expected = fmt::format("an integer {}..{}", rule.min, rule.max),
               .fix = "write a number in that range"};
}

}  // namespace gossamer::cli
