// SPDX-License-Identifier: Apache-2.0
//
// The values of keys as text and back, by the type of the field. read() gives false for a text that the rules
// refuse, and then leaves `out` alone. Thread rule: pure functions.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/time.h"

namespace gossamer::settings {

inline constexpr std::string_view kAuto = "auto";
inline constexpr std::string_view kEmptyList = "none";
inline constexpr std::size_t kLongestList = 8;

// The texts that a key takes.
struct KeyRules {
  // Numbers lie in [min, max]. Integers, and those of lists, are multiples of `multiple_of`.
  double min = 0;
  double max = 0;
  std::uint64_t multiple_of = 1;
  // Words in the order of an enum's values; those of true and false; or the only integers.
  std::vector<std::string_view> choices = {};
  std::string_view unset = kAuto;   // the word of an empty optional; empty: no word empties it
  std::string_view shown = {};      // help shows it in place of the value
  Duration unit = from_seconds(1);  // of a Duration
  // The value is the path of a file, of which a run's directory keeps this: "cache". A resumed run whose
  // directory has no such copy may find the file elsewhere. Nothing: the value never changes in a run.
  std::optional<std::string_view> kept_in = {};
};

enum class KeyType { kInteger, kNumber, kSwitch, kText, kChoice, kList };

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class T>
constexpr KeyType type_of() {
  if constexpr (kIsOptional<T>) {
    return type_of<typename T::value_type>();
  } else if constexpr (std::is_same_v<T, bool>) {
    return KeyType::kSwitch;
  } else if constexpr (std::is_enum_v<T>) {
    return KeyType::kChoice;
  } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, Duration>) {
    return KeyType::kNumber;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return KeyType::kText;
  } else if constexpr (std::is_same_v<T, std::vector<std::uint32_t>>) {
    return KeyType::kList;
  } else {
    static_assert(std::unsigned_integral<T>);
    return KeyType::kInteger;
  }
}

template <std::unsigned_integral T>
std::string write(T value, const KeyRules& /*rules*/) {
  return fmt::format("{}", value);
}
// The shortest text that reads back to the same number.
inline std::string write(double value, const KeyRules& /*rules*/) { return fmt::format("{}", value); }
inline std::string write(Duration value, const KeyRules& rules) {
  return fmt::format("{}", static_cast<double>(value.ns) / static_cast<double>(rules.unit.ns));
}
inline std::string write(bool value, const KeyRules& rules) {
  if (rules.choices.empty()) return value ? "true" : "false";
  return std::string(rules.choices.at(value ? 0 : 1));
}
inline std::string write(const std::string& value, const KeyRules& /*rules*/) { return value; }

inline std::string write(const std::vector<std::uint32_t>& values, const KeyRules& /*rules*/) {
  return values.empty() ? std::string(kEmptyList) : fmt::format("{}", fmt::join(values, ","));
}

template <class E>
  requires std::is_enum_v<E>
std::string write(E value, const KeyRules& rules) {
  return std::string(rules.choices.at(static_cast<std::size_t>(value)));
}

template <class T>
std::string write(const std::optional<T>& value, const KeyRules& rules) {
  return value.has_value() ? write(*value, rules) : std::string(rules.unset);
}

template <class T>
bool parse_number(std::string_view text, T& out) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && stop == end;
}

// The place of a text among the choices, if it is there.
inline std::optional<std::size_t> choice_of(std::string_view text, const KeyRules& rules) {
  const auto found = std::ranges::find(rules.choices, text);
  if (found == rules.choices.end()) return std::nullopt;
  return static_cast<std::size_t>(found - rules.choices.begin());
}

template <std::unsigned_integral T>
bool read(std::string_view text, const KeyRules& rules, T& out) {
  T value = 0;
  if (!parse_number(text, value)) return false;
  const auto number = static_cast<double>(value);
  const bool in_range = value % rules.multiple_of == 0 && number >= rules.min && number <= rules.max;
  if (rules.choices.empty() ? !in_range : !choice_of(text, rules)) return false;
  out = value;
  return true;
}

inline bool read(std::string_view text, const KeyRules& rules, double& out) {
  double value = 0;
  if (!parse_number(text, value) || !std::isfinite(value)) return false;
  if (value < rules.min || value > rules.max) return false;
  out = value;
  return true;
}

inline bool read(std::string_view text, const KeyRules& rules, Duration& out) {
  double units = 0;
  if (!read(text, rules, units)) return false;
  out.ns = static_cast<std::int64_t>(units * static_cast<double>(rules.unit.ns));
  return true;
}

inline bool read(std::string_view text, const KeyRules& rules, bool& out) {
  for (const bool value : {true, false}) {
    if (text != write(value, rules)) continue;
    out = value;
    return true;
  }
  return false;
}

// Whether TOML can hold this text: it is UTF-8, and has at most 180 dots. A run writes its keys as TOML, and
// reads them again.
[[nodiscard]] bool is_toml_text(std::string_view text);

inline bool read(std::string_view text, const KeyRules& /*rules*/, std::string& out) {
  if (!is_toml_text(text)) return false;
  out = std::string(text);
  return true;
}

inline bool read(std::string_view text, const KeyRules& rules, std::vector<std::uint32_t>& out) {
  std::vector<std::uint32_t> values;
  while (text != kEmptyList) {
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
  const auto choice = choice_of(text, rules);
  if (choice.has_value()) out = static_cast<E>(*choice);
  return choice.has_value();
}

template <class T>
bool read(std::string_view text, const KeyRules& rules, std::optional<T>& out) {
  if (!rules.unset.empty() && text == rules.unset) {
    out.reset();
    return true;
  }
  T value{};
  if (!read(text, rules, value)) return false;
  out = value;
  return true;
}

}  // namespace gossamer::settings
