// SPDX-License-Identifier: Apache-2.0
//
// Console is where a node tells a person what it is doing. Results do not come here: they are return
// values, which the program prints to standard output. The real console is the standard error stream
// (apps/cli). Tests collect the text.
//
// Thread rule: one thread.
#pragma once

#include <string_view>

namespace gossamer::run {

class Console {
 public:
  Console() = default;
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  virtual ~Console() = default;

  // Writes text as it is and flushes. The text is whole lines, unless the console is a terminal.
  virtual void write(std::string_view text) = 0;
  // Whether a line can be written without waiting. A pager or a stopped terminal may take none.
  [[nodiscard]] virtual bool ready() const { return true; }
  // Whether this is a terminal, on which a line may be drawn again.
  [[nodiscard]] virtual bool terminal() const = 0;
  // Columns of a terminal; 80 where that is not known.
  [[nodiscard]] virtual int columns() const = 0;
};

}  // namespace gossamer::run
