// SPDX-License-Identifier: Apache-2.0
#include "settings/toml.h"

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/nearest_name.h"

namespace gossamer::settings {
namespace {

std::string place(std::string_view file, const toml::source_region& source) {
  return fmt::format("{}:{}:{}", file, source.begin.line, source.begin.column);
}

Error usage(std::string where, std::string what) {
  return {.kind = ErrorKind::kUsage, .where = std::move(where), .what = std::move(what)};
}

TomlValue copy(const toml::node& node, std::string_view file) {
  TomlValue out{.value = {}, .where = place(file, node.source())};
  if (const auto* text = node.as_string()) out.value = text->get();
  if (const auto* integer = node.as_integer()) out.value = integer->get();
  if (const auto* number = node.as_floating_point()) out.value = number->get();
  if (const auto* flag = node.as_boolean()) out.value = flag->get();
  if (const auto* array = node.as_array()) {
    std::vector<TomlValue> values;
    for (const toml::node& one : *array) values.push_back(copy(one, file));
    out.value = std::move(values);
  }
  if (const auto* table = node.as_table()) {
    TomlTable entries;
    for (const auto& [name, one] : *table)
      entries.push_back({std::string(name.str()), place(file, name.source()), copy(one, file)});
    out.value = std::move(entries);
  }
  return out;
}

// A key of so many parts is a table in a table and so on. TOML++ gives them back one inside the other, so
// that 20,000 of them take all of the stack. Each of TOML_MAX_NESTED_VALUES levels may have kMostDots more.
constexpr std::ptrdiff_t kMostDots = 200;
// The dots in the rest of a line that to_toml() writes: the key, its help and its range.
constexpr std::ptrdiff_t kDotsBesideText = 20;

std::ptrdiff_t dots_of(std::string_view line) { return std::ranges::count(line, '.'); }

// The error for a line with more dots than any key has.
std::optional<Error> too_deep(std::string_view text, std::string_view file) {
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::ptrdiff_t dots = dots_of(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
    if (dots <= kMostDots) continue;
    Error error = usage(fmt::format("{}:{}:1", file, line), "cannot read this as TOML");
    error.got = fmt::format("a line of {} dots", dots);
    error.expected = "keys such as train.batch";
    error.fix = "mend the line";
    return error;
  }
  return std::nullopt;
}

// Types whose values TOML has as texts.
bool is_word(const Key& key) {
  return key.type == KeyType::kText || key.type == KeyType::kChoice || key.type == KeyType::kList;
}

// The text of a value that has one line; empty for arrays, tables and times.
std::optional<std::string> text_of(const TomlValue& value) {
  if (const auto* text = value.as<std::string>()) return *text;
  if (const auto* integer = value.as<std::int64_t>()) return fmt::format("{}", *integer);
  if (const auto* number = value.as<double>()) return fmt::format("{}", *number);
  if (const auto* flag = value.as<bool>()) return *flag ? "true" : "false";
  return std::nullopt;
}

// The text of a value that fits the key's type; empty if the types do not match.
std::optional<std::string> text_for(const Key& key, const TomlValue& value) {
  const auto* text = value.as<std::string>();
  const bool fits = text != nullptr ? is_word(key) || *text == key.rules.unset : !is_word(key);
  return fits ? text_of(value) : std::nullopt;
}

// The first part of "train.batch", empty for "seed".
std::string_view section_of(const Key& key) {
  const std::size_t dot = key.name.find('.');
  return dot == std::string_view::npos ? "" : key.name.substr(0, dot);
}

struct Reader {
  const Keys& keys;
  std::vector<KeySetting> settings = {};

  Result<void> table(const TomlTable& table, const std::string& prefix) {
    for (const TomlEntry& entry : table) {
      const std::string full = prefix + entry.name;
      const auto* inner = entry.value.as<TomlTable>();
      if (inner != nullptr && !is_section(full)) return unknown_section(full, entry.where);
      auto done = inner != nullptr ? this->table(*inner, full + ".") : scalar(full, entry);
      if (!done.ok()) return done;
    }
    return {};
  }

  Result<void> scalar(const std::string& full, const TomlEntry& entry) {
    const Key* key = keys.find(full);
    if (key == nullptr) {
      const std::string text = text_of(entry.value).value_or(describe(entry.value));
      const RemovedKey* const old = keys.find_removed(full);
      if (old != nullptr && text == old->value) return {};
      return keys.unknown({.name = full, .text = text, .where = entry.where});
    }
    KeySetting setting{.name = full, .text = "", .where = entry.value.where};
    std::optional<std::string> text = text_for(*key, entry.value);
    if (!text.has_value()) {
      Error error = keys.refused(setting, accepted_values(*key));
      error.got = describe(entry.value);
      return error;
    }
    setting.text = *std::move(text);
    settings.push_back(std::move(setting));
    return {};
  }

  [[nodiscard]] bool is_section(const std::string& name) const {
    const auto inside = [&](const auto& key) { return key.name.starts_with(name + "."); };
    return std::ranges::any_of(keys.all(), inside) || std::ranges::any_of(keys.removed(), inside);
  }

  [[nodiscard]] Error unknown_section(const std::string& name, const std::string& where) const {
    std::vector<std::string_view> sections;
    for (const Key& key : keys.all()) {
      if (!section_of(key).empty()) sections.push_back(section_of(key));
    }
    Error error = usage(where, fmt::format("there is no section [{}]", name));
    error.expected = fmt::format("a section such as [{}]", nearest_name(name, sections));
    error.fix = keys.list_hint();
    return error;
  }
};

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

bool is_toml_text(std::string_view text) {
  if (dots_of(text) > kMostDots - kDotsBesideText) return false;
  const bool ascii = std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  return ascii || toml::parse("text = " + in_quotes(text)).succeeded();
}

Result<TomlTable> parse_toml(std::string_view text, std::string_view file) {
  if (auto deep = too_deep(text, file)) return *std::move(deep);
  const toml::parse_result parsed = toml::parse(text, file);
  if (parsed) return *copy(parsed.table(), file).as<TomlTable>();
  Error error = usage(place(file, parsed.error().source()), "cannot read this as TOML");
  error.got = std::string(parsed.error().description());
  error.expected = "lines such as [train] and batch = 256, texts in double quotes";
  error.fix = "mend the line";
  return error;
}

std::string describe(const TomlValue& value) {
  if (const auto* text = value.as<std::string>()) return fmt::format("the text \"{}\"", *text);
  if (value.as<std::vector<TomlValue>>() != nullptr) return "an array";
  if (value.as<TomlTable>() != nullptr) return "a table";
  if (const auto* integer = value.as<std::int64_t>()) return fmt::format("the integer {}", *integer);
  if (const auto* number = value.as<double>()) return fmt::format("the number {}", *number);
  if (const auto* flag = value.as<bool>()) return *flag ? "true" : "false";
  return "a date or time";
}

Result<std::vector<KeySetting>> read_settings(const Keys& keys, std::string_view text,
                                              std::string_view file) {
  const auto parsed = parse_toml(text, file);
  if (!parsed.ok()) return parsed.error();
  return read_settings(keys, *parsed);
}

Result<std::vector<KeySetting>> read_settings(const Keys& keys, const TomlTable& table) {
  Reader reader{.keys = keys};
  if (auto done = reader.table(table, ""); !done.ok()) return done.error();
  return std::move(reader.settings);
}

std::string to_toml(const Values& values) {
  std::string out;
  std::string_view section;
  for (const Key& key : values.keys().all()) {
    const std::string_view own = section_of(key);
    if (own != section) out += fmt::format("\n[{}]\n", own);
    section = own;
    const std::string_view last = own.empty() ? key.name : key.name.substr(own.size() + 1);
    const std::string& text = values.text(key);
    const std::string line =
        fmt::format("{} = {}", last, is_word(key) || text == key.rules.unset ? in_quotes(text) : text);
    out += fmt::format("{:<40} # {}; {}\n", line, key.help, accepted_values(key));
  }
  return out;
}

}  // namespace gossamer::settings
