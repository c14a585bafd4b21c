// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace gossamer {

void check_failed(const char* condition, const char* names, std::string_view values, const char* file,
                  int line) {
  std::string operands;
  if (!values.empty()) operands = fmt::format(" ({} = {})", names, values);
  fmt::print(stderr, "CHECK failed: {}{} at {}:{}\n", condition, operands, file, line);
  std::fflush(stderr);
  std::abort();
}

}  // namespace gossamer
