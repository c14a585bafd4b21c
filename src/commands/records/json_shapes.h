// SPDX-License-Identifier: Apache-2.0
//
// JSON that is not one record a line: an array, an object that holds an array, objects with line ends within.
// Messages name it with a command that makes lines of it.
//
// Thread rule: plain functions.
#pragma once

#include <optional>
#include <string>

#include "commands/records/conversion.h"

namespace gossamer::commands {

// A shape and what to do about it.
struct JsonShape {
  std::string name;
  std::string fix;
};

// For a file that begins with '[': its elements have to be objects. Arrays of a text and its labels get a
// command, too; other elements get words.
[[nodiscard]] JsonShape array_shape(const SeenFile& file);

// For a file that begins with '{'. Nothing where its first line is an object of its own, is cut off, or is no
// JSON.
[[nodiscard]] std::optional<JsonShape> object_shape(const SeenFile& file);

// The command that makes lines of the one array of objects that an object at the beginning holds. Nothing
// where it has none, has several, or is a record.
[[nodiscard]] std::optional<std::string> unwrap_records(const SeenFile& file);

}  // namespace gossamer::commands
