// SPDX-License-Identifier: Apache-2.0
//
// The keys at the top of a JSON object, and which of them hold arrays of objects. An object may be a whole
// file, so no value is made of it.
//
// Thread rule: any thread, no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gossamer {

struct TopKeys {
  std::vector<std::string> all;                // in their order, at most 64
  std::vector<std::string> arrays_of_objects;  // of them, those of arrays whose first element is an object
};

// Reads the first object of the text, which may be cut off, or go on behind it. What cannot be read ends it.
[[nodiscard]] TopKeys top_keys(std::string_view text);

}  // namespace gossamer
