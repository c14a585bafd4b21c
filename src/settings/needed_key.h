// SPDX-License-Identifier: Apache-2.0
//
// needed(): a key without which a run cannot begin, such as that of its data. Thread rule: pure function.
#pragma once

#include <string_view>

#include "base/result.h"
#include "settings/key_table.h"

namespace gossamer::settings {

// kUsage, with the key and its help, where the text of that key is empty. Requires a key of the table.
[[nodiscard]] Result<void> needed(const Values& values, std::string_view name);

}  // namespace gossamer::settings
