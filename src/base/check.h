// SPDX-License-Identifier: Apache-2.0
//
// CHECK(condition, values...): states what our own code guarantees; stays on in every build. A broken one is
// a bug of ours: it prints the condition, the values with their names, and the place, then aborts.
//
//   CHECK(rows == view.rows, rows, view.rows);
//   // CHECK failed: rows == view.rows (rows, view.rows = 4096, 4032) at learn/sparse/network/row_table.cc:88
//
// For what the world or the user may do wrong use Result (base/result.h). Thread rule: any thread.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace gossamer {

// Prints and aborts. `values` holds the operands, already formatted, in the order of `names`.
[[noreturn]] void check_failed(const char* condition, const char* names, std::string_view values,
                               const char* file, int line);

// While it lives, a CHECK that fails in this thread also says `text`: which seed of a thousand ran, and how
// to run it again. One at a time in a thread; `text` outlives it.
class CheckContext {
 public:
  explicit CheckContext(std::string_view text);
  CheckContext(const CheckContext&) = delete;
  CheckContext& operator=(const CheckContext&) = delete;
  ~CheckContext();
};

namespace check_detail {

template <class... Values>
std::string format_values(const Values&... values) {
  std::string text;
  [[maybe_unused]] const auto add = [&text](const auto& value) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{}", value);
  };
  (add(values), ...);
  return text;
}

}  // namespace check_detail
}  // namespace gossamer

#define CHECK(condition, ...)                                                                             \
  do {                                                                                                    \
    if (!(condition)) [[unlikely]]                                                                        \
      ::gossamer::check_failed(#condition, "" #__VA_ARGS__,                                               \
                               ::gossamer::check_detail::format_values(__VA_ARGS__), __FILE__, __LINE__); \
  } while (false)
