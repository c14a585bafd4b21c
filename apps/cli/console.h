// SPDX-License-Identifier: Apache-2.0
//
// The two streams of the program. On StderrConsole a person reads what goes on. Output is standard output,
// which holds results only. Its errors (closed pipe, full disk) are errors of the command.
//
// Thread rule: one thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "run/console.h"

namespace gossamer::cli {

class StderrConsole final : public run::Console {
 public:
  void write(std::string_view text) override;
  [[nodiscard]] bool ready() const override;
  [[nodiscard]] bool terminal() const override;
  [[nodiscard]] int columns() const override;
};

class Output {
 public:
  // Collects text, and writes it out when enough has gathered. The first error is kept for flush().
  void write(std::string_view text);
  void line(std::string_view text);
  // Writes out everything so far. kFailed when that fails, or failed before.
  [[nodiscard]] Result<void> flush();
  // Whether a person watches: the output is neither a file nor a pipe.
  [[nodiscard]] static bool terminal();
  // Whether standard output is a pipe that its reader has left (`gossamer ... | head -1`).
  [[nodiscard]] bool reader_left() const;

 private:
  void drain();

  std::string buffer_;
  int error_ = 0;  // errno of the first failed write
};

}  // namespace gossamer::cli
