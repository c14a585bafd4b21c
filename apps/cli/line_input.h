// SPDX-License-Identifier: Apache-2.0
//
// LineInput reads the lines of standard input as they come. It hands over the lines that are
// there without waiting for more. So a person at a terminal gets an answer to each line, and
// a pipe is read in large pieces.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace gossamer::cli {

class LineInput {
 public:
  // The complete lines that have arrived, at least one; empty at the end of the input. Line ends (LF, CRLF)
  // are taken off. A last line without one counts.
  [[nodiscard]] Result<std::vector<std::string>> next();

 private:
  std::string rest_;  // of a line that has not ended yet
  bool ended_ = false;
};

}  // namespace gossamer::cli
