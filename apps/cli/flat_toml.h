// SPDX-License-Identifier: Apache-2.0
//
// Reads the run.toml of a cluster's run, which has no sections. Each key = value becomes the text
// "key=value", as on the command line. Thread rule: a plain function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gossamer::cli {

// The texts are in the order of the keys' names. Values are texts or whole numbers. Anything else is
// kUsage, with its place in `file`.
[[nodiscard]] Result<std::vector<std::string>> parse_flat_toml(std::string_view text, std::string_view file);

}  // namespace gossamer::cli
