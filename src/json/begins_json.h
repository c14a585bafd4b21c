// SPDX-License-Identifier: Apache-2.0
//
// Whether a text begins as JSON: its first value is read, and no more. Words may begin with a bracket too.
//
// Thread rule: any thread, no state.
#pragma once

#include <string_view>

namespace gossamer {

// Whether the text begins with an object, or with an array. The first value of the array must be an object,
// an array or a string. Behind it the array must end or have another value. Where the text is not `whole`, it
// may end before.
[[nodiscard]] bool begins_json(std::string_view text, bool whole);

}  // namespace gossamer
