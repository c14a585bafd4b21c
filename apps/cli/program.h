// SPDX-License-Identifier: Apache-2.0
//
// The program finds the command that the arguments name, runs it, prints errors and returns the exit status:
//
//   0             done
//   1             failed
//   2             usage
//   3             bad data
//   4             refused
//   128 + signal  a clean stop
//
// Thread rule: one thread.
#pragma once

#include <span>
#include <string>

#include "apps/cli/command.h"
#include "base/result.h"

namespace gossamer::cli {

[[nodiscard]] int run_program(Context& context, std::span<const std::string> arguments);

// The five parts of an error on lines of their own, empty ones left out:
//   gossamer train: train.txt:17:5: cannot read a feature
//     got       'x:1'
//     expected  INDEX:VALUE
//     to do     mend the line
// A fix may have further lines, such as a command to be copied. No token of a run stands in the text, even if
// somebody typed one in the wrong place.
[[nodiscard]] std::string render(const Error& error, std::string_view command);

}  // namespace gossamer::cli
