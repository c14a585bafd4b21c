// SPDX-License-Identifier: Apache-2.0
//
// The two streams of the program. StderrConsole is where a person reads what goes on; Output is standard
// output, which holds results only and whose errors (closed pipe, full disk) are errors of the command.
//
// Thread rule: one thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "node/console.h"

namespace gossamer::cli {

class StderrConsole final : public node::Console {
 public:
  void write(std::string_view text) override;
  [[nodiscard]] bool ready() const override;
  [[nodiscard]] bool terminal() const override;
  [[nodiscard]] int columns() const override;
};

class Output {
 public:
  // Collects; writes out when enough has gathered. The first error is kept for flush().
  void write(std::string_view text);
  void line(std::string_view text);
  // Everything written so far has left the program, or kFailed.
  [[nodiscard]] Result<void> flush();
  // Somebody watches; not a file or a pipe.
  [[nodiscard]] static bool terminal();
  // Standard output is a pipe whose reader has gone (`gossamer ... | head -1`).
  [[nodiscard]] bool reader_left() const;

 private:
  void drain();

  std::string buffer_;
  int error_ = 0;  // errno of the first failed write
};

}  // namespace gossamer::cli
