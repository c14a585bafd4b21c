// SPDX-License-Identifier: Apache-2.0
//
// One line of JSON as a document. The line is an object with a string "text"; other keys are ignored. A
// document may hold any character, also those that JSON writes as escapes, such as the zero byte (\u0000): a
// program put it there on purpose. Internal to learn/tokens.
//
// Thread rule: plain functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "learn/data/read/bad_lines.h"

namespace gossamer::tokens {

// Appends the document of a line, which has no line end, to `out`. Or says why the line is bad, and leaves
// `out` as it was. That is a line that is no JSON, no object, has no "text" or two of them, or a "text" that
// is no string. Half of a surrogate pair is no JSON, nor are values within more than kMostJsonLevels.
[[nodiscard]] std::optional<data::BadLine> read_document(std::string_view line, std::string& out);

}  // namespace gossamer::tokens
