// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace gossamer {
namespace {

// A failed CHECK has no caller to return to: what its message needs must lie where it can find it.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local std::string_view check_context;

}  // namespace

CheckContext::CheckContext(std::string_view text) { check_context = text; }
CheckContext::~CheckContext() { check_context = {}; }

void check_failed(const char* condition, const char* names, std::string_view values, const char* file,
                  int line) {
  std::string operands;
  if (!values.empty()) operands = fmt::format(" ({} = {})", names, values);
  fmt::print(stderr, "CHECK failed: {}{} at {}:{}\n", condition, operands, file, line);
  if (!check_context.empty()) fmt::print(stderr, "{}\n", check_context);
  std::fflush(stderr);
  std::abort();
}

}  // namespace gossamer
