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
// equals; a name of which `word` is the last part ("batch" of "train.batch") counts as near. Empty without
// names.
[[nodiscard]] std::string nearest_name(std::string_view word, std::span<const std::string_view> names);

}  // namespace gossamer
