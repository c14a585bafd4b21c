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
  // An array whose first element is an object.
  struct Array {
    std::string key;
    std::vector<std::string> first = {};  // keys of the first element, at most 64
    bool whole = false;                   // its end was read
  };
  std::vector<std::string> all;  // in their order, at most 64
  std::vector<Array> arrays;     // at some of these keys
};

// Reads the first object of the text, which may be cut off, or go on behind it. What cannot be read ends it.
[[nodiscard]] TopKeys top_keys(std::string_view text);

}  // namespace gossamer
