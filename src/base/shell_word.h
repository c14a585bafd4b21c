// SPDX-License-Identifier: Apache-2.0
//
// Writes commands that people copy into a shell. Thread rule: plain function.
#pragma once

#include <string>
#include <string_view>

namespace gossamer {

// The text as one word of a shell's line, whatever is in it. Bytes that would move the cursor are written as
// \xHH in $'...', which bash, zsh and ksh read.
[[nodiscard]] std::string shell_word(std::string_view text);

}  // namespace gossamer
