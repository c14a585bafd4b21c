// SPDX-License-Identifier: Apache-2.0
//
// The arguments of one command. CLI11 has the grammar, and the words for errors are our own. An
// error about a wrong flag names the nearest right one. Only arguments.cc includes CLI11,
// because it takes seconds to compile.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace gossamer::cli {

// The grammar of a command; `help` is its first line in --help, `example` its last lines.
struct Grammar {
  std::string_view name;  // "data import"
  std::string_view help;
  std::string_view example;
};

enum class Parsed {
  kRun,
  kHelp,  // --help was asked for: print help() and stop
};

// Sets more of an option. It lives as long as its parser.
class Option {
 public:
  Option(CLI::Option& option, bool& empty_too) : option_(option), empty_too_(empty_too) {}

  Option& required();
  // The word behind the option's name in --help; empty: none.
  Option& type_name(const std::string& name);
  // A list is written "--keep a --keep b" and not "--keep a b".
  Option& one_value_each();
  // "" is a value like others. An empty value of another option is refused: it comes of a shell's variable
  // that is not set, and would count as no option at all.
  Option& may_be_empty();

 private:
  CLI::Option& option_;
  bool& empty_too_;
};

// The arguments of one command. What is bound to it outlives parse().
class Parser {
 public:
  explicit Parser(const Grammar& grammar);
  Parser(Parser&&) noexcept;
  ~Parser();

  // "--out" takes a value, "DIR" is an argument by its place. The value is bound as the user wrote it.
  Option add_option(const std::string& name, std::string& value, const std::string& help);
  // The same for several values.
  Option add_option(const std::string& name, std::vector<std::string>& values, const std::string& help);
  void add_flag(const std::string& name, bool& value, const std::string& help);

  // Parses the arguments into the bound values. kUsage for anything that does not fit.
  [[nodiscard]] Result<Parsed> parse(std::span<const std::string> arguments);
  // Whether the user gave this argument. To be called after parse().
  [[nodiscard]] bool given(const std::string& name) const;
  [[nodiscard]] std::string help() const;

 private:
  struct Bound {
    CLI::Option* option;
    std::string* value;                // either this
    std::vector<std::string>* values;  // or these
    bool empty_too = false;
  };
  Option bind(Bound bound);

  std::unique_ptr<CLI::App> grammar_;
  std::deque<Bound> bound_;  // each stays where it is
};

// The range of an integer option: [min, max]. CLI11's own message names neither range nor remedy.
struct CountRule {
  std::string_view flag;
  std::uint64_t min = 1;
  std::uint64_t max = 1;
};
[[nodiscard]] Result<std::uint64_t> parse_count(std::string_view text, const CountRule& rule);

}  // namespace gossamer::cli
