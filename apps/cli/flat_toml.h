// SPDX-License-Identifier: Apache-2.0
//
// The run.toml of a cluster's run, which has no sections: key = value, as the texts "key=value" that the
// command line has too. Thread rule: a plain function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gossamer::cli {

// In the order of the keys' names. Values are texts or whole numbers; all else is kUsage, with its place in
// `file`.
[[nodiscard]] Result<std::vector<std::string>> parse_flat_toml(std::string_view text, std::string_view file);

}  // namespace gossamer::cli
