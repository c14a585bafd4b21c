// SPDX-License-Identifier: Apache-2.0
#include "base/shell_word.h"

#include <gtest/gtest.h>

namespace gossamer {
namespace {

// Claim: a plain word stays as it is, and all others come out of a shell as they went in.
TEST(ShellWord, Quotes) {
  EXPECT_EQ(shell_word("runs/a-1.txt"), "runs/a-1.txt");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("-dash"), "./-dash") << "a command would take it for a flag";
  EXPECT_EQ(shell_word("it's $(x) `y` \\"), "'it'\\''s $(x) `y` \\'");
  EXPECT_EQ(shell_word("gr\xc3\xbc\xc3\x9f"), "'gr\xc3\xbc\xc3\x9f'");
}

// Claim: nothing of a word moves the cursor or ends the line.
TEST(ShellWord, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(shell_word("a\nb"), "$'a\\x0ab'");
  EXPECT_EQ(shell_word("\x1b[2J it's \\"), "$'\\x1b[2J it\\'s \\\\'");
}

}  // namespace
}  // namespace gossamer
