// SPDX-License-Identifier: Apache-2.0
//
// Arguments of one command: CLI11 for the grammar, our own words for what is wrong. Wrong flags name the
// nearest right one. Thread rule: one thread.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gossamer::cli {

// The grammar of a command; `help` is its first line in --help, `example` its last lines.
struct Grammar {
  std::string_view name;  // "data import"
  std::string_view help;
  std::string_view example;
};
[[nodiscard]] std::unique_ptr<CLI::App> make_parser(const Grammar& grammar);

enum class Parsed {
  kRun,
  kHelp,  // --help was asked for: print help_text and stop
};

// Fills the variables bound to the parser. kUsage for anything that does not fit.
[[nodiscard]] Result<Parsed> parse(CLI::App& parser, std::span<const std::string> arguments);

[[nodiscard]] std::string help_text(const CLI::App& parser);

// An integer option's value in [1, max]; CLI11's own message names neither range nor remedy.
struct CountRule {
  std::string_view flag;
  std::uint64_t min = 1;
  std::uint64_t max = 1;
};
[[nodiscard]] Result<std::uint64_t> parse_count(std::string_view text, const CountRule& rule);

}  // namespace gossamer::cli
