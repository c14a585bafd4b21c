// SPDX-License-Identifier: Apache-2.0
//
// The values of keys as text and back: internal to config.cc. read() gives false for a value that the rules
// refuse, and then leaves `out` alone. Thread rule: pure functions.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engines/sparse/config/config.h"

namespace gossamer::engine::config_value {

inline constexpr std::string_view kAuto = "auto";
inline constexpr std::string_view kNone = "none";  // the empty list
inline constexpr std::size_t kLongestList = 8;

inline std::string write(std::uint64_t value, const KeyRules& /*rules*/) { return fmt::format("{}", value); }
inline std::string write(std::uint32_t value, const KeyRules& /*rules*/) { return fmt::format("{}", value); }
// The shortest text that reads back to the same number.
inline std::string write(double value, const KeyRules& /*rules*/) { return fmt::format("{}", value); }
inline std::string write(bool value, const KeyRules& /*rules*/) { return value ? "true" : "false"; }
inline std::string write(const std::string& value, const KeyRules& /*rules*/) { return value; }

inline std::string write(const std::vector<std::uint32_t>& values, const KeyRules& /*rules*/) {
  return values.empty() ? std::string(kNone) : fmt::format("{}", fmt::join(values, ","));
}

template <class E>
  requires std::is_enum_v<E>
std::string write(E value, const KeyRules& rules) {
  return std::string(rules.choices.at(static_cast<std::size_t>(value)));
}

template <class T>
std::string write(const std::optional<T>& value, const KeyRules& rules) {
  return value.has_value() ? write(*value, rules) : std::string(kAuto);
}

template <class T>
bool parse_number(std::string_view text, T& out) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && stop == end;
}

inline bool read(std::string_view text, const KeyRules& rules, std::uint64_t& out) {
  std::uint64_t value = 0;
  if (!parse_number(text, value) || value % rules.multiple_of != 0) return false;
  const auto number = static_cast<double>(value);
  if (number < rules.min || number > rules.max) return false;
  out = value;
  return true;
}

inline bool read(std::string_view text, const KeyRules& rules, std::uint32_t& out) {
  std::uint64_t value = 0;
  if (!read(text, rules, value) || value > UINT32_MAX) return false;
  out = static_cast<std::uint32_t>(value);
  return true;
}

inline bool read(std::string_view text, const KeyRules& rules, double& out) {
  double value = 0;
  if (!parse_number(text, value) || !std::isfinite(value)) return false;
  if (value < rules.min || value > rules.max) return false;
  out = value;
  return true;
}

inline bool read(std::string_view text, const KeyRules& /*rules*/, bool& out) {
  if (text != "true" && text != "false") return false;
  out = text == "true";
  return true;
}

inline bool read(std::string_view text, const KeyRules& /*rules*/, std::string& out) {
  out = std::string(text);
  return true;
}

inline bool read(std::string_view text, const KeyRules& rules, std::vector<std::uint32_t>& out) {
  std::vector<std::uint32_t> values;
  while (text != kNone) {
    const std::size_t comma = text.find(',');
    if (values.size() == kLongestList || !read(text.substr(0, comma), rules, values.emplace_back()))
      return false;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  out = std::move(values);
  return true;
}

template <class E>
  requires std::is_enum_v<E>
bool read(std::string_view text, const KeyRules& rules, E& out) {
  for (std::size_t i = 0; i < rules.choices.size(); ++i) {
    if (rules.choices[i] != text) continue;
    out = static_cast<E>(i);
    return true;
  }
  return false;
}

template <class T>
bool read(std::string_view text, const KeyRules& rules, std::optional<T>& out) {
  if (text == kAuto) {
    out.reset();
    return true;
  }
  T value{};
  if (!read(text, rules, value)) return false;
  out = value;
  return true;
}

}  // namespace gossamer::engine::config_value
