// SPDX-License-Identifier: Apache-2.0
//
// Which of the valid names did the user mean? For messages about unknown keys, commands, flags and presets.
// Thread rule: pure function, any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gossamer {

// The name with the smallest edit distance (insert, remove, replace, swap neighbours), the first among
// equals. `word` may also be the last part of a dotted name ("batch" of "train.batch"): that counts as one
// edit more. Empty without names.
[[nodiscard]] std::string nearest_name(std::string_view word, std::span<const std::string_view> names);

}  // namespace gossamer
