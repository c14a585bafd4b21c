// SPDX-License-Identifier: Apache-2.0
//
// What the tests of readers compare: the items of a text, and the report. Only tests include it. Thread rule:
// plain values.
#pragma once

#include <string>
#include <vector>

#include "learn/data/read/reading.h"

namespace gossamer::data {

template <class Item>
struct ReadItems {
  std::vector<Item> items;
  Result<ReadReport> report = ReadReport{};

  [[nodiscard]] std::string message() const { return report.ok() ? "ok" : report.error().message(); }
};

// The end of a message about a bad line.
inline constexpr const char* kFix = "; mend the line, or use --skip-bad N to leave out up to N bad lines";

}  // namespace gossamer::data
