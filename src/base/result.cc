// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

namespace gossamer {

std::string Error::message() const {
  std::string text;
  const auto add = [&text](const char* separator, const char* lead, const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text += separator;
    text += lead;
    text += part;
  };
  add("", "", where);
  add(": ", "", what);
  add(": ", "got ", got);
  add("; ", "expected ", expected);
  add("; ", "", fix);
  return text;
}

const char* name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kFailed: return "failed";
    case ErrorKind::kUsage: return "usage";
    case ErrorKind::kBadData: return "bad-data";
    case ErrorKind::kRefused: return "refused";
  }
  return "unknown";
}

}  // namespace gossamer
