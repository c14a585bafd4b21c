// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <gtest/gtest.h>

namespace gossamer {
namespace {

// The 95 bytes of printable ASCII stay, and all other bytes are replaced.
TEST(Printable, EveryByte) {
  int kept = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    const bool ascii = byte >= 0x20 && byte < 0x7f;
    EXPECT_EQ(printable(text), ascii ? text : "?") << byte;
    EXPECT_EQ(quote(text).size(), ascii ? 3 : 6) << byte;
    if (ascii) ++kept;
  }
  EXPECT_EQ(kept, 95);
  EXPECT_EQ(quote(std::string_view("a\0\xff", 3)), "'a\\x00\\xFF'");
}

// Claim: what is shown of a text moves no cursor and ends no line; UTF-8 stays as it is.
TEST(Printable, NothingMovesTheCursor) {
  EXPECT_EQ(visible("M\u00fcnchen \x1b[31m\r\n\x7f"), "M\u00fcnchen \\x1b[31m\\x0d\\x0a\\x7f");
  EXPECT_EQ(visible(""), "");
  // Controls beyond ASCII: as characters, and as bytes that continue none.
  EXPECT_EQ(visible("\xc2\x9b"
                    "2J"),
            "\xc2\\x9b2J");
  EXPECT_EQ(visible("\x9b"
                    "2J \xe4\xb8\x9b \xc3\x9c"),
            "\\x9b2J \xe4\xb8\x9b \xc3\x9c");
}

// No more of a text than was asked for, and a quotation says that something is missing.
TEST(Printable, Lengths) {
  const std::string text(400, 'x');
  EXPECT_EQ(printable(text), text.substr(0, kLineBytes));
  EXPECT_EQ(printable(text, kAllBytes), text);
  EXPECT_EQ(quote(text, 400), "'" + text + "'");
  EXPECT_EQ(quote(text, 2), "'xx...'");
  EXPECT_EQ(quote(""), "''");
}

}  // namespace
}  // namespace gossamer
